"""Pods of a mix are counted once: as a choice until a watch shows them, then as what the watch shows."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from cluster.store import Delta, Kind
from policy import keys
from policy.values import Side
from tests.unit.webhook import building
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


def test_a_choice_of_an_earlier_call_counts_no_second_time(count: Tally) -> None:
    choose(count)
    choose(count, fresh=False)
    assert count.of(WEB) == Counted(1, 0)


OWNER = {"kind": "ReplicaSet", "name": "web-6f7", "uid": "u-rs", "controller": True}
POD = {"metadata": {"generateName": "web-", "ownerReferences": [OWNER]}, "spec": {}}
RS = {"kind": "ReplicaSet", "metadata": {"name": "web-6f7", "namespace": "shop", "uid": "u-rs"}}


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
