"""What is kept between two passes never shows: a state with a past plans as one that was just told everything."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from descheduler import avoiding, drain, gauges, interruption, maintenance, marks, off_spot, plan
from descheduler.guards import Context
from descheduler.roster import FORGOTTEN_AFTER, Roster
from descheduler.state import ClusterState
from policy import keys
from policy.settings import Settings
from tests.unit.descheduler import build, generated

NOW = datetime(2026, 6, 1, tzinfo=UTC)
SETTINGS = Settings()
PREFIX = "scheduler.alpha.kubernetes.io/"
STEPS = 25
Thing = tuple[str, str, str]


def asked(state: ClusterState) -> object:
    """Every answer that may be kept, in an order that does not depend on the past."""
    context = Context(state, SETTINGS, keys.under(), NOW, cooldowns={})
    made = plan.make(state, SETTINGS, NOW)
    return (
        made.nodes,
        sorted((it.pod.metadata.key, it.target or "", it.strategy, it.mode, it.why) for it in made.moves),
        sorted((it.pod.metadata.key, it.strategy, str(it.reasons)) for it in made.refusals),
        made.summary,
        list(gauges.read(state, made, SETTINGS, NOW)),
        sorted(gauges.shares(state).items()),
        sorted(interruption.find(context)),
        sorted(node.metadata.name for node, _ in interruption.held(context)),
        [it.name for it in drain.asked(context)],
        sorted(str(it) for it in maintenance.mistakes(context)),
        sorted(node.metadata.name for node in marks._marked(context)),
        sorted((it.node.name, it.pods, it.alone) for it in off_spot.find(context, lambda _: None)),
        [(it.workload.text, len(it.on_spot), len(it.elsewhere)) for it in avoiding.find(context)],
    )


def identity(item: Any) -> Thing:
    return type(item).__name__, item.metadata.namespace, item.metadata.name


def some_change(rng: random.Random, others: list[Any], alive: dict[Thing, Any]) -> tuple[Any, Any]:
    """Old and new of something that comes, goes, or is otherwise from now on."""
    choice = rng.random()
    if choice < 0.2:
        name = rng.choice([it for it in alive if it[0] == "Node"] or [("Node", "", "n0")])[2]
        labels = {f"{PREFIX}maintenance": "true"} if rng.random() < 0.5 else {f"{PREFIX}maintenance": "yes"}
        notes = {f"{PREFIX}interruption-cause": "x"} if rng.random() < 0.3 else {}
        new = build.node(name, spot=rng.random() < 0.5, labels=labels, annotations=notes, ready=rng.random() < 0.8)
    elif choice < 0.3:
        new = build.thing("Namespace", "default", "", metadata={"annotations": _wish(rng)})
    elif choice < 0.5 and any(it[0] == "ReplicaSet" for it in alive):
        _, namespace, name = rng.choice([it for it in alive if it[0] == "ReplicaSet"])
        new = build.thing("ReplicaSet", name, namespace, metadata={"annotations": _wish(rng)})
    elif choice < 0.75:
        new = rng.choice(others)
    else:
        old = rng.choice(list(alive.values()))
        return old, None
    return alive.get(identity(new)), new


def _wish(rng: random.Random) -> dict[str, str]:
    return rng.choice(({}, {f"{PREFIX}spot": rng.choice(("avoid", "prefer"))}, {f"{PREFIX}tier": "critical"}))


@pytest.mark.parametrize("seed", range(16))
def test_the_past_does_not_show_in_a_plan(seed: int) -> None:
    rng = random.Random(seed)
    alive = {identity(it): it for it in generated.world(seed, nodes=6, stateful=False).objects}
    others = generated.world(seed + 1_000, nodes=6, stateful=False).objects
    state = build.state(*alive.values())
    for step in range(STEPS):
        old, new = some_change(rng, others, alive)
        state.apply(old, new)
        if new is not None:
            alive[identity(new)] = new
        else:
            del alive[identity(old)]
        found = asked(state)
        assert found == asked(build.state(*alive.values())), f"step {step}: {old} -> {new}"
        assert found == asked(state), f"step {step}: asked again"


def test_a_heartbeat_makes_nothing_anew() -> None:
    node = build.node("a", cpu="4")
    state = build.state(node, build.node("b"), build.pod("x", on="a", cpu="1"))
    before = state.roster.everyone()
    state.apply(node, build.node("a", cpu="4"))
    assert state.roster.everyone() is before
    state.apply(node, build.node("a", cpu="8"))
    assert state.roster.everyone() is not before
    assert [it.before for it in state.roster.everyone().levels] == [12.5, 0.0]


def test_only_rows_of_nodes_that_changed_are_read_again() -> None:
    state = build.state(build.node("a", cpu="4"), build.node("b", cpu="4"))
    kept = state.roster.everyone()
    state.apply(None, build.pod("x", on="b", cpu="1"))
    assert state.roster.everyone() is kept
    assert (kept.cpu, kept.pods, kept.loads) == ([0, 1000], [0, 1], [0.0, 25.0])


def test_changes_that_nobody_reads_are_not_remembered_for_ever() -> None:
    roster = Roster({})
    kept = roster.everyone()
    for _ in range(FORGOTTEN_AFTER):
        roster.changed("a")
    assert roster.everyone() is kept
    roster.changed("a")
    assert roster.everyone() is not kept


def test_an_answer_is_kept_for_what_was_asked() -> None:
    state = build.state(build.node("a", zone="x"), build.node("b", zone="x", ready=False))
    half, most = (Context(state, it, keys.under(), NOW, cooldowns={}) for it in (_percent(50), _percent(60)))
    assert [len(interruption.partitions(it)) for it in (half, most, half)] == [1, 0, 1]


def _percent(value: int) -> Settings:
    own = msgspec.structs.replace(SETTINGS.strategies.spot_interruption, unhealthy_zone_percent=value)
    return msgspec.structs.replace(
        SETTINGS, strategies=msgspec.structs.replace(SETTINGS.strategies, spot_interruption=own)
    )
