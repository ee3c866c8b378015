"""What is shown of nodes, drains, moves and the installation, from looks made by hand."""

from datetime import timedelta
from typing import Any

import pytest

from cluster.objects import Node, PodMigration
from console import installation
from console.installation import InForce
from console.look import Look
from console.views import drains, move_list, node_list, node_story, overview
from descheduler import kinds
from descheduler.gathered import Gap
from descheduler.last_pass import LastPass
from policy import keys
from policy.settings import Mode, Settings
from tests.unit.console import looks
from tests.unit.console.looks import NOW
from tests.unit.descheduler import build

OURS = keys.under()
LABEL = {OURS.maintenance: "true"}
ITN = {"key": "aws-node-termination-handler/spot-itn", "value": "x", "effect": "NoSchedule"}
REBALANCE = {"key": "aws-node-termination-handler/rebalance-recommendation", "effect": "NoSchedule"}


def states(look: Look) -> dict[str, list[str]]:
    return {it["name"]: it["states"] for it in node_list.of(node_list.see(look), look)["nodes"]}


TAINT = "aws-node-termination-handler/spot-itn"
NOTICE = {OURS.interruption_cause: f"taint {TAINT}", OURS.interruption_deadline: "2026-11-16T06:02:00Z"}
PASSED = {**NOTICE, OURS.interruption_deadline: "2026-11-16T05:58:00Z"}
STATES: dict[str, tuple[Node, list[str]]] = {
    "well": (build.node("n", spot=True), ["ready"]),
    "not ready": (build.node("n", ready=False), ["not-ready"]),
    "cordoned": (build.node("n", unschedulable=True), ["cordoned"]),
    "label": (build.node("n", labels=LABEL), ["maintenance"]),
    "label, taken up": (build.node("n", labels=LABEL, unschedulable=True), ["maintenance", "cordoned"]),
    "label with another value": (build.node("n", labels={OURS.maintenance: "yes"}), ["ready"]),
    "interrupted": (build.node("n", taints=[ITN]), ["interrupted"]),
    "a notice without its sign": (
        build.node("n", unschedulable=True, annotations=NOTICE),
        ["interrupted", "cordoned"],
    ),
    "a notice that has run out": (build.node("n", unschedulable=True, annotations=PASSED), ["cordoned"]),
    "may go": (build.node("n", taints=[REBALANCE]), ["rebalance"]),
    "everything": (
        build.node("n", taints=[ITN], labels=LABEL, ready=False, unschedulable=True),
        ["not-ready", "interrupted", "maintenance", "cordoned"],
    ),
}


@pytest.mark.parametrize(("node", "wanted"), STATES.values(), ids=STATES.keys())
def test_the_states_of_a_node(node: Node, wanted: list[str]) -> None:
    assert states(looks.of(node)) == {"n": wanted}


def test_a_node_is_hot_if_a_strategy_would_relieve_it() -> None:
    """The same node is not, where no strategy is enabled that would."""
    assert states(looks.golden())["spot-0"] == ["hot"]
    assert states(looks.golden(Settings(enabled_strategies=("NodeMaintenance",))))["spot-0"] == ["ready"]


def move(name: str, *, phase: str = "InProgress", to: str = "b", ago: float = 60, **status: Any) -> PodMigration:
    """Of pod `web-0`, from node a."""
    workload = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "uid-default-web"}
    began = (NOW - timedelta(seconds=ago)).isoformat()
    base = {
        "phase": phase,
        "step": "Evict",
        "startedAt": began,
        "resolved": {"sourceNode": "a", "targetNode": to, "mode": "Evict", "workload": workload},
    }
    if phase not in {"", "Pending", "InProgress"}:
        base["finishedAt"] = (NOW - timedelta(seconds=ago - 7)).isoformat()
    made: PodMigration = build.thing(
        "PodMigration",
        name,
        metadata={"creationTimestamp": began},
        spec={"podRef": {"name": "web-0"}, "strategy": "LoadBalancing"},
        status={**base, **status},
    )
    return made


