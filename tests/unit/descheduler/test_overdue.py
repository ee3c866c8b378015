"""A pod that only a budget held is deleted as it would have been evicted: with the same time to stop, and in time."""

from datetime import timedelta

import pytest

from descheduler import leaving
from descheduler.guards import Context
from descheduler.requests import Request, Verb
from descheduler.writes import ClusterWrites
from policy import keys
from policy.settings import Settings
from policy.settings_moves import Migrations
from tests.unit.cluster import fake_api
from tests.unit.descheduler import build
from tests.unit.descheduler.scenes import NOW, deployment
from tests.unit.descheduler.test_leaving import DELETING, blocked, going, grace


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


def test_when_to_look_again_is_when_that_time_begins() -> None:
    settings = Settings(strategies=DELETING.strategies, migrations=Migrations(grace_period_seconds=5))
    state = build.state(going(100), *deployment("x", ["a"], spec=grace(60)), settings=settings)
    context = Context(state, settings, keys.under(), NOW, {})
    assert leaving.next_deadline(leaving.look(context), context) == NOW + timedelta(seconds=95)
