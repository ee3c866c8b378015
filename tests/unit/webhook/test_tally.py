"""Pods of a mix are counted once: as a choice until a watch shows them, then as what the watch shows."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from cluster.store import Delta, Kind
from policy import keys
from policy.values import Side
from tests.unit.webhook import building, pods
from webhook import tally
from webhook.counts import Choice, Counted
from webhook.handle import handle
from webhook.pod import OwnerReference
from webhook.tally import Tally
from webhook.watched import WatchedMeta, WatchedObject

OURS = keys.under()
WEB = ("shop", "u-rs")


class Clock:
    def __init__(self) -> None:
        self.now = building.NOW

    def __call__(self) -> datetime:
        return self.now


def pod(name: str, side: str = "spot", by: str = "me", *, owner: str = "u-rs", going: bool = False) -> WatchedObject:
    said = {OURS.capacity: side, OURS.decided_by: by}
    reference = (OwnerReference(kind="ReplicaSet", name="web", uid=owner, controller=True),)
    ended = building.NOW if going else None
    meta = WatchedMeta(
        name=name, namespace="shop", annotations=said, owner_references=reference, deletion_timestamp=ended
    )
    return WatchedObject(metadata=meta)


def added(one: WatchedObject) -> Delta[Any]:
    return Delta(Kind.ADDED, ("shop", one.metadata.name), None, one)


def changed(old: WatchedObject, new: WatchedObject) -> Delta[Any]:
    return Delta(Kind.MODIFIED, ("shop", old.metadata.name), old, new)


def gone(one: WatchedObject) -> Delta[Any]:
    return Delta(Kind.DELETED, ("shop", one.metadata.name), one, None)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def count(clock: Clock) -> Tally:
    return Tally("me", OURS, clock)


def choose(count: Tally, side: Side = Side.SPOT, *, fresh: bool = True) -> None:
    count.decided(Choice(WEB, side, fresh=fresh))


@pytest.mark.parametrize(
    ("deltas", "expected"),
    [
        pytest.param([added(pod("a")), added(pod("b", "on-demand"))], (1, 1), id="both sides"),
        pytest.param([added(pod("a")), gone(pod("a"))], (0, 0), id="deleted"),
        pytest.param([added(pod("a")), changed(pod("a"), pod("a"))], (1, 0), id="a status"),
        pytest.param([added(pod("a")), changed(pod("a"), pod("a", going=True))], (0, 0), id="on its way out"),
        pytest.param(
            [added(pod("a")), changed(pod("a"), pod("a", going=True)), gone(pod("a", going=True))],
            (0, 0),
            id="and then gone",
        ),
        pytest.param([added(pod("a")), changed(pod("a"), pod("a", "on-demand"))], (0, 1), id="the other side"),
        pytest.param([added(pod("a", owner="u-other"))], (0, 0), id="of another owner"),
        pytest.param([added(pod("a", "maybe"))], (0, 0), id="no side"),
    ],
)
def test_what_a_watch_shows(count: Tally, deltas: list[Delta[Any]], expected: tuple[int, int]) -> None:
    for delta in deltas:
        count.apply(delta)
    assert count.of(WEB) == expected


def test_a_choice_counts_until_it_is_seen(count: Tally) -> None:
    choose(count)
    choose(count, Side.ON_DEMAND)
    assert count.of(WEB) == Counted(1, 1)
    count.apply(added(pod("a")))
    assert count.of(WEB) == Counted(1, 1)
    count.apply(added(pod("b", "on-demand")))
    assert count.of(WEB) == Counted(1, 1)


def test_what_another_decided_does_not_end_a_choice_of_ours(count: Tally) -> None:
    choose(count)
    count.apply(added(pod("a", by="other")))
    assert count.of(WEB) == Counted(2, 0)


def test_a_pod_that_never_came_is_forgotten(count: Tally, clock: Clock) -> None:
    choose(count)
    clock.now += tally.UNSEEN - timedelta(seconds=1)
    choose(count)
    assert count.of(WEB) == Counted(2, 0)
    clock.now += timedelta(seconds=1)
    assert count.of(WEB) == Counted(1, 0)
    clock.now += tally.UNSEEN
    assert count.of(WEB) == Counted(0, 0)
    assert not count._unseen, "nothing is kept of owners that are gone"


@pytest.mark.parametrize("seen", [True, False], ids=["its pod came", "its pod never came"])
def test_nothing_is_kept_of_owners_that_nobody_asks_about_again(count: Tally, clock: Clock, seen: bool) -> None:
    """A CronJob makes a new owner every minute."""
    for number in range(100):
        count.decided(Choice(("shop", f"u-{number}"), Side.SPOT, fresh=True))
        if seen:
            count.apply(added(pod(f"p-{number}", owner=f"u-{number}")))
            count.apply(gone(pod(f"p-{number}", owner=f"u-{number}")))
        clock.now += timedelta(minutes=1)
    assert len(count._unseen) == 1
    assert len(count._recent) == 1
    assert not count._seen


def test_forgetting_one_choice_leaves_the_next_ones_of_its_owner(count: Tally, clock: Clock) -> None:
    choose(count)
    clock.now += tally.UNSEEN - timedelta(seconds=1)
    choose(count)
    clock.now += timedelta(seconds=1)
    choose(count, Side.ON_DEMAND)
    assert count.of(WEB) == Counted(1, 1)


def test_a_choice_of_an_earlier_call_counts_no_second_time(count: Tally) -> None:
    choose(count)
    choose(count, fresh=False)
    assert count.of(WEB) == Counted(1, 0)


OWNER = {"kind": "ReplicaSet", "name": "web-6f7", "uid": "u-rs", "controller": True}
POD: dict[str, Any] = {"metadata": {"generateName": "web-", "ownerReferences": [OWNER]}, "spec": {}}
RS = {"kind": "ReplicaSet", "metadata": {"name": "web-6f7", "namespace": "shop", "uid": "u-rs"}}


def moving(count: Tally, *targets: str) -> Callable[..., str]:
    """Creates pods of an owner with open moves to these nodes (node-1 is spot); returns the side of each."""
    owner = {"kind": "ReplicaSet", "name": "web-6f7", "uid": "u-rs"}
    moves = [pods.move(f"m-{number}", "w-1", target, owner=owner) for number, target in enumerate(targets)]
    view = building.view(policy={"placement": {"spotPercentage": 70}}, objects=[RS, *moves])

    def create(pod: Mapping[str, Any] = POD, **request: Any) -> str:
        choice = handle(building.body(pod, **request), replace(view, counts=count), building.NOW).choice
        assert choice is not None
        return choice.side.value

    return create


@pytest.mark.parametrize(
    ("targets", "first", "expected"),
    [
        pytest.param(["node-0"], ["on-demand"], (14, 6), id="one to on-demand"),
        pytest.param(["node-1"], ["spot"], (14, 6), id="one to spot"),
        pytest.param(["node-0"] * 3, ["on-demand"] * 3, (14, 6), id="three to on-demand"),
        pytest.param(["node-1"] * 3, ["spot"] * 3, (14, 6), id="three to spot"),
        pytest.param(["node-0"] * 10, ["on-demand"] * 10, (10, 10), id="more than the mix has on-demand"),
        pytest.param(["node-1", "node-0"], ["on-demand", "spot"], (14, 6), id="to both: each is followed once"),
    ],
)
def test_a_move_is_followed_by_one_pod(
    count: Tally, targets: list[str], first: list[str], expected: tuple[int, int]
) -> None:
    create = moving(count, *targets)
    assert [create(uid=f"uid-{number}") for number in range(20)][: len(first)] == first
    assert count.of(WEB) == expected


def test_a_move_whose_pod_never_came_is_followed_again(count: Tally, clock: Clock) -> None:
    create = moving(count, "node-1")
    assert [create(), create()] == ["spot", "on-demand"]
    clock.now += tally.UNSEEN
    assert create() == "spot"
    clock.now += tally.UNSEEN
    count.is_followed(("shop", "another"), "m-9")
    assert not count._followed, "nothing is kept of moves that are over"


def test_dry_runs_and_second_calls_follow_no_move(count: Tally) -> None:
    create = moving(count, "node-1")
    assert [create(dryRun=True) for _ in range(3)] == ["spot"] * 3
    decided = {"metadata": {**POD["metadata"], "annotations": {OURS.capacity: "spot"}}, "spec": {}}
    assert [create(decided) for _ in range(3)] == ["spot"] * 3
    assert [create(), create()] == ["spot", "on-demand"]


def test_the_move_of_a_numbered_pod_is_its_own_however_often_it_comes(count: Tally) -> None:
    owner = {"kind": "StatefulSet", "name": "db", "uid": "u-db"}
    numbered = {"metadata": {"name": "web-old", "ownerReferences": [{**owner, "controller": True}]}, "spec": {}}
    objects = [pods.move("m", "w-1", "node-1", owner=owner)]
    view = replace(building.view(policy={"placement": {"spotPercentage": 0}}, objects=objects), counts=count)
    sides = [handle(building.body(numbered), view, building.NOW).choice for _ in range(3)]
    assert [it.side.value for it in sides if it is not None] == ["spot"] * 3


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        pytest.param({}, (35, 15), id="pods that will be"),
        pytest.param({"dryRun": True}, (0, 0), id="a dry run does not count"),
    ],
)
def test_answers_are_counted(count: Tally, request_: dict[str, Any], expected: tuple[int, int]) -> None:
    view = replace(building.view(policy={"placement": {"spotPercentage": 70}}, objects=[RS]), counts=count)
    for number in range(50):
        handle(building.body(POD, uid=f"uid-{number}", **request_), view, building.NOW)
    assert count.of(WEB) == expected