def test_moves_under_way_are_seen_on_both_nodes() -> None:
    look = looks.of(
        build.node("a"), build.node("b"), build.pod("web-0", on="a"), move("m"), move("n", phase="Failed")
    )
    seen = {it.node.name: node_list.moves(it) for it in node_list.see(look)}
    assert seen == {"a": "-1", "b": "+1"}


def test_the_rows_of_nodes() -> None:
    look = looks.golden()
    seen = node_list.see(look)
    (table,) = node_list.pages(seen, look, wide=False)
    assert table.columns == ("NODE", "CAPACITY", "LOAD", "PODS", "MOVES", "STATE", "AGE")
    rows = {row[0]: row for row in table.rows}
    assert rows["on-demand-1"][1] == "on-demand"
    assert rows["on-demand-1"][5] == "maintenance (requested)"
    told = {it["name"]: it for it in node_list.of(seen, look)["nodes"]}
    assert rows["spot-0"][2] == f"{told['spot-0']['load']:.1f} %"
    assert told["spot-0"]["load"] == max(told["spot-0"]["shares"].values())
    (wide,) = node_list.pages(seen, look, wide=True)
    assert len(wide.rows[0]) == len(wide.columns)


DRAINS: dict[str, tuple[dict[str, str], dict[str, str], str | None]] = {
    "nothing": ({}, {}, None),
    "another value": ({OURS.maintenance: "yes"}, {}, None),
    "asked for": (LABEL, {}, "requested"),
    "in the queue": (LABEL, {OURS.maintenance_status: "waiting 0/4"}, "waiting 0/4"),
    "under way": (LABEL, {OURS.maintenance_status: "draining 7/12"}, "draining 7/12"),
    "done": (LABEL, {OURS.maintenance_status: "drained"}, "drained"),
    "by another sign": ({}, {OURS.maintenance_status: "draining 1/2"}, "draining 1/2"),
    "called off": ({}, {OURS.cordoned_by: "spotshift"}, "restoring"),
    "cordoned for an interruption": ({}, {OURS.cordoned_by: "spotshift", **NOTICE}, None),
    "called off on a node that is interrupted": (
        {},
        {OURS.cordoned_by: "spotshift", OURS.maintenance_since: "2026-11-16T05:00:00Z", **NOTICE},
        "restoring",
    ),
    "under way on a node that is interrupted": (
        LABEL,
        {OURS.cordoned_by: "spotshift", OURS.maintenance_status: "draining 7/12", **NOTICE},
        "draining 7/12",
    ),
    "scribbled over": (LABEL, {OURS.maintenance_status: "draining x/y"}, "draining"),
    "a number beyond any": (LABEL, {OURS.maintenance_status: f"draining {'9' * 5_000}/1"}, "draining"),
    "not ours": (LABEL, {OURS.maintenance_status: "<b>hello</b>"}, "requested"),
}


@pytest.mark.parametrize(("labels", "notes", "wanted"), DRAINS.values(), ids=DRAINS.keys())
def test_the_drain_of_a_node(labels: dict[str, str], notes: dict[str, str], wanted: str | None) -> None:
    found = drains.read(build.node("n", labels=labels, annotations=notes), OURS)
    assert (None if found is None else found.text) == wanted


def test_what_is_left_is_named_where_one_node_is_asked_for() -> None:
    left = "shop/web-0: PDB_NO_BUDGET: budget web allows none\nshop/db-0: moving"
    notes = {OURS.maintenance_status: "draining 1/3", OURS.maintenance_remaining: left}
    one = drains.read(build.node("n", labels=LABEL, annotations=notes), OURS)
    two = drains.read(build.node("m", labels=LABEL), OURS)
    assert one is not None
    assert two is not None
    assert one.remaining[0] == ("shop/web-0", "PDB_NO_BUDGET: budget web allows none")
    titles = [[page.title for page in drains.pages(it, NOW, wide=False)] for it in ((one,), (one, two), ())]
    assert titles == [["", "Left on n"], [""], ["No node is in maintenance"]]
    assert len(list(drains.pages((one, two), NOW, wide=True))) == 2


