"""The way back of a copied pod ends, also where nobody ever lets the copy go: it stays, and the move says so."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from descheduler import guards, plan
from descheduler.guards import Context
from descheduler.migration import leftovers, recreate_turn
from descheduler.migration.actions import RemoveCopy
from descheduler.migration.outcomes import Failure
from descheduler.proposal import Urgency
from descheduler.reasons import Code
from policy.settings import Settings
from tests.unit.descheduler import build, copied
from tests.unit.descheduler.copied import APP, NEVER, Scene, scene
from tests.unit.descheduler.test_interruption import ITN, REBALANCE, taint, text
from tests.unit.descheduler.test_recreate import COPY, KEYS, START

REBALANCED: dict[str, Any] = {"node": {"taints": [taint(REBALANCE)]}}
DRAINED: dict[str, Any] = {"node": {"labels": {KEYS.maintenance: "true"}}, "strategy": "NodeMaintenance"}
SELECTED: dict[str, Any] = {
    "allowed": 1,
    "labels": APP,
    "status": {"desiredHealthy": 1, "currentHealthy": 2, "expectedPods": 2},
}


def never() -> Any:
    return build.budget("never", **NEVER)


def another() -> Any:
    return build.budget("another", **NEVER)


def taken_back(made: Scene) -> None:
    """The copy runs beside the original when the taint goes."""
    made.until(recreate_turn.READY)
    made.node()


def deleted(made: Scene) -> None:
    """A second budget comes, and the owner of the original deletes it."""
    made.until(recreate_turn.READY)
    made.state.apply(None, another())
    made.remove("web")


def stopped(made: Scene) -> None:
    made.until(recreate_turn.READY)
    made.state.apply(None, another())
    made.node()


def denied(made: Scene) -> None:
    made.webhook.add(COPY)
    taken_back(made)


def left_alone(_: Scene) -> None:
    """The notice stays."""


ONE, SEVERAL = "its disruption budget does not let it go", "several disruption budgets select it"
TWO, OWN = (never(), another()), build.budget("own", **SELECTED)
BOTH = [COPY, "web"]
Given = tuple[tuple[Any, ...], dict[str, Any], Callable[[Scene], None], str, str, list[str]]
ENDLESS: dict[str, Given] = {
    # budgets, what the node says, what happens, how it ends, why the copy stays, what is left
    "one budget, taken back": ((never(),), REBALANCED, taken_back, "Cancelled", ONE, BOTH),
    "two, taken back": (TWO, REBALANCED, taken_back, "Cancelled", SEVERAL, BOTH),
    "two, and the notice stays": (TWO, REBALANCED, left_alone, "Failed", SEVERAL, BOTH),
    "a drain, and the original is deleted": ((OWN,), DRAINED, deleted, "Cancelled", SEVERAL, [COPY]),
    "a drain that is stopped": ((OWN,), DRAINED, stopped, "Cancelled", SEVERAL, BOTH),
    "a webhook": ((), REBALANCED, denied, "Cancelled", copied.DENIED.why, BOTH),
}


@pytest.mark.parametrize("given", ENDLESS.values(), ids=ENDLESS.keys())
def test_a_copy_that_nobody_lets_go_stays_and_the_move_ends(given: Given) -> None:
    budgets, node, happens, phase, why, left = given
    made = scene(*budgets, **node)
    happens(made)
    ended = made.play()
    status = made.migration.status
    assert (status.phase, made.names()) == (phase, left), status
    assert f"; the copy {COPY} stays: {why}" in status.message
    assert made.migration.metadata.finalizers == ()
    assert ended - START < 2 * Settings().migrations.ready_timeout
    assert made.refused.count(COPY) == Settings().migrations.max_retries + 1


def test_a_copy_that_nobody_answers_for_is_asked_for_longer() -> None:
    made = scene(**REBALANCED, denial=Failure("500 failed calling webhook", counts=False))
    denied(made)
    since = made.now
    ended = made.play()
    assert f"; the copy {COPY} stays: 500 failed calling webhook" in made.migration.status.message
    assert timedelta() <= ended - since - Settings().migrations.ready_timeout < timedelta(minutes=1)


def test_a_copy_that_stays_holds_up_no_drain_and_goes_when_it_may() -> None:
    made = scene(never(), **REBALANCED)
    taken_back(made)
    made.play()
    context = Context(made.state, Settings(), KEYS, made.now, {})
    codes = {it.code for pod in made.state.pods.values() for it in guards.reasons(pod, context, Urgency.MAINTENANCE)}
    assert Code.ALREADY_MIGRATING not in codes
    copies = [it for _, it in leftovers.find(made.state, KEYS) if isinstance(it, RemoveCopy)]
    assert [it.name for it in copies] == [COPY]


# ---- the original, on a node that is there long after its time

HOURS = timedelta(hours=6)
FEW: dict[str, Any] = {
    "allowed": 0,
    "labels": APP,
    "status": {"desiredHealthy": 3, "currentHealthy": 2, "expectedPods": 3},
}
BUDGETS = {"one that never lets go": never(), "one that does not now": build.budget("few", **FEW)}


@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS.keys())
@pytest.mark.parametrize("cause", [REBALANCE, ITN], ids=["no deadline", "a notice"])
def test_a_budget_is_not_waited_for_on_a_node_that_stays(budget: Any, cause: str) -> None:
    made = scene(budget, node={"taints": [taint(cause, START)]})
    ended = made.play(HOURS)
    status = made.migration.status
    assert (status.phase, made.refused.count("web")) == ("Failed", 0), status
    assert status.message.startswith("PDB_NO_BUDGET")
    assert Settings().migrations.ready_timeout <= ended - START < 3 * Settings().migrations.ready_timeout


def test_nor_is_its_refusal() -> None:
    """It allows an eviction whenever it is looked at, and has given it away whenever it is asked."""
    made = scene(**REBALANCED)
    made.until("Evict")
    made.webhook.add("web")
    made.denial = Failure("PDB_NO_BUDGET: web", blocked=True)
    made.play(HOURS)
    assert (made.migration.status.phase, made.names()) == ("Failed", ["web"])


def test_in_a_drain_it_is() -> None:
    """The budget is its owner's word, and the node stays."""
    made = scene(build.budget("own", **{**SELECTED, "allowed": 0}), **DRAINED)
    made.play(HOURS)
    assert (made.migration.status.step, made.migration.status.phase) == ("Evict", "InProgress")
    assert "web" in made.refused


