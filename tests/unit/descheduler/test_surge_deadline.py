"""A pod that is doubled while its node is lost: it stops in order, whether or not the other one serves by then."""

import itertools
import random
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from cluster.objects import PodMigration
from descheduler import leaving
from descheduler.guards import Context
from descheduler.migration import failing, machine, outcomes, permits, surge_turn, world
from descheduler.migration.actions import Action, Done, Evict, MarkPod, Scale, Wait, Write
from descheduler.migration.judge import Judge
from descheduler.proposal import Mode, Urgency
from descheduler.requests import Verb
from policy.settings import Settings
from policy.settings_moves import Migrations
from tests.unit.descheduler import build, test_machine, test_surge, test_urgent_moves
from tests.unit.descheduler.scenes import NOW
from tests.unit.descheduler.test_interruption import ITN, REBALANCE, ago, taint, text
from tests.unit.descheduler.test_leaving import DELETING
from tests.unit.descheduler.test_surge import KEYS, OLD, START, left, replica, restored
from tests.unit.descheduler.test_urgent_moves import budget, marked

BY = START + timedelta(seconds=60)
"""When the original has to be asked to stop."""
LOST: dict[str, Any] = {"urgency": Urgency.INTERRUPTION, "leave_by": BY}


NO_BUDGET = outcomes.Failure("PDB_NO_BUDGET: no", blocked=True, eviction=True)


@dataclass
class Cluster(test_surge.Cluster):
    """One in which pods can be evicted, if their budget lets them."""

    allowed: bool = True
    refusal: outcomes.Failure = NO_BUDGET
    evicted: list[tuple[str, datetime]] = field(default_factory=list)

    def decide(self, *, leave_by: datetime | None = None, **more: Any) -> Action:
        by = world.Viewpoint(KEYS, Settings(), "one", self.now)
        given = {"mode": Mode.SURGE, "urgency": Urgency.VOLUNTARY, **more}
        seen = replace(world.look(self.migration, self.state, by, **given), leave_by=leave_by)
        return machine.step(self.migration, seen, self.now)

    def carry_out(self, action: Action) -> None:
        if not isinstance(action, Evict):
            super().carry_out(action)
        elif not self.allowed:
            self._refuse()
        elif (pod := self.state.pods.get(("default", action.name))) is not None:
            self.evicted.append((action.name, self.now))
            self.state.apply(pod, None)
            self.control()

    def _refuse(self) -> None:
        by = world.Viewpoint(KEYS, Settings(), "one", self.now)
        seen = world.look(self.migration, self.state, by, urgency=Urgency.INTERRUPTION)
        super().carry_out(failing.failed(self.migration, seen, self.refusal, self.now))

    def becomes_ready(self, name: str) -> None:
        pod = self.state.pods["default", name]
        created = pod.metadata.creation_timestamp or self.now
        self.state.apply(pod, replica(name, on="b", ready_at=self.now, created=created))

    def until(self, wanted: type[Action], **more: Any) -> Action:
        """Go on until this is asked for."""
        for _ in range(60):
            action = self.decide(**more)
            if isinstance(action, wanted):
                return action
            self.carry_out(action)
        raise AssertionError(self.migration.status)


def cluster(replicas: int = 1, **more: Any) -> Cluster:
    made = test_surge.cluster(replicas)
    return Cluster(made.state, **more)


def test_the_original_is_evicted_in_time_and_the_number_is_the_users() -> None:
    made = cluster(ready=False)
    made.until(Evict, **LOST)
    assert BY <= made.now <= BY + timedelta(seconds=1)
    made.ready = True
    made.until(Scale, **LOST)
    made.becomes_ready("web-0")
    ended = made.run(urgency=Urgency.INTERRUPTION)
    assert ended.status.phase == "Completed"
    assert [name for name, _ in made.evicted] == [OLD]
    assert made.deployment.spec.replicas == len(made.names()) == 1
    assert left(made) == []


def test_what_it_waits_for_ends_with_the_time_that_is_left() -> None:
    made = cluster(ready=False)
    made.reach("AwaitAvailable")
    made.carry_out(made.decide(**LOST))
    assert made.decide(**LOST) == Wait(BY, "the new pod is not Available")
    made.now = BY
    assert isinstance(made.decide(**LOST), Write), "announced before it is done"
    made.now = BY - timedelta(seconds=1)
    assert isinstance(made.decide(urgency=Urgency.INTERRUPTION), Wait), "no deadline: the other one is waited for"


def test_nobody_is_evicted_if_the_other_one_serves_in_time() -> None:
    made = cluster()
    assert made.run(**LOST).status.phase == "Completed"
    assert (made.evicted, made.taken) == ([], [OLD])


