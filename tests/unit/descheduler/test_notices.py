"""Signals of nodes are told when they come and when they go, and by one process."""

from collections.abc import Mapping
from typing import Any

import pytest

from descheduler.guards import Context
from descheduler.notices import Notices
from policy import keys
from policy.settings import Settings
from telemetry.logs import Logger
from tests.unit.descheduler import build
from tests.unit.descheduler.scenes import NOW
from tests.unit.descheduler.test_interruption import ITN, taint

KEYS = keys.under()
CALM = build.node("a")
LABELLED = build.node("a", labels={KEYS.maintenance: "true"})
TAKEN_UP = build.node("a", labels={KEYS.maintenance: "true"}, annotations={KEYS.maintenance_since: "1780315200"})
NOTICE = build.node("a", taints=[taint(ITN, NOW)])
BOTH = build.node("a", labels={KEYS.maintenance: "true"}, taints=[taint(ITN, NOW)])
LABEL, TAINT = f"label {KEYS.maintenance}", f"taint {ITN}"
NEW, GONE = "NODE_SIGNAL", "NODE_SIGNAL_GONE"

LOOKS: dict[str, tuple[list[Any], list[tuple[str, str]]]] = {
    "a label comes and goes": ([CALM, LABELLED, LABELLED, CALM], [(NEW, LABEL), (GONE, LABEL)]),
    "it is there at the first look": ([LABELLED, LABELLED], [(NEW, LABEL)]),
    "another process has taken it up": ([TAKEN_UP, TAKEN_UP, CALM], [(GONE, LABEL)]),
    "we have taken it up": ([LABELLED, TAKEN_UP], [(NEW, LABEL)]),
    "a second one": ([NOTICE, BOTH, NOTICE], [(NEW, TAINT), (NEW, LABEL), (GONE, LABEL)]),
    "it comes again": ([LABELLED, CALM, LABELLED], [(NEW, LABEL), (GONE, LABEL), (NEW, LABEL)]),
    "the node goes": ([LABELLED, None], [(NEW, LABEL)]),
    "a cordon is no news": ([CALM, build.node("a", unschedulable=True), CALM], []),
}


@pytest.mark.parametrize(("looks", "expected"), LOOKS.values(), ids=LOOKS.keys())
def test_what_is_told(looks: list[Any], expected: list[tuple[str, str]]) -> None:
    lines: list[Mapping[str, Any]] = []
    notices = Notices(Logger(lines.append, now=lambda: NOW, strict=True))
    for node in looks:
        state = build.state(*([node] if node is not None else []))
        notices.look(Context(state, Settings(), KEYS, NOW, {}))
    assert [(it["event"], it["signal"]) for it in lines] == expected
    assert {it["node"] for it in lines} <= {"a"}


def test_by_when_the_node_is_gone() -> None:
    lines: list[Mapping[str, Any]] = []
    state = build.state(NOTICE)
    Notices(Logger(lines.append, now=lambda: NOW, strict=True)).look(Context(state, Settings(), KEYS, NOW, {}))
    assert lines[0]["expiresAt"] == "2026-03-01T12:02:00Z"