LEFT = {
    "nothing": ("", 0),
    "two": ("shop/a: OPTED_OUT: x\nshop/b: OPTED_OUT: x", 2),
    "more than there is room for": ("shop/a: OPTED_OUT: x\nshop/b: OPTED_OUT: x\nand 7 more", 9),
    "somebody else's words": ("and more", 1),
}


@pytest.mark.parametrize(("remaining", "wanted"), LEFT.values(), ids=LEFT.keys())
def test_how_many_pods_are_left(remaining: str, wanted: int) -> None:
    notes = {OURS.maintenance_status: "drained", OURS.maintenance_remaining: remaining}
    found = drains.read(build.node("n", labels=LABEL, annotations=notes), OURS)
    assert found is not None
    assert found.left == wanted
    assert next(iter(drains.pages((found,), NOW, wide=False))).rows[0][3] == str(wanted)


DEADLINES = {"ahead": (timedelta(minutes=5), "in 5m"), "behind": (-timedelta(minutes=5), "passed")}


@pytest.mark.parametrize(("ahead", "wanted"), DEADLINES.values(), ids=DEADLINES.keys())
def test_the_deadline_of_a_drain(ahead: timedelta, wanted: str) -> None:
    notes = {OURS.maintenance_deadline: (NOW + ahead).isoformat()}
    found = drains.read(build.node("n", labels=LABEL, annotations=notes), OURS)
    assert found is not None
    (page,) = drains.pages((found,), NOW, wide=False)
    assert page.rows[0][-1] == wanted


def test_a_move_in_a_row_and_for_programs() -> None:
    found = move("m", phase="Completed", onTarget=True, replacement={"name": "web-1", "uid": "u", "node": "b"})
    assert move_list.row(found, NOW, namespaces=True, wide=False) == (
        *("default", "m", "web-0", "a", "b", "b", "LoadBalancing", "Completed", "Evict", "60s"),
    )
    told = move_list.plain(found)
    assert (told["landed"], told["onTarget"], told["strategy"]) == ("b", True, "LoadBalancing")
    table = move_list.table([found], NOW, namespaces=False, wide=True)
    assert len(table.rows[0]) == len(table.columns)


SENTENCES = {
    "on target": (
        move("m", phase="Completed", onTarget=True, replacement={"name": "web-1", "node": "b"}),
        "Completed after 7s: web-1 is Ready on b, as planned",
    ),
    "where a sibling was to go": (
        move("m", phase="Completed", onTarget=True, replacement={"name": "web-1", "node": "c"}),
        "Completed after 7s: web-1 is Ready on c, as planned for a sibling, which gets b",
    ),
    "elsewhere": (
        move("m", phase="Completed", onTarget=False, replacement={"name": "web-1", "node": "c"}),
        "Completed after 7s: web-1 is Ready on c, not on b",
    ),
    "failed": (move("m", phase="Failed", message="not Ready in time"), "Failed at Evict: not Ready in time"),
    "cancelled early": (move("m", phase="Cancelled", step=""), "Cancelled at its beginning: no reason is given"),
}


@pytest.mark.parametrize(("found", "wanted"), SENTENCES.values(), ids=SENTENCES.keys())
def test_how_a_move_ended(found: PodMigration, wanted: str) -> None:
    assert move_list.sentence(found) == wanted


def test_moves_under_way_stand_last() -> None:
    found = [move("open"), move("old", phase="Failed", ago=900), move("new", phase="Completed", ago=30)]
    assert [it.metadata.name for it in move_list.ordered(found)] == ["old", "new", "open"]


