"""What a process that had stood still asks for a Surge comes too late to change anything."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from cluster.objects import Pod
from descheduler.migration import surge_turn
from descheduler.migration.actions import Action, Adopt, MarkPod, MarkWorkload, Release, Scale
from descheduler.migration.executor import Executor
from descheduler.migration.outcomes import Done, Outcome, Overtaken
from policy import keys
from tests.unit.cluster import fake_api
from tests.unit.cluster.fake_api import Answer, FakeApi, Seen, status
from tests.unit.descheduler.test_machine import labelled, remarked
from tests.unit.descheduler.test_surge import COST, OLD, Cluster, cluster, restored

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


def original(made: Cluster) -> Pod:
    return made.state.pods["default", OLD]


def costs(made: Cluster) -> list[str]:
    return [it.metadata.annotations[COST] for it in made.pods() if COST in it.metadata.annotations]


def is_cost(action: Action) -> bool:
    return isinstance(action, MarkPod) and COST in action.annotations


def until(made: Cluster, reached: Callable[[], bool], **more: Any) -> None:
    for _ in range(80):
        if reached():
            return
        made.carry_out(made.decide(**more))
    raise AssertionError(made.migration.status)


@pytest.mark.parametrize("before", [None, "7"], ids=["none", "one of the user's own"])
def test_a_workload_deleted_without_its_pods_leaves_them_their_cost(before: str | None) -> None:
    made = cluster(cost=before)
    until(made, lambda: surge_turn.cost_of(original(made)) == surge_turn.LOWEST)
    made.state.apply(made.deployment, None)
    ended = made.run()
    assert (ended.status.phase, ended.metadata.finalizers) == ("Cancelled", ())
    assert costs(made) == ([before] if before else [])
    assert set(original(made).metadata.labels) & set(KEYS.migration_labels) == set()


def test_a_workload_deleted_on_the_way_back_leaves_the_new_pod_no_cost() -> None:
    made = cluster(min_ready=30)
    made.reach("AwaitAvailable")
    until(made, lambda: bool(costs(made)), withdrawn="no longer wanted")
    made.state.apply(made.deployment, None)
    made.run(withdrawn="no longer wanted")
    assert len(made.names()) == 2
    assert costs(made) == []


@pytest.mark.parametrize("name", [OLD, "web-0"], ids=["the original", "the new pod"])
def test_a_cost_that_the_next_move_set_is_its_own(name: str) -> None:
    made = cluster(min_ready=30)
    made.reach("AwaitAvailable")
    until(made, lambda: bool(costs(made)), withdrawn="no longer wanted")
    made.state.apply(made.deployment, None)
    made.run(withdrawn="no longer wanted")
    made.carry_out(Adopt())
    pod = made.state.pods["default", name]
    next_one = {KEYS.migration_id: "migration-2-y"}
    made.state.apply(pod, remarked(pod, next_one, {COST: str(surge_turn.LOWEST)}))
    assert isinstance(made.decide(), Release)


@pytest.mark.parametrize("phase", ["Mark", "SurgeUp"], ids=["before it began", "when it had"])
def test_the_lowest_cost_of_a_user_stays(phase: str) -> None:
    made = cluster(cost=str(surge_turn.LOWEST))
    made.reach(phase)
    made.run(withdrawn="no longer wanted")
    assert costs(made) == [str(surge_turn.LOWEST)]


def test_a_cost_is_tied_to_the_pod_as_it_was_seen(api: FakeApi) -> None:
    """The marks of the move are on that version; who calls the move off takes them off, and this is refused."""
    made = cluster()
    until(made, lambda: is_cost(made.decide()))
    source = original(made)
    meta = msgspec.structs.replace(source.metadata, resource_version="77")
    made.state.apply(source, msgspec.structs.replace(source, metadata=meta))
    api.answer(status(409, "Conflict"))
    outcome = Executor(api.client(rate_limit=None), KEYS).perform(made.migration, made.decide())
    assert isinstance(outcome, Overtaken)
    (sent,) = api.seen
    assert sent.body["metadata"] == {
        "uid": source.metadata.uid,
        "resourceVersion": "77",
        "annotations": {COST: str(surge_turn.LOWEST)},
    }


def test_a_cost_that_came_just_before_the_marks_went_is_taken_back() -> None:
    made = cluster(min_ready=30)
    made.reach("AwaitAvailable")
    until(made, lambda: made.migration.status.phase == "Cancelled", withdrawn="no longer wanted")
    until(made, lambda: KEYS.migration_id not in original(made).metadata.labels)
    made.state.apply(original(made), remarked(original(made), {}, {COST: str(surge_turn.LOWEST)}))
    made.run()
    restored(made)
