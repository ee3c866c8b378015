"""What is worth an Event, and what is not."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cluster.eventlog import Severity, Subject, Topic
from descheduler import telling
from descheduler.budgets import Budgets
from descheduler.memory import Rest
from descheduler.migration.actions import Evict
from descheduler.migration.migrator import recognised
from descheduler.migration.outcomes import Failure
from descheduler.migration.temporary_budget import MANAGED_BY, OURS
from descheduler.plan import Plan
from descheduler.proposal import Refusal
from descheduler.reasons import Code, Reason
from descheduler.requests import Said
from descheduler.strategies.third_party import LeftOut
from descheduler.summary import Summary
from descheduler.telling import Teller
from telemetry.catalogue import Log
from telemetry.logs import Logger
from telemetry.meter import Meter
from telemetry.metrics import Metric
from tests.unit.descheduler import build

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
OWN = {"metadata": {"labels": {MANAGED_BY: OURS}}}


@dataclass
class Desk:
    """A teller, and what reached people through it."""

    events: list[tuple[str, str, str]] = field(default_factory=list)
    lines: list[Mapping[str, Any]] = field(default_factory=list)
    full: bool = False
    """Nothing is taken any more."""
    level: int = logging.INFO
    meter: Meter = field(default_factory=lambda: Meter(strict=True))
    teller: Teller = field(init=False)

    def __post_init__(self) -> None:
        log = Logger(self.lines.append, now=lambda: NOW, strict=True, level=self.level)
        self.teller = Teller(self, self.meter, log, settings=Subject("v1", "ConfigMap", "spotshift", "system"))

    def told(self, event: Log, *fields: str) -> list[tuple[Any, ...]]:
        """Lines of one kind, by some of their fields."""
        return [tuple(it.get(name) for name in fields) for it in self.lines if it["event"] == event.name]

    def record(self, subject: Subject, topic: Topic, note: str, *, related: Subject | None = None) -> bool:
        if not self.full:
            self.events.append((topic.reason, f"{subject.kind}/{subject.name}", note))
        return not self.full

    def refuse(self, *reasons: Reason) -> None:
        """One pass in which a strategy proposed the pod."""
        pod = build.pod("web-1", on="a", of=build.owner("ReplicaSet", "web"))
        refusal = Refusal(pod, "LoadBalancing", reasons)
        nothing = Summary.of((), (refusal,), (), proposals=1, limited=None)
        self.teller.planned(Plan((), (refusal,), (), nothing), 0.0, NOW)

    def fail(self, failure: Failure) -> None:
        """An eviction was tried."""
        self.teller.performed(build.thing("PodMigration", "m"), Evict("web-1", "u", "1"), failure, NOW)


def test_a_refusal_that_is_told_has_its_line() -> None:
    desk = Desk(level=logging.DEBUG)
    desk.teller.began("change", 3)
    for _ in range(2):
        desk.refuse(Reason(Code.TOO_YOUNG, "it is"), Reason(Code.NOT_READY, "it is not"))
    fields = ("passId", "namespace", "pod", "strategy", "node", "reason")
    found = desk.told(Log.PROPOSAL_REFUSED, *fields)
    assert found == [(1, "default", "web-1", "LoadBalancing", "a", "NOT_READY,TOO_YOUNG")]
    ((detail, workload),) = desk.told(Log.PROPOSAL_REFUSED, "detail", "workload")
    assert (detail, workload) == ("LoadBalancing: TOO_YOUNG: it is; NOT_READY: it is not", "ReplicaSet/web")


EMPTY = Plan((), (), (), Summary.of((), (), (), proposals=0, limited=None))


def test_a_strategy_that_is_left_out_is_told_once_as_long_as_it_stands() -> None:
    desk = Desk()
    for whys in (["it failed"], ["it failed"], ["it failed", "another cause"], [], ["it failed"]):
        left_out = tuple(LeftOut("Mine", why) for why in whys)
        desk.teller.planned(replace(EMPTY, left_out=left_out), 0.0, NOW)
    told = ["it failed", "another cause", "it failed"]
    assert desk.told(Log.STRATEGY_LEFT_OUT, "strategy", "detail") == [("Mine", why) for why in told]
    assert desk.events == [("StrategyLeftOut", "ConfigMap/spotshift", f"Mine: {why}") for why in told]


PASSES: dict[str, tuple[int, bool, list[tuple[str, int]]]] = {
    "one that finds nothing": (logging.INFO, False, []),
    "one that finds something": (logging.INFO, True, [("PASS_FINISHED", 1)]),
    "one that finds nothing, and more is asked for": (
        logging.DEBUG,
        False,
        [("PASS_STARTED", 1), ("PASS_FINISHED", 1)],
    ),
}


@pytest.mark.parametrize(("level", "finds", "lines"), PASSES.values(), ids=PASSES.keys())
def test_a_pass_in_the_log(level: int, finds: bool, lines: list[tuple[str, int]]) -> None:
    desk = Desk(level=level)
    desk.teller.began("interval", 7)
    if finds:
        desk.refuse(Reason(Code.TOO_YOUNG, "it is"))
    else:
        desk.teller.planned(EMPTY, 0.25, NOW)
    assert [(it["event"], it["passId"]) for it in desk.lines if it["event"].startswith("PASS")] == lines
    assert all(found == ("interval", 7) for found in desk.told(Log.PASS_STARTED, "cause", "objects"))


def test_holding_back_is_told_when_it_begins_and_when_its_reason_changes() -> None:
    desk = Desk()
    for why in ("", "mode is observe", "mode is observe", "somebody says stop", "", "mode is observe"):
        desk.teller.held(why)
    causes = ["mode is observe", "somebody says stop", "mode is observe"]
    assert desk.told(Log.OBSERVE_ONLY, "cause") == [(it,) for it in causes]


def rest(minutes: int, name: str = "m", **more: Any) -> Rest:
    workload = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "u"}
    status = {"phase": "Failed", "resolved": {"workload": workload}, **more}
    after = build.thing("PodMigration", name, spec={"podRef": {"name": "web-1"}}, status=status)
    return Rest(NOW + timedelta(minutes=minutes), after)


RESTS: dict[str, tuple[list[Mapping[str, Rest]], list[float]]] = {
    "before the first look, by who led then": ([{"u": rest(5)}, {"u": rest(5)}], []),
    "a move failed": ([{}, {"u": rest(5)}, {"u": rest(5)}], [300.0]),
    "another one failed": ([{}, {"u": rest(5)}, {"u": rest(10)}], [300.0, 600.0]),
    "one rests, and then another workload": ([{"v": rest(5)}, {"v": rest(5), "u": rest(7)}], [420.0]),
    "it is over, and begins again": ([{}, {"u": rest(5)}, {}, {"u": rest(5)}], [300.0, 300.0]),
}


@pytest.mark.parametrize(("looks", "delays"), RESTS.values(), ids=RESTS.keys())
def test_a_rest_is_told_when_it_begins(looks: list[Mapping[str, Rest]], delays: list[float]) -> None:
    desk = Desk()
    for rests in looks:
        desk.teller.rested(rests, NOW)
    found = desk.told(Log.COOLING_DOWN, "workload", "reason", "namespace", "delaySeconds")
    assert found == [("Deployment/web", "failed", "default", it) for it in delays]


def test_what_began_while_somebody_else_led_they_have_told() -> None:
    desk = Desk()
    desk.teller.rested({}, NOW)
    desk.teller.resigned()
    desk.teller.rested({"u": rest(5)}, NOW)
    assert desk.told(Log.COOLING_DOWN) == []


REFUSALS: dict[str, tuple[list[tuple[Code, ...]], int]] = {
    "something holds it": ([(Code.TOO_YOUNG,)], 1),
    "the same again": ([(Code.TOO_YOUNG,), (Code.TOO_YOUNG,)], 1),
    "something else": ([(Code.TOO_YOUNG,), (Code.NOT_READY,)], 2),
    "it is being moved": ([(Code.ALREADY_MIGRATING,)], 0),
    "it is being moved and not Ready": ([(Code.NOT_READY, Code.ALREADY_MIGRATING)], 0),
    "as before, once it is no longer moved": ([(Code.TOO_YOUNG,), (Code.ALREADY_MIGRATING,), (Code.TOO_YOUNG,)], 1),
}


@pytest.mark.parametrize(("passes", "events"), REFUSALS.values(), ids=REFUSALS.keys())
def test_a_refusal_is_told_if_it_is_one_and_new(passes: list[tuple[Code, ...]], events: int) -> None:
    desk = Desk()
    for codes in passes:
        desk.refuse(*(Reason(code, "so it is") for code in codes))
    assert [reason for reason, *_ in desk.events] == ["MoveRefused"] * events
    counted = sum(desk.meter.read(Metric.REFUSALS, strategy="LoadBalancing", reason=code.value) for code in Code)
    assert counted == sum(map(len, passes)), "all of them are counted"


def test_a_pod_that_waits_for_a_move_of_ours_is_told_of_nothing_but_the_rest() -> None:
    desk = Desk()
    waits = Reason(Code.PDB_NO_BUDGET, "ours", routine=True)
    desk.refuse(waits)
    assert desk.events == []
    desk.refuse(waits, Reason(Code.TOO_YOUNG, "it is"))
    assert [note for *_, note in desk.events] == ["LoadBalancing: TOO_YOUNG: it is"]
    assert desk.meter.read(Metric.REFUSALS, strategy="LoadBalancing", reason="PDB_NO_BUDGET") == 2


@pytest.mark.parametrize(("more", "routine"), [({}, False), (OWN, True)], ids=["of a user", "ours"])
def test_a_budget_of_ours_is_routine(more: dict[str, Any], routine: bool) -> None:
    pod = build.pod("web-1", on="a", labels={"app": "web"})
    (found,) = Budgets(build.state(pod, budget("web-rescheduler-pdb", **more))).reasons(pod)
    assert (found.code, found.routine) == (Code.PDB_NO_BUDGET, routine)


def budget(name: str, **more: Any) -> Any:
    return build.budget(name, allowed=0, labels={"app": "web"}, **more)


BUDGETS: dict[str, tuple[list[Any], str, bool]] = {
    "one of a user": ([budget("web")], "web", True),
    "our own": ([budget("web-rescheduler-pdb", **OWN)], "web-rescheduler-pdb", False),
    "our own, gone by now": ([], "web-rescheduler-pdb", False),
    "one of a user that is called like ours": ([budget("web-rescheduler-pdb")], "web-rescheduler-pdb", True),
    "one of a user, gone by now": ([], "web", True),
    "one that the API did not name": ([budget("web-rescheduler-pdb", **OWN)], "", True),
}


@pytest.mark.parametrize(("budgets", "named", "tells"), BUDGETS.values(), ids=BUDGETS.keys())
def test_a_refused_eviction_is_told_unless_the_budget_is_ours(budgets: list[Any], named: str, tells: bool) -> None:
    desk = Desk()
    failure = Failure("PDB_NO_BUDGET: no", blocked=True, budget=named)
    outcome = recognised(failure, "default", build.state(*budgets))
    assert isinstance(outcome, Failure)
    desk.fail(outcome)
    assert {reason for reason, *_ in desk.events} == ({"EvictionBlocked"} if tells else set())
    assert desk.meter.read(Metric.EVICTIONS_BLOCKED) == int(tells)
    assert desk.meter.read(Metric.STEP_RETRIES, step="Guard") == 1, "it is retried all the same"


def wrong(number: int) -> Said:
    topic = Topic("InvalidValue", "Read", Severity.WARNING)
    return Said(Subject("v1", "Pod", f"web-{number}", "shop"), topic, "spot: 'no'")


def test_a_value_that_means_nothing_is_told_once_as_long_as_it_stands() -> None:
    desk = Desk()
    for standing in ([wrong(1)], [wrong(1), wrong(2)], [wrong(2)], [wrong(1), wrong(2)]):
        desk.teller.misread(standing)
    assert [name for _, name, _ in desk.events] == ["Pod/web-1", "Pod/web-2", "Pod/web-1"]
    assert desk.meter.read(Metric.VALUES_IGNORED) == len(desk.lines) == 3
    assert {desk.lines[0][key] for key in ("namespace", "name", "detail")} == {"shop", "Pod/web-1", "spot: 'no'"}


def test_many_of_them_leave_room_for_other_news() -> None:
    desk = Desk()
    many = [wrong(number) for number in range(telling.MISREAD_AT_ONCE + 3)]
    desk.teller.misread(many)
    assert len(desk.events) == telling.MISREAD_AT_ONCE
    desk.teller.misread(many)
    assert sorted(desk.events) == sorted(("InvalidValue", f"Pod/web-{number}", "spot: 'no'") for number in range(53))


def test_what_nobody_took_is_told_later() -> None:
    desk = Desk(full=True)
    desk.teller.misread([wrong(1)])
    desk.full = False
    desk.teller.misread([wrong(1)])
    assert [name for _, name, _ in desk.events] == ["Pod/web-1"]