def test_the_installation_for_programs() -> None:
    told = overview.of(looks.golden())
    assert told["leader"]["holder"] == "a-1"
    assert told["leader"]["leads"] is True
    assert told["lastPass"]["moves"] == 2
    assert (told["nodes"]["total"], told["nodes"]["spot"], told["nodes"]["on-demand"]) == (4, 2, 2)
    assert told["nodes"]["states"]["maintenance"] == 1
    assert told["limits"]["maxReschedulePods"] == 10
    assert told["migrations"]["open"] == 0
    assert told["budgets"]["total"] == 1


def line(look: Look, what: str) -> str:
    """What stands beside a word, on the page for people."""
    first = next(iter(overview.pages(overview.of(look), NOW, wide=False)))
    return "; ".join(text for word, text in first.rows if word == what)


STOPPED = InForce(Settings(), "x", stopped="emergency-stop on ConfigMap a/b")
LINES: dict[str, tuple[Look, str, str]] = {
    "a leader": (looks.of(), "leader", "a-1, for 5h"),
    "handed back": (
        looks.of(leader=looks.leader(holder="", lasts=1)),
        "leader",
        "nobody: the last one handed the lease back",
    ),
    "new": (looks.of(leader=looks.leader(holder="")), "leader", "nobody yet: the lease is new, for 3s, and is taken"),
    "silent": (
        looks.of(leader=looks.leader(renewed=300)),
        "leader",
        "nobody: a-1 has not renewed the lease for 5m",
    ),
    "nobody may say": (looks.of(leader="it cannot be read"), "leader", "unknown: it cannot be read"),
    "enforce": (looks.of(), "mode", "enforce"),
    "observe": (
        looks.of(settings=Settings(mode=Mode.OBSERVE)),
        "mode",
        "observe: plans are made and nothing is moved",
    ),
    "stopped": (looks.of(in_force=STOPPED), "mode", "enforce, but stopped by emergency-stop on ConfigMap a/b"),
    "a pass": (looks.of(), "last pass", "8s ago: 2 moves, 5 refusals, planned in 12 ms"),
    "no pass": (looks.of(leader=looks.leader(last=None)), "last pass", "unknown"),
    "no moves": (looks.of(), "moves", "none, and none before"),
    "moves": (looks.of(move("m"), move("n", phase="Completed")), "moves", "1 under way (1 Completed, 1 InProgress)"),
    "not installed": (looks.of(installed=False), "installation", "not installed"),
    "wrong settings": (
        looks.of(in_force=InForce(Settings(), "here", mistakes=("mode: 'x' is not accepted",))),
        "settings",
        "mode: 'x' is not accepted; here",
    ),
    "wrong settings, so the mode is that of the last pass": (
        looks.of(
            in_force=InForce(Settings(), "here", mistakes=("mode: 'x' is not accepted",)),
            leader=looks.leader(last=LastPass(looks.NOW, mode="observe")),
        ),
        "mode",
        "observe: plans are made and nothing is moved",
    ),
    "wrong settings, and nobody tells of a pass": (
        looks.of(in_force=InForce(Settings(), "here", mistakes=("x",)), leader=looks.leader(last=None)),
        "mode",
        "unknown",
    ),
}


@pytest.mark.parametrize(("look", "what", "wanted"), LINES.values(), ids=LINES.keys())
def test_the_lines_of_the_status(look: Look, what: str, wanted: str) -> None:
    assert wanted in line(look, what)


def test_a_workload_that_rests_is_named_with_why() -> None:
    web = build.thing("Deployment", "web")
    told = overview.of(looks.of(web, move("m", phase="Failed", message="never became Ready")))
    (rest,) = told["coolDowns"]
    assert rest["workload"] == "Deployment default/web"
    assert rest["why"] == "never became Ready"
    titles = [page.title for page in overview.pages(told, NOW, wide=False)]
    assert titles == ["", "Workloads that rest"]


