"""A pod that only a budget held is deleted as it would have been evicted: with the same time to stop, and in time."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from cluster.migration import Replacement, Resolved
from descheduler import leaving, overdue
from descheduler.drain import Left, Standing
from descheduler.guards import Context
from descheduler.reasons import Code, Reason
from descheduler.requests import Request, Verb
from descheduler.writes import ClusterWrites
from policy import keys
from policy.settings import Settings
from policy.settings_moves import Migrations
from policy.settings_strategies import NodeMaintenance, OnDeadline, Strategies
from tests.unit.cluster import fake_api
from tests.unit.descheduler import build
from tests.unit.descheduler.scenes import NOW, deployment
from tests.unit.descheduler.test_leaving import DELETING, blocked, going, grace
from tests.unit.descheduler.test_maintenance import LABEL, LATE, written


def deletions(settings: Settings, *, left: float) -> list[Request]:
    """Of a pod that takes a minute to stop, so many seconds before its node is gone."""
    pods = deployment("x", ["a", "b"], spec=grace(60))
    state = build.state(going(left), build.node("b"), *pods, blocked("x-00"), settings=settings)
    context = Context(state, settings, keys.under(), NOW, {})
    found = leaving.requests(leaving.look(context), context, None, may_begin=True)
    return [it for it in found if it.verb is Verb.DELETE]


@pytest.mark.parametrize(
    ("chosen", "before"), [pytest.param(None, 60, id="its own"), pytest.param(5, 5, id="that of the settings")]
)
def test_the_time_to_stop_that_is_counted_with_is_the_one_that_is_sent(chosen: int | None, before: int) -> None:
    settings = Settings(strategies=DELETING.strategies, migrations=Migrations(grace_period_seconds=chosen))
    assert deletions(settings, left=before + 1) == []
    (request,) = deletions(settings, left=before)
    with fake_api.running() as api:
        ClusterWrites(api.client())(request)
    (seen,) = api.seen
    assert (seen.method, seen.path) == ("DELETE", "/api/v1/namespaces/default/pods/x-00")
    assert seen.body.get("gracePeriodSeconds") == chosen


def standing_in(moved: str, *, uid: str, name: str) -> Any:
    """A move that a budget had held, and that says which pod has taken the place of its own."""
    found = blocked(moved)
    claimed = Replacement(name=name, uid=f"uid-default-{name}", node="a")
    status = msgspec.structs.replace(found.status, resolved=Resolved(pod_uid=uid), replacement=claimed)
    return msgspec.structs.replace(found, status=status)


HELD = {
    "it is the pod that was to be moved": (blocked("x-00"), ["x-00"]),
    "it is, by its UID": (standing_in("x-00", uid="uid-default-x-00", name="x-09"), ["x-00"]),
    "it takes its place": (standing_in("old", uid="uid-default-old", name="x-00"), []),
    "it takes its place under the same name": (standing_in("x-00", uid="uid-before", name="x-00"), []),
}


@pytest.mark.parametrize(("move", "gone"), HELD.values(), ids=HELD.keys())
def test_what_a_budget_said_is_said_of_the_pod_that_it_held(move: Any, gone: list[str]) -> None:
    """Where a drain is over its time; one that came to such a node waits there until its move is over."""
    strategies = Strategies(node_maintenance=NodeMaintenance(on_deadline=OnDeadline.DELETE))
    drained = build.node("a", labels=LABEL, annotations=LATE)
    found = written(
        drained, build.node("b"), *deployment("x", ["a", "b"]), move, settings=Settings(strategies=strategies)
    )
    assert [it.name for it in found if it.verb is Verb.DELETE] == gone


def test_when_to_look_again_is_when_that_time_begins() -> None:
    settings = Settings(strategies=DELETING.strategies, migrations=Migrations(grace_period_seconds=5))
    state = build.state(going(100), *deployment("x", ["a"], spec=grace(60)), settings=settings)
    context = Context(state, settings, keys.under(), NOW, {})
    assert leaving.next_deadline(leaving.look(context), context) == NOW + timedelta(seconds=95)


@pytest.mark.parametrize(
    ("owner", "deleted"),
    [pytest.param(build.owner("ReplicaSet", "x"), True, id="replaced"), pytest.param(None, False, id="lost")],
)
def test_what_nothing_would_replace_is_never_deleted(owner: dict[str, Any] | None, deleted: bool) -> None:
    pod = build.pod("x", on="a", of=owner)
    context = Context(build.state(going(0), pod, settings=DELETING), DELETING, keys.under(), NOW, {})
    told = {pod.metadata.key: (Reason(Code.PDB_NO_BUDGET, "no"),)}
    assert overdue.only_a_budget(Left(pod, Standing.FREE, ()), context, told) is deleted