def test_a_sibling_that_is_not_ready_is_no_reason_to_stay() -> None:
    made = cluster(2)
    made.reach("SurgeDown")
    sibling = made.state.pods["default", "web-other-0"]
    made.state.apply(sibling, replica("web-other-0", on="a", ready_at=None, created=START))
    made.now = BY
    made.carry_out(made.until(Evict, **LOST))
    made.becomes_ready("web-other-0")
    assert made.run(urgency=Urgency.INTERRUPTION).status.phase == "Completed"
    assert made.deployment.spec.replicas == len(made.names()) == 2


def test_a_controller_that_does_nothing_is_not_waited_for() -> None:
    made = cluster()
    made.reach("SurgeDown")
    made.idle = True
    while made.deployment.spec.replicas == 2:
        made.carry_out(made.decide(**LOST))
    made.now = BY
    made.until(Evict, **LOST)
    assert made.now - BY >= surge_turn.LAG, "but it has a moment"
    made.idle = False
    assert made.run(**LOST).status.phase == "Completed"
    assert made.deployment.spec.replicas == len(made.names()) == 1


def test_a_budget_holds_it_and_is_asked_again_and_again() -> None:
    made = cluster(ready=False, allowed=False)
    for _ in range(Settings().migrations.max_retries + 3):
        made.carry_out(made.until(Evict, **LOST))
    assert OLD in made.names()
    status = made.migration.status
    assert (status.step, status.message) == ("AwaitAvailable", "PDB_NO_BUDGET: no")
    made.becomes_ready("web-0")
    made.until(Scale, **LOST)
    ended = made.run(**LOST)
    assert (ended.status.phase, made.taken, made.evicted) == ("Completed", [OLD], [])
    assert made.deployment.spec.replicas == 1


@pytest.mark.parametrize("final", [False, True])
def test_an_eviction_that_somebody_refuses_costs_the_new_pod_nothing(final: bool) -> None:
    """Not a budget: a webhook, with an answer that counts. The new pod is the one that will survive."""
    made = cluster(ready=False, allowed=False)
    made.refusal = outcomes.Failure("admission webhook denied it", final=final, eviction=True)
    times = []
    for _ in range(Settings().migrations.max_retries + 3):
        made.carry_out(made.until(Evict, **LOST))
        times.append(made.now)
    pauses = [round((later - earlier).total_seconds()) for earlier, later in itertools.pairwise(times)]
    assert pauses == [1, 2, 4, 8, 16]
    assert (made.migration.status.step, made.names()) == ("AwaitAvailable", sorted([OLD, "web-0"]))
    made.becomes_ready("web-0")
    assert isinstance(made.decide(**LOST), Write), "the pause is about the eviction alone"
    assert made.run(**LOST).status.phase == "Completed"
    assert (made.taken, made.deployment.spec.replicas) == ([OLD], 1)


def test_a_refused_eviction_does_not_keep_the_number_from_being_lowered() -> None:
    made = cluster(ready=False)
    made.until(Evict, **LOST)
    held: dict[str, Any] = {**LOST, "permitted": False}
    made.carry_out(made.decide(**held))
    assert made.decide(**held) == Wait(BY + timedelta(seconds=1), made.migration.status.message)
    assert "PDB_NO_BUDGET" in made.migration.status.message
    made.becomes_ready("web-0")
    assert made.run(**held).status.phase == "Completed"
    assert (made.taken, made.evicted) == ([OLD], [])


def test_called_off_the_marks_go_first() -> None:
    """An eviction that another process has on its way is tied to the version of the pod that carries them."""
    made = cluster(ready=False)
    made.until(Evict, **LOST)
    made.carry_out(made.decide(withdrawn="the node stays"))
    action = made.decide(withdrawn="the node stays")
    assert isinstance(action, MarkPod)
    assert action.name == OLD
    assert action.labels[KEYS.migration_id] is None
    assert made.run(withdrawn="the node stays").status.phase == "Cancelled"
    restored(made)


@pytest.mark.parametrize("seed", range(60))
def test_lost_steps_and_lost_answers_change_nothing(seed: int) -> None:
    rng = random.Random(seed)
    made = cluster(1 + seed % 3, ready=bool(seed % 2))
    for _ in range(300):
        action = made.decide(**LOST)
        if isinstance(action, Done):
            break
        if rng.random() < 0.3:
            continue
        made.carry_out(action)
        if rng.random() < 0.3 and not isinstance(action, Wait):
            made.carry_out(action)
        if made.evicted:
            made.ready = True
            for name in [it.metadata.name for it in made.pods() if not it.ready]:
                made.becomes_ready(name)
    assert made.migration.status.phase == "Completed"
    assert OLD not in made.names()
    assert len(made.names()) == made.deployment.spec.replicas == 1 + seed % 3
    assert left(made) == []