def test_budgets_without_room_are_named() -> None:
    counts = {"expectedPods": 2, "currentHealthy": 2, "desiredHealthy": 2}
    full = build.budget("full", allowed=0, labels={"app": "web"}, status=counts)
    free = build.budget("free", allowed=1, labels={"app": "db"}, status=counts)
    unused = build.budget("unused", allowed=0, labels={"app": "none"})
    told = overview.of(looks.of(full, free, unused))["budgets"]
    assert told["total"] == 3
    assert [it["name"] for it in told["withoutRoom"]] == ["full"]


def test_what_could_not_be_seen_is_said_first() -> None:
    look = looks.of(build.node("a"), gaps=(Gap(kinds.PDBS, "not allowed to list them"),))
    first = next(iter(node_list.pages(node_list.see(look), look, wide=False)))
    assert first.rows == (("poddisruptionbudgets: not allowed to list them; assumed: no budget limits evictions",),)
    hidden = looks.of(in_force=InForce(Settings(), "the defaults", unknown="it cannot be read"))
    assert hidden.assumed == hidden.unseen == ("settings: it cannot be read; assumed: the defaults",)
    assert hidden.in_force.warnings == ()


def test_settings_that_are_wrong_are_told_and_what_holds_instead() -> None:
    wrong = looks.of(in_force=InForce(Settings(), "ConfigMap a/b", mistakes=("mode: 'x' is not accepted, use 'y'",)))
    assert wrong.assumed == ("settings: ConfigMap a/b: mode: 'x' is not accepted, use 'y'; assumed: the defaults",)
    assert wrong.unseen == (), "the status has a line of its own for it"
    assert wrong.in_force.warnings == (
        "ConfigMap a/b: mode: 'x' is not accepted, use 'y'",
        installation.STANDING_IN,
    )


def story(name: str) -> dict[str, Any]:
    look = looks.golden()
    seen = next(it for it in node_list.see(look) if it.node.name == name)
    told = node_story.of(seen, look)
    told["titles"] = [page.title for page in node_story.pages(told, seen, NOW)]
    return told


def test_a_drain_waits_for_a_pod_that_only_ends() -> None:
    ending = build.pod("bare", on="a", metadata={"deletionTimestamp": "2026-03-01T11:59:59Z"})
    look = looks.of(build.node("a"), ending)
    (seen,) = node_list.see(look)
    (row,) = [*node_story.pages(node_story.of(seen, look), seen, NOW)][-1].rows
    assert row[:3] == ("default", "bare", "waits for its end")


def test_the_story_of_a_node_to_be_emptied() -> None:
    told = story("on-demand-1")
    assert told["takesPods"] is False
    assert [it["kind"] for it in told["signals"]] == ["maintenance"]
    assert "cart-0" in {it["pod"] for it in told["plan"]["leaving"]}
    standing = {it["pod"]: it["standing"] for it in told["ifDrained"]}
    assert standing["alone"] == "listed"
    assert standing["proxy-on-demand-1"] == "exempt"
    assert f"No pod is sent to it: label {OURS.maintenance} says maintenance" in told["titles"]
    assert "Signs on it" in told["titles"]


def test_the_story_of_a_node_that_is_too_full() -> None:
    told = story("spot-0")
    assert [it["strategy"] for it in told["tooFull"]][:1] == ["LoadBalancing"]
    assert "Pods may be sent to it" in told["titles"]
    assert "Too full" in told["titles"]
    assert {it["from"] for it in told["plan"]["leaving"]} == {"spot-0"}


def test_the_story_of_a_node_with_values_that_mean_nothing() -> None:
    look = looks.of(build.node("a", labels={OURS.maintenance: "yes"}, annotations={OURS.rescheduling: "off"}))
    seen = node_list.see(look)[0]
    told = node_story.of(seen, look)
    assert [it.partition(":")[0] for it in told["mistakes"]] == [OURS.maintenance, OURS.rescheduling]
    page = next(it for it in node_story.pages(told, seen, NOW) if it.title == "Values that mean nothing")
    assert page.rows == tuple((it,) for it in told["mistakes"])


