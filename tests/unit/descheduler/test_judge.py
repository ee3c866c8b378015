"""What speaks against a move that somebody asked for by hand."""

from typing import Any

import pytest

from cluster.objects import PodMigration
from descheduler.migration import machine
from descheduler.migration.actions import Write
from descheduler.migration.judge import Judge
from policy import keys
from policy.settings import Settings
from tests.unit.descheduler import build
from tests.unit.descheduler.scenes import NOW, deployment
from tests.unit.descheduler.test_interruption import text


def asked_for(target: str, **status: Any) -> PodMigration:
    """A move of pod x-00, which runs on node a."""
    made: PodMigration = build.thing(
        "PodMigration",
        "m",
        metadata={"finalizers": [keys.FINALIZER], "creationTimestamp": text(NOW)},
        spec={"podRef": {"name": "x-00"}, **({"targetNode": target} if target else {})},
        status=status,
    )
    return made


TARGETS = {
    "another node": ("b", []),
    "the best node": ("", []),
    "its own node": ("a", ["ALREADY_THERE: it runs on a already"]),
    "no node": ("z", ["NO_NODE_FITS: target z does not exist"]),
}


@pytest.mark.parametrize(("target", "wanted"), TARGETS.values(), ids=TARGETS.keys())
def test_where_it_may_be_asked_to_go(target: str, wanted: list[str]) -> None:
    migration = asked_for(target)
    state = build.state(build.node("a"), build.node("b"), *deployment("x", ["a", "a"]), migration)
    seen = Judge(Settings, lambda: "", holder="one")(migration, state, NOW)
    assert [str(it) for it in seen.objections] == wanted


def test_a_move_to_its_own_node_ends_before_anything_is_done() -> None:
    migration = asked_for("a", phase="InProgress", step="Guard", startedAt=text(NOW))
    state = build.state(build.node("a"), build.node("b"), *deployment("x", ["a", "a"]), migration)
    seen = Judge(Settings, lambda: "", holder="one")(migration, state, NOW)
    action = machine.step(migration, seen, NOW)
    assert isinstance(action, Write)
    assert (action.status["phase"], action.status["message"]) == ("Cancelled", "ALREADY_THERE: it runs on a already")
