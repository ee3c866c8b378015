"""What people see. The reports are written by hand, so that the look is tested and not the planner."""

import io
from pathlib import Path
from typing import Any

import pytest

from descheduler import screen, tables

GOLDEN = Path(__file__).parents[2] / "golden" / "descheduler"


def reasons(*codes: str) -> list[dict[str, str]]:
    return [{"code": code, "text": f"because of {code.lower()}"} for code in codes]


def refusal(pod: str, *codes: str) -> dict[str, Any]:
    return {"namespace": "shop", "pod": pod, "strategy": "LoadBalancing", "reasons": reasons(*codes)}


def move(pod: str, to: str | None) -> dict[str, Any]:
    named = {"namespace": "shop", "pod": pod, "from": "a", "to": to, "strategy": "LoadBalancing"}
    return {**named, "reason": "node a is 90.0 % full", "urgency": "voluntary", "deadline": None}


def node(name: str, before: float | None, after: float | None) -> dict[str, Any]:
    return {"name": name, "capacity": "spot", "loadBefore": before, "loadAfter": after}


SUMMARY: dict[str, Any] = {
    "complete": True,
    "assumed": [],
    "leftOut": [],
    "proposals": 5,
    "moves": 2,
    "refusals": 2,
    "refusalsByReason": {"DAEMONSET": 1, "TOO_YOUNG": 2},
    "limitedBy": None,
    "highestLoadBefore": 90.0,
    "highestLoadAfter": 61.25,
}
PLAN: dict[str, Any] = {
    "moves": [move("web-1", "b"), move("web-2", None)],
    "refusals": [refusal("web-3", "TOO_YOUNG"), refusal("proxy-1", "DAEMONSET", "TOO_YOUNG")],
    "nodes": [node("a", 90.0, 61.2), node("b", 10.0, 30.0), node("odd", None, None)],
    "summary": SUMMARY,
}
NOTHING: dict[str, Any] = {
    "moves": [],
    "refusals": [],
    "nodes": [node(f"node-{number:02}", 50.0, 50.0) for number in range(tables.SHOWN_NODES + 5)],
    "summary": {**SUMMARY, "moves": 0, "refusals": 0, "proposals": 0, "refusalsByReason": {}},
}
LIMITED = {
    **PLAN,
    "moves": PLAN["moves"][:1],
    "summary": {**SUMMARY, "moves": 1, "limitedBy": reasons("LIMIT_TOTAL")[0], "assumed": ["nodes: a; assumed: b"]},
}
LEFT_OUT = [{"strategy": "Mine", "why": "it failed: KeyError at mine.py:7"}]
DEFAULT = {"value": "prefer", "level": "settings", "on": "the settings", "key": "placement.spot"}
BATCH = {"value": "batch", "level": "namespace", "on": "namespace shop", "key": "x/tier"}
MIX = {"value": 70, "level": "workload", "on": "Deployment shop/web", "key": "x/spot-percentage"}
STANDARD = {"value": "standard", "level": "settings", "on": "the settings", "key": "placement.tier"}
POD: dict[str, Any] = {
    "namespace": "shop",
    "pod": "web-1",
    "node": "a",
    "workload": "Deployment shop/web",
    "placement": {"spot": DEFAULT, "tier": STANDARD},
    "plan": {"decision": "refuse", "strategy": "LoadBalancing", "reasons": reasons("TOO_YOUNG", "NOT_READY")},
    "strategies": [
        {"strategy": "NodeMaintenance", "weight": 120, "proposes": None},
        {"strategy": "LoadBalancing", "weight": 100, "proposes": "node a is 90.0 % full"},
    ],
    "guards": [
        {"guard": "daemonset", "code": "DAEMONSET", "against": ["voluntary", "maintenance"], "objection": None},
        {"guard": "too_young", "code": "TOO_YOUNG", "against": ["voluntary"], "objection": "it is 3 s old"},
    ],
    "nodes": [
        {"node": "a", "own": True, "load": 80.0, "misfits": []},
        {"node": "b", "own": False, "load": 10.0, "misfits": reasons("TAINT", "RESOURCES")},
    ],
    "mistakes": [],
    "assumed": [],
    "leftOut": [],
}
MISREAD = [{"on": "Deployment shop/web", "text": "spot: 'no' is not accepted, use 'prefer' or 'avoid'"}]

PAGES = {
    "plan": tables.of_plan(PLAN, verbose=False),
    "plan-verbose": tables.of_plan(PLAN, verbose=True),
    "plan-nothing": tables.of_plan(NOTHING, verbose=False),
    "plan-left-out": tables.of_plan(
        {**NOTHING, "summary": {**NOTHING["summary"], "leftOut": LEFT_OUT}}, verbose=False
    ),
    "plan-limited": tables.of_plan(LIMITED, verbose=False),
    "explain-refused": tables.of_pod(POD),
    "explain-moved": tables.of_pod({**POD, "mistakes": MISREAD, "plan": {"decision": "move", **move("web-1", "b")}}),
    "explain-mixed": tables.of_pod(
        {**POD, "placement": {"spot": DEFAULT, "tier": BATCH, "spotPercentage": MIX}},
    ),
    "explain-bare": tables.of_pod({**POD, "node": None, "workload": None, "plan": {"decision": "leave"}}),
}
TEXTS = {name: "\n".join(map(tables.aligned, pages)) for name, pages in PAGES.items()}


@pytest.mark.parametrize("name", TEXTS)
def test_plain_text(name: str) -> None:
    assert TEXTS[name] == (GOLDEN / f"{name}.txt").read_text()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    out = Terminal()
    screen.write(out, "table", PLAN, tables.of_plan(PLAN, verbose=True))
    assert "─" in out.getvalue()
    assert "web-1" in out.getvalue()
    assert "\x1b[1m" in out.getvalue()


@pytest.mark.parametrize("out", [io.StringIO(), Terminal()], ids=["file", "terminal"])
def test_names_cannot_steer_the_terminal(out: io.StringIO) -> None:
    hostile = {**PLAN, "moves": [move("web\x1b[2J[red]\n\x07", "b")]}
    screen.write(out, "table", hostile, tables.of_plan(hostile, verbose=False))
    assert "\x1b[2J" not in out.getvalue()
    assert "\x07" not in out.getvalue()
    assert "[red]" in out.getvalue().replace("\n", "")


def test_guards_that_let_a_pod_pass_are_counted_where_less_is_wanted() -> None:
    guards = [
        {"guard": "mirror", "code": "MIRROR", "against": ["voluntary"], "objection": None},
        {"guard": "too_young", "code": "TOO_YOUNG", "against": ["voluntary"], "objection": "it is young"},
    ]

    def shown(told: dict[str, Any]) -> tables.Table:
        pages = tables.of_pod({**POD, **told}, verbose=False, more="-o wide")
        return next(page for page in pages if "uards" in page.title)

    some = shown({"guards": guards})
    assert [row[0] for row in some.rows] == ["too_young"]
    assert some.note == "1 more let it pass; -o wide lists them"
    assert shown({"guards": guards[:1]}).title == "All 1 guards let it pass"