@pytest.mark.parametrize("there", [True, False], ids=["the sign is there", "the sign is gone"])
def test_the_story_of_a_node_whose_notice_stands(there: bool) -> None:
    taints = [{"key": TAINT, "effect": "NoSchedule"}] if there else []
    look = looks.of(build.node("a", spot=True, unschedulable=True, taints=taints, annotations=NOTICE))
    (seen,) = node_list.see(look)
    told = node_story.of(seen, look)
    assert told["interruption"] == {"cause": f"taint {TAINT}", "deadline": "2026-11-16T06:02:00Z", "holds": True}
    shown = {it.title: it.rows for it in node_story.pages(told, seen, NOW)}["Signs on it"]
    taint = ("interruption", f"taint {TAINT}", "in 2m")
    assert (shown[0] == taint) is there
    assert told["signals"][0]["deadline"] == ("2026-11-16T06:02:00Z" if there else None)
    room = next(it.title for it in node_story.pages(told, seen, NOW) if it.title.startswith("No pod is sent to it"))
    assert (f"taint {TAINT} says interruption" in room) is there
    assert ("holds until 2026-11-16T06:02:00Z though the sign is gone" in room) is not there
    assert node_list.text(seen) == "interrupted, cordoned"
    assert overview.nodes_text(overview.of(look)["nodes"]).endswith(": 1 interrupted, 1 cordoned")


NO_NOTICE = {
    "it has run out": (PASSED, Settings()),
    "nobody goes by it": (NOTICE, Settings(enabled_strategies=("NodeMaintenance",))),
}


@pytest.mark.parametrize(("notes", "settings"), NO_NOTICE.values(), ids=NO_NOTICE.keys())
def test_a_notice_that_does_not_hold_is_not_said_to(notes: dict[str, str], settings: Settings) -> None:
    look = looks.of(build.node("a", spot=True, unschedulable=True, annotations=notes), settings=settings)
    (seen,) = node_list.see(look)
    titles = [it.title for it in node_story.pages(node_story.of(seen, look), seen, NOW)]
    assert (node_list.text(seen), "No pod is sent to it: it is cordoned" in titles) == ("cordoned", True)


def test_a_notice_that_has_run_out_is_not_said_to_hold_beside_another_sign() -> None:
    another = [{"key": "cloud.google.com/impending-node-termination", "effect": "NoSchedule"}]
    node = build.node("a", spot=True, unschedulable=True, taints=another, annotations=PASSED)
    look = looks.of(node)
    (seen,) = node_list.see(look)
    told = node_story.of(seen, look)
    assert (node_list.text(seen), told["interruption"]["holds"]) == ("interrupted, cordoned", False)
    assert not [it for it in node_story.pages(told, seen, NOW) if "though the sign is gone" in it.title]


def test_a_sign_beside_the_one_that_was_written_down_has_no_deadline_of_it() -> None:
    taints = [{"key": TAINT, "effect": "NoSchedule"}, REBALANCE]
    look = looks.of(build.node("a", spot=True, taints=taints, annotations=NOTICE))
    (seen,) = node_list.see(look)
    told = node_story.of(seen, look)
    assert {it["kind"]: it["deadline"] for it in told["signals"]} == {
        "interruption": "2026-11-16T06:02:00Z",
        "rebalance": None,
    }


def test_the_story_of_a_node_of_which_there_is_nothing_to_say() -> None:
    look = looks.of(build.node("a"), build.node("b"))
    told = node_story.of(node_list.see(look)[0], look)
    titles = [page.title for page in node_story.pages(told, node_list.see(look)[0], NOW)]
    assert titles[-1] == "The plan of this moment does nothing with it"