@pytest.mark.parametrize("later", [False, True], ids=["from the start", "when the second one comes"])
def test_what_is_waited_for_is_called_by_its_name(later: bool) -> None:
    made = scene(never(), *(() if later else (another(),)), **REBALANCED)
    made.until("Evict")
    made.play(timedelta(minutes=1))
    if later:
        assert made.migration.status.message.startswith("PDB_NO_BUDGET")
        made.state.apply(None, another())
        made.play(timedelta(minutes=1))
    assert made.migration.status.message.startswith("PDB_MULTIPLE")
    written = made.migration
    made.play(timedelta(minutes=1))
    assert made.migration is written, "once"


# ---- again


def planned(made: Scene) -> tuple[list[str], set[Code]]:
    """Which pods the next plan would move, and why not this one."""
    found = plan.make(made.state, Settings(), made.now)
    why = {it.code for refusal in found.refusals if refusal.pod.metadata.name == "web" for it in refusal.reasons}
    return [it.pod.metadata.name for it in found.moves if it.pod.metadata.name == "web"], why


def test_on_a_node_that_outlived_its_notice_a_pod_is_not_copied_again_and_again() -> None:
    made = scene(node={"taints": [taint(ITN, START - timedelta(minutes=10))]})
    made.webhook.add("web")
    made.play()
    assert (made.migration.status.phase, made.names()) == ("Failed", ["web"])
    assert planned(made) == ([], {Code.COOLING_DOWN})
    made.now += Settings().backoff.initial
    assert planned(made) == (["web"], set())


def test_a_rest_that_counts_again_when_the_deadline_passes_does_not_cost_the_copy() -> None:
    """Made because nothing waited for it then; now it may be all that is left."""
    made = scene(node={"taints": [taint(ITN, START)]})
    made.until("Evict")
    failed = {"phase": "Failed", "step": recreate_turn.REMOVE, "finishedAt": text(START + timedelta(seconds=30))}
    made.state.apply(None, build.thing("PodMigration", "m0", spec={"podRef": {"name": "web"}}, status=failed))
    made.webhook.add("web")
    made.play(timedelta(minutes=3))
    assert (made.migration.metadata.name, made.migration.status.step) == ("migration-1-x", "Evict")
    assert made.names() == [COPY, "web"]


# ---- a node that is back, and its pod starts again


def starting(*budgets: Any) -> Scene:
    """The copy serves, the move is called off, and nobody else is Ready."""
    spots = [build.node(name, spot=True) for name in ("c", "d", "e")]
    made = scene(*spots, *budgets, node={"ready": False, "spot": True})
    made.webhook.add("web")
    made.until("Evict")
    made.node(spot=True)
    made.becomes("web", ready=False)
    made.until(recreate_turn.REMOVE)
    made.play(timedelta(minutes=2))
    assert (made.migration.status.phase, made.names()) == ("InProgress", [COPY, "web"])
    return made


ONE_READY = build.budget("one", allowed=0, labels=APP, status={"desiredHealthy": 1, "currentHealthy": 1})


@pytest.mark.parametrize("budgets", [(), (ONE_READY,)], ids=["no budget", "minAvailable 1"])
def test_a_copy_that_serves_alone_stays_until_the_original_is_ready(budgets: tuple[Any, ...]) -> None:
    made = starting(*budgets)
    for budget in budgets:
        made.state.apply(budget, None)
    made.becomes("web", ready=True)
    made.play()
    assert (made.migration.status.phase, made.names()) == ("Cancelled", ["web"])
    assert COPY not in made.refused


def test_it_stays_if_the_original_is_never_ready() -> None:
    made = starting()
    ended = made.play()
    status = made.migration.status
    assert (status.phase, made.names()) == ("Cancelled", [COPY, "web"])
    assert status.message.endswith(f"; the copy {COPY} stays: it serves, and the original is not Ready")
    assert ended - START <= Settings().migrations.ready_timeout + timedelta(minutes=1)
    assert not [it for _, it in leftovers.find(made.state, KEYS) if isinstance(it, RemoveCopy)]


def test_a_pod_whose_copy_nobody_lets_go_is_not_copied_again() -> None:
    """Each interruption would leave one more."""
    made = scene(*TWO, **REBALANCED)
    made.play()
    made.now += timedelta(hours=12)
    assert planned(made) == ([], {Code.COOLING_DOWN})
    made.remove(COPY)
    assert planned(made) == (["web"], set())