# ---- with the real judge


def doubling(*, strategy: str = "SpotInterruption", step: str = "AwaitAvailable", **intent: Any) -> PodMigration:
    """A Surge of x-00 off node a whose new pod is not Ready."""
    known = {"uid": "uid-default-x-00", "known": ["uid-default-x-00"], "from": 1, "to": 2, "generation": 1}
    made = test_urgent_moves.move(step=step, strategy=strategy, intent={**known, "scaledAt": text(NOW), **intent})
    body = {"kind": "PodMigration", **test_machine.as_json(made)}
    new = {"name": "x-01", "uid": "uid-default-x-01", "node": "b"}
    status = {"resolved": {"mode": "Surge"}, "replacement": new, "message": "as it was told"}
    decoded: PodMigration = build.decode(build.merged(body, {"status": status, "spec": {"mode": "Surge"}}))
    return decoded


def scene(migration: PodMigration, *taints: Any) -> list[Any]:
    """Two replicas where the user wants one."""
    _, below, old = marked(1, migration.spec.strategy)
    above = build.thing(
        "Deployment",
        "x",
        spec={"replicas": 2},
        metadata={"generation": 2},
        status={"replicas": 2, "observedGeneration": 2, "updatedReplicas": 2},
    )
    new = build.pod("x-01", on="b", of=build.owner("ReplicaSet", "x-rs"), labels={"app": "x"}, ready=False)
    node = build.node("a", spot=True, taints=list(taints))
    return [node, build.node("b", spot=True), above, below, old, new, migration]


NOTICE = taint(ITN, NOW)
MOMENTS: dict[str, tuple[str, list[Any], float, bool]] = {
    "there is time": ("SpotInterruption", [NOTICE], 84, False),
    "there is none": ("SpotInterruption", [NOTICE], 85, True),
    "begun before the notice": ("LoadBalancing", [NOTICE], 85, True),
    "begun with a recommendation": ("SpotInterruption", [taint(REBALANCE, ago(900)), NOTICE], 85, True),
    "a recommendation has no deadline": ("SpotInterruption", [taint(REBALANCE, ago(900))], 85, False),
    "the node stays": ("LoadBalancing", [], 85, False),
}


@pytest.mark.parametrize(("strategy", "taints", "after", "expected"), MOMENTS.values(), ids=MOMENTS.keys())
def test_whose_time_is_up(strategy: str, taints: list[Any], after: float, expected: bool) -> None:
    """120 seconds, less its grace period of 30 and what we ourselves take. Who asked for the move does not matter."""
    migration = doubling(strategy=strategy)
    state = build.state(*scene(migration, *taints))
    action = test_urgent_moves.decided(state, migration, after=after)
    assert isinstance(action, Write if expected else Wait)
    announced = doubling(strategy=strategy, evictAt=text(NOW))
    again = build.state(*scene(announced, *taints))
    assert isinstance(test_urgent_moves.decided(again, announced, after=after), Evict) is expected


def test_it_takes_its_turn_at_the_budget() -> None:
    migration = doubling(evictAt=text(NOW))
    free, full = (build.state(*scene(migration, NOTICE), budget(it)) for it in (1, 0))
    assert (len(permits.find(free, NOW)), len(permits.find(full, NOW))) == (1, 0)
    assert permits.find(build.state(*scene(doubling(), NOTICE), budget(1)), NOW) == frozenset()
    back = doubling(evictAt=text(NOW), step="SurgeBack")
    assert permits.find(build.state(*scene(back, NOTICE), budget(1)), NOW) == frozenset()
    told = test_urgent_moves.decided(full, migration, after=85)
    assert isinstance(told, Write)
    assert told.status["intent"]["blocked"] is True


@pytest.mark.parametrize(("blocked", "names"), [(True, ["x-00"]), (False, [])], ids=["held", "not held"])
def test_held_by_a_budget_it_is_deleted_where_that_is_asked_for(blocked: bool, names: list[str]) -> None:
    migration = doubling(evictAt=text(NOW), blocked=blocked)
    state = build.state(*scene(migration, NOTICE), settings=DELETING)
    context = Context(state, DELETING, KEYS, NOW + timedelta(seconds=90), {})
    found = leaving.requests(leaving.look(context), context, None, may_begin=True)
    assert [it.name for it in found if it.verb is Verb.DELETE] == names


def test_the_grace_period_of_the_settings_counts() -> None:
    settings = Settings(migrations=Migrations(grace_period_seconds=5))
    migration = doubling()
    state = build.state(*scene(migration, NOTICE), settings=settings)
    seen = Judge(lambda: settings, lambda: "", holder="one")(migration, state, NOW)
    assert seen.leave_by == NOW + timedelta(seconds=110)
