"""What is kept between two passes never shows: a state with a past plans as one that was just told everything."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from descheduler import avoiding, drain, gauges, interruption, maintenance, marks, off_spot, plan
from descheduler.guards import Context
from descheduler.roster import FORGOTTEN_AFTER, MOST_CHANGED, Roster
from descheduler.state import ClusterState
from policy import keys
from policy.settings import Settings
from policy.values import Spot
from tests.effort import many
from tests.unit.descheduler import build, generated

NOW = datetime(2026, 6, 1, tzinfo=UTC)
SETTINGS = Settings()
PREFIX = "scheduler.alpha.kubernetes.io/"
AVOIDING = msgspec.structs.replace(SETTINGS, placement=msgspec.structs.replace(SETTINGS.placement, spot=Spot.AVOID))
STEPS = 20
Thing = tuple[str, str, str]


def asked(state: ClusterState, settings: Settings = SETTINGS) -> object:
    """Every answer that may be kept, in an order that does not depend on the past."""
    context = Context(state, settings, keys.under(), NOW, cooldowns={})
    made = plan.make(state, settings, NOW)
    return (
        made.nodes,
        sorted((it.pod.metadata.key, it.target or "", it.strategy, it.mode, it.why) for it in made.moves),
        sorted((it.pod.metadata.key, it.strategy, str(it.reasons)) for it in made.refusals),
        made.summary,
        list(gauges.read(state, made, settings, NOW)),
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
    new = rng.choice((_node, _heartbeat, _namespace, _replica_set, _deployment, _annotated, _other, _gone))(
        rng, others, alive
    )
    if new is None:
        return rng.choice(list(alive.values())), None
    return alive.get(identity(new)), new


def _node(rng: random.Random, others: list[Any], alive: dict[Thing, Any]) -> Any:
    del others
    name = rng.choice([it for it in alive if it[0] == "Node"] or [("Node", "", "n0")])[2]
    labels = {f"{PREFIX}maintenance": rng.choice(("true", "yes"))}
    notes = {f"{PREFIX}interruption-cause": "x"} if rng.random() < 0.3 else {}
    return build.node(name, spot=rng.random() < 0.5, labels=labels, annotations=notes, ready=rng.random() < 0.8)


def _heartbeat(rng: random.Random, others: list[Any], alive: dict[Thing, Any]) -> Any:
    del others
    found = [it for key, it in alive.items() if key[0] == "Node"]
    return _with(rng.choice(found), resource_version=str(rng.random())) if found else None


def _namespace(rng: random.Random, others: list[Any], alive: dict[Thing, Any]) -> Any:
    del others, alive
    return build.thing("Namespace", "default", "", metadata={"annotations": _wish(rng)})


def _replica_set(rng: random.Random, others: list[Any], alive: dict[Thing, Any]) -> Any:
    del others
    found = [it for key, it in alive.items() if key[0] == "ReplicaSet"]
    if not found:
        return None
    _, namespace, name = identity(rng.choice(found))
    above = rng.choice(([], [build.owner("Deployment", "above", namespace)], [build.owner("Rollout", "unseen")]))
    return build.thing("ReplicaSet", name, namespace, metadata={"annotations": _wish(rng), "ownerReferences": above})


def _deployment(rng: random.Random, others: list[Any], alive: dict[Thing, Any]) -> Any:
    del others, alive
    return build.thing("Deployment", "above", metadata={"annotations": _wish(rng)})


def _annotated(rng: random.Random, others: list[Any], alive: dict[Thing, Any]) -> Any:
    """The same pod with the same spec, which says something else."""
    del others
    found = [it for key, it in alive.items() if key[0] == "Pod"]
    return _with(rng.choice(found), annotations=_wish(rng)) if found else None


def _other(rng: random.Random, others: list[Any], alive: dict[Thing, Any]) -> Any:
    del alive
    return rng.choice(others)


def _gone(rng: random.Random, others: list[Any], alive: dict[Thing, Any]) -> Any:
    del rng, others, alive


def _with(item: Any, **metadata: Any) -> Any:
    return msgspec.structs.replace(item, metadata=msgspec.structs.replace(item.metadata, **metadata))


def _wish(rng: random.Random) -> dict[str, str]:
    return rng.choice(({}, {f"{PREFIX}spot": rng.choice(("avoid", "prefer"))}, {f"{PREFIX}tier": "critical"}))


@pytest.mark.parametrize("seed", range(many(5)))
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
        settings = rng.choice((SETTINGS, SETTINGS, AVOIDING))
        found = asked(state, settings)
        assert found == asked(build.state(*alive.values()), settings), f"step {step}: {old} -> {new}"
        assert found == asked(state, settings), f"step {step}: asked again"


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


def test_what_nobody_asks_for_is_not_remembered_for_ever() -> None:
    state = build.state(build.node("a"), build.pod("x", on="a"))
    sift = state.roster.sift(asked)
    assert sift.of(state.nodes["a"], lambda _: True) == {("default", "x")}
    for number in range(MOST_CHANGED + 2):
        state.apply(None, build.pod(f"y{number}", on="a"))
    assert sift.of(state.nodes["a"], lambda _: False) == set(), "all of them are asked again"


def test_an_answer_is_kept_for_what_was_asked() -> None:
    state = build.state(build.node("a", zone="x"), build.node("b", zone="x", ready=False))
    half, most = (Context(state, it, keys.under(), NOW, cooldowns={}) for it in (_percent(50), _percent(60)))
    assert [len(interruption.partitions(it)) for it in (half, most, half)] == [1, 0, 1]


def _percent(value: int) -> Settings:
    own = msgspec.structs.replace(SETTINGS.strategies.spot_interruption, unhealthy_zone_percent=value)
    return msgspec.structs.replace(
        SETTINGS, strategies=msgspec.structs.replace(SETTINGS.strategies, spot_interruption=own)
    )
