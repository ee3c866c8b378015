"""What a process that had stood still asks for a Surge comes too late to change anything."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from descheduler.migration.actions import MarkWorkload, Scale
from descheduler.migration.executor import Done, Executor, Outcome, Overtaken
from policy import keys
from tests.unit.cluster import fake_api
from tests.unit.cluster.fake_api import Answer, FakeApi, Seen
from tests.unit.descheduler.test_machine import labelled
from tests.unit.descheduler.test_surge import Cluster, cluster, restored

KEYS = keys.under()
OURS = "migration-1-x"


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with fake_api.running() as fake:
        yield fake


def asks_for(made: Cluster, kind: type[Any]) -> Any:
    """The first action of a kind, decided and not carried out."""
    while not isinstance(action := made.decide(), kind):
        made.carry_out(action)
    return action


def label(made: Cluster, value: str | None) -> None:
    made.state.apply(made.deployment, labelled(made.deployment, {KEYS.moving: value}))


def perform(api: FakeApi, made: Cluster, action: Any) -> tuple[Outcome, list[Seen]]:
    """Against the workload as it is by now; what was written."""
    meta = made.deployment.metadata
    known = {
        "uid": meta.uid,
        "name": meta.name,
        "resourceVersion": "50",
        "generation": meta.generation,
        "labels": dict(meta.labels),
    }
    api.script = lambda _: Answer(body={"metadata": known, "spec": {"replicas": made.deployment.spec.replicas}})
    outcome = Executor(api.client(rate_limit=None), KEYS).perform(made.migration, action)
    return outcome, [it for it in api.seen if it.method == "PATCH"]


def test_a_raise_under_the_label_of_its_move_is_tied_to_that_version(api: FakeApi) -> None:
    made = cluster()
    outcome, (sent,) = perform(api, made, asks_for(made, Scale))
    assert isinstance(outcome, Done)
    assert sent.body == {"metadata": {"resourceVersion": "50"}, "spec": {"replicas": 2}}


@pytest.mark.parametrize("since", [None, "migration-2-y"], ids=["nobody moves it", "another move is under way"])
def test_a_raise_of_a_move_that_was_called_off_meanwhile(api: FakeApi, since: str | None) -> None:
    """Generation and number are as they were: labels leave them alone."""
    made = cluster()
    late = asks_for(made, Scale)
    assert made.run(withdrawn="no longer wanted").status.phase == "Cancelled"
    restored(made)
    label(made, since)
    outcome, sent = perform(api, made, late)
    assert isinstance(outcome, Overtaken)
    assert sent == []


@pytest.mark.parametrize("found", [None, "migration-2-y"], ids=["taken off", "of another move"])
def test_a_label_that_is_not_that_of_the_move_is_set(found: str | None) -> None:
    made = cluster()
    asks_for(made, Scale)
    label(made, found)
    assert made.decide() == MarkWorkload("Deployment", "web", made.deployment.metadata.uid, OURS)
    assert made.run().status.phase == "Completed"


def test_a_label_that_somebody_takes_off_again_and_again_ends_the_move() -> None:
    made = cluster()
    asks_for(made, Scale)
    for _ in range(20):
        label(made, None)
        made.carry_out(made.decide())
        made.now += timedelta(seconds=30)
    ended = made.run()
    assert ended.status.phase == "Failed"
    assert f"REPLICAS_CONTESTED: Deployment web does not keep the label {KEYS.moving}" in ended.status.message
    restored(made)


def test_the_way_back_leaves_the_label_of_another_move() -> None:
    """Both would write it in turn until the other one goes on, and that one may be waiting for us."""
    made = cluster()
    asks_for(made, Scale)
    made.carry_out(made.decide(withdrawn="no longer wanted"))
    made.carry_out(made.decide())
    label(made, "migration-2-y")
    assert not isinstance(made.decide(), MarkWorkload)
