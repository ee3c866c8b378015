"""Two instances, crashes and meddling, interleaved at every single request: what is served is always trusted.

Hypothesis chooses schedules and finds the smallest one that breaks a promise; two families of schedules that chance
would hardly find are walked through one by one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certs import keys, reconcile
from tests.effort import many
from tests.unit.certs.interleaved import CA, LEAF, Instance, check, check_published, heals, instances
from tests.unit.certs.simulated import OVERLAP, SETTINGS, Cluster, installed, settle


@dataclass(frozen=True, slots=True)
class Move:
    """One thing that happens; hypothesis prints its name."""

    name: str
    happens: Callable[[Cluster, Sequence[Instance]], None] = field(repr=False)
    meddles: bool = False


def runs(who: int, dies: str = "") -> Move:
    return Move(f"{who} {dies or 'runs'}", lambda _, running: running[who].step(dies))


def passes(seconds: int) -> Move:
    return Move(f"{seconds} s", lambda cluster, _: cluster.clock.advance(timedelta(seconds=seconds)))


def asks(name: str, kind: str) -> Move:
    return Move(f"asks {kind}", lambda cluster, _: cluster.annotate(name, keys.ROTATE, kind))


def meddles(what: str, happens: Callable[[Cluster], None]) -> Move:
    return Move(what, lambda cluster, _: happens(cluster), meddles=True)


RUNS = [runs(who) for who in (0, 1)] * 5 + [runs(who, dies) for who in (0, 1) for dies in ("before", "after")]
WAITS = [passes(seconds) for seconds in (1, 119, 120, 121)]
CALM = st.sampled_from([*RUNS, *WAITS, asks(CA, "ca"), asks(LEAF, "leaf")])
BURSTS = st.lists(st.tuples(CALM, st.sampled_from([1, 2, 3, 4, 16])), min_size=30, max_size=90)


@given(BURSTS)
@settings(max_examples=many(25))
def test_without_meddling_everything_in_place_fits_together(bursts: list[tuple[Move, int]]) -> None:
    cluster = installed()
    start = cluster.clock()
    cluster._note("start")
    with instances(cluster, 2) as running:
        for move, times in bursts:
            for _ in range(times):
                move.happens(cluster, running)
    check(cluster.history, start)
    heals(cluster)


MEDDLING = (
    meddles("wipe", lambda cluster: cluster.wipe()),
    meddles("edit", lambda cluster: cluster.wipe(b"junk")),
    meddles("empty leaf", lambda cluster: cluster.change(LEAF, data={})),
    meddles("immutable leaf", lambda cluster: cluster.change(LEAF, immutable=True)),
    meddles("delete leaf", lambda cluster: cluster.drop(LEAF)),
    meddles("empty CA", lambda cluster: cluster.change(CA, data={})),
    meddles("delete CA", lambda cluster: cluster.drop(CA)),
)
ROUGH = st.lists(
    st.tuples(st.one_of(CALM, CALM, CALM, st.sampled_from(MEDDLING)), st.sampled_from([1, 2, 3, 4, 16])),
    min_size=10,
    max_size=60,
)


@given(ROUGH)
@settings(max_examples=many(25))
def test_with_meddling_it_heals_and_never_makes_it_worse(bursts: list[tuple[Move, int]]) -> None:
    cluster = installed()
    cluster._note("start")
    with instances(cluster, 2) as running:
        for move, times in bursts:
            for _ in range(1 if move.meddles else times):
                move.happens(cluster, running)
            if move.meddles:
                cluster._note("meddled")
    check_published(cluster.history)
    heals(cluster)


@pytest.mark.parametrize("requests", range(64))
def test_a_sleeper_wakes_up_in_another_time(requests: int) -> None:
    """One instance is slow, falls asleep before any of its requests, and goes on after two rotations by another."""
    cluster = installed()
    start = cluster.clock()
    cluster._note("start")
    cluster.annotate(CA, keys.ROTATE, "ca")
    with instances(cluster, 1) as (sleeper,):
        for _ in range(requests):
            sleeper.step()
            cluster.clock.advance(OVERLAP / 4)
        for _ in range(2):
            for _ in range(5):
                settle(cluster)
                cluster.clock.advance(OVERLAP)
            cluster.annotate(CA, keys.ROTATE, "ca")
        settle(cluster)
        cluster.clock.advance(OVERLAP)
        settle(cluster)
        for _ in range(4):
            sleeper.step()
    check(cluster.history, start)
    heals(cluster)


@pytest.mark.parametrize("seconds", [30, 60, 120])
@pytest.mark.parametrize("passes_between", [1, 2, 3, 5])
def test_a_sleepwalker_sees_every_object_at_another_time(passes_between: int, seconds: int) -> None:
    """Between any two requests of one instance another takes steps of a rotation that never ends."""
    cluster = installed()
    start = cluster.clock()
    cluster._note("start")
    with instances(cluster, 1) as (sleepwalker,):
        for _ in range(60):
            for _ in range(passes_between):
                cluster.annotate(CA, keys.ROTATE, "ca")
                reconcile.once(cluster, SETTINGS, cluster.clock)
            cluster.clock.advance(timedelta(seconds=seconds))
            sleepwalker.step()
    assert sum(write.what == f"patch {LEAF}" for write in cluster.history) >= 1
    check(cluster.history, start)
    heals(cluster)


@pytest.mark.parametrize("who", [1, 2, 3])
def test_instances_in_step_install_once(who: int) -> None:
    cluster = Cluster()
    cluster.configure(installed().webhooks)
    cluster.wipe()
    with instances(cluster, who) as running:
        for _ in range(60):
            for instance in running:
                instance.step()
            cluster.clock.advance(timedelta(seconds=10))
    assert [write.what for write in cluster.history].count(f"create {CA}") == 1
    assert [write.what for write in cluster.history].count(f"create {LEAF}") == 1
    heals(cluster)
