"""A move that is called off while somebody refuses to have its marks taken off: asked again, but not all the time."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from cluster.objects import PodMigration
from descheduler.migration.actions import Action, MarkPod, MarkWorkload, Write, takes_marks_off
from descheduler.migration.judge import Judge
from descheduler.migration.machine import FINALIZER
from descheduler.migration.migrator import SLOW_DOWN, Migrator
from descheduler.migration.outcomes import Done, Failure, Outcome
from policy import keys
from policy.settings import Settings
from tests.unit.descheduler import build
from tests.unit.descheduler.scenes import NOW
from tests.unit.descheduler.test_loop import AtOnce
from tests.unit.descheduler.test_migrator import Nobody
from tests.unit.descheduler.test_temporary_budget import workload

KEYS = keys.under()
MARKED = {KEYS.migration_id: "m", KEYS.migration_status: "in-progress"}
COPY = {"copy": "spotshift-copy-1", "uid": "uid-default-web-0", "ending": "Cancelled", "why": "x", "sought": "now"}
LATER = (NOW + timedelta(seconds=30)).isoformat()


class Refused:
    """An API that writes every status and refuses to change pods and workloads."""

    def __init__(self, step: str, intent: dict[str, Any], failure: Failure) -> None:
        self.asked: list[Action] = []
        self._failure = failure
        owner = build.owner("ReplicaSet", "web-rs")
        resolved = {
            "workload": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "uid-default-web"},
            "owner": owner,
            "podUid": "uid-default-web-0",
            "sourceNode": "a",
            "mode": "Evict",
        }
        self._status: dict[str, Any] = {
            "phase": "InProgress",
            "step": step,
            "message": "as it went",
            "resolved": resolved,
            "intent": intent,
        }
        self._version = 1
        above, below, _, other = workload()
        pod = build.pod("web-0", on="a", of=owner, labels={"app": "web", **MARKED})
        self.state = build.state(build.node("a"), above, below, pod, other, self._move())
        judge = Judge(Settings, lambda: "somebody pulled the stop", holder="one")
        self._migrator = Migrator(self._perform, judge, Nobody(), pool=AtOnce(), wake=lambda: None)

    def turns(self, seconds: float) -> None:
        """Fifty of them at one moment, as a process has them that is woken by every answer."""
        for _ in range(50):
            self._migrator.turn(self.state, NOW + timedelta(seconds=seconds))

    @property
    def marks(self) -> int:
        return sum(isinstance(it, MarkPod | MarkWorkload) for it in self.asked)

    def _move(self) -> PodMigration:
        meta = {"finalizers": [FINALIZER], "resourceVersion": str(self._version)}
        made: PodMigration = build.thing(
            "PodMigration", "m", metadata=meta, spec={"podRef": {"name": "web-0"}}, status=self._status
        )
        return made

    def _perform(self, _: PodMigration, action: Action) -> Outcome:
        self.asked.append(action)
        if not isinstance(action, Write):
            return self._failure
        self._status = msgspec.json.decode(msgspec.json.encode({**self._status, **action.status}))
        self._version += 1
        return Done(migration=self._move())


STEPS: dict[str, tuple[str, dict[str, Any]]] = {
    "marked": ("Mark", {}),
    "about to be evicted": ("Evict", {}),
    "its eviction was refused and is due later": ("Evict", {"retryAt": LATER, "blocked": True}),
    "another request failed and is due later": ("Evict", {"retryAt": LATER}),
    "given up": ("Evict", {"action": "GiveUp", "ending": "Cancelled"}),
    "its copy goes": ("RemoveCopy", COPY),
}


@pytest.mark.parametrize(("step", "intent"), STEPS.values(), ids=STEPS.keys())
def test_the_marks_are_asked_for_at_once_and_then_now_and_then(step: str, intent: dict[str, Any]) -> None:
    cluster = Refused(step, intent, Failure("403 Forbidden: somebody's webhook says no"))
    cluster.turns(0)
    assert cluster.marks == 1
    assert sum(isinstance(it, Write) for it in cluster.asked) == 1, "it is written down what is refused"
    pause = SLOW_DOWN.total_seconds()
    for number in range(1, 10):
        cluster.turns(number * pause - 0.1)
        assert cluster.marks == number
        cluster.turns(number * pause)
        assert cluster.marks == number + 1, "and so for as long as it is refused"


def test_who_says_for_how_long_is_heard() -> None:
    cluster = Refused("Mark", {}, Failure("429", retry_after=timedelta(seconds=40)))
    cluster.turns(0)
    cluster.turns(39)
    assert cluster.marks == 1
    cluster.turns(40)
    assert cluster.marks == 2


@pytest.mark.parametrize(
    ("action", "off"),
    [
        (MarkPod("web", "u", {KEYS.migration_id: None}, {KEYS.migration_time: None}), True),
        (MarkPod("web", "u", {KEYS.migration_id: "m"}), False),
        (MarkPod("web", "u", {}, {keys.POD_DELETION_COST: None}), False),
        (MarkWorkload("Deployment", "web", "u", None), True),
        (MarkWorkload("Deployment", "web", "u", "m"), False),
        (Write({}), False),
    ],
)
def test_what_takes_marks_off(action: Action, off: bool) -> None:
    assert takes_marks_off(action) is off
