"""Commands against scripted answers: how they end, and what they say before."""

import argparse
import importlib
import io
import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from console import installation, options
from console.door import Door, Unusable
from console.ending import Ending
from console.session import Session
from policy import keys
from testbed.waiting import patient
from tests.unit.cluster import fake_api
from tests.unit.cluster.fake_api import Answer, FakeApi, Seen, status
from tests.unit.cluster.surroundings import World
from tests.unit.descheduler import build

HEAD = "apiVersion: spotshift.dev/v1alpha1\nkind: Policy\n"
OURS = keys.under()
POD = {"metadata": {"name": "web-0", "namespace": "shop", "uid": "u"}, "spec": {"nodeName": "a"}}


def cluster(settings: str) -> fake_api.Script:
    """One node, one pod on it, and these settings; nothing measures and nobody leads."""
    node = {"metadata": {"name": "a", "uid": "n"}, "spec": {}, "status": {}}
    held: dict[str, dict[str, Any]] = {
        "/api/v1/nodes/a": node,
        "/api/v1/namespaces/shop/pods/web-0": POD,
        "/api/v1/namespaces/spotshift-system/configmaps/spotshift-settings": {
            "metadata": {"name": "spotshift-settings", "namespace": "spotshift-system"},
            "data": {"settings.yaml": settings},
        },
    }
    listed: dict[str, list[dict[str, Any]]] = {"/api/v1/nodes": [node], "/api/v1/pods": [POD]}

    def script(seen: Seen) -> Answer:
        if seen.path in held:
            return Answer(body=held[seen.path])
        if "metrics.k8s.io" in seen.path or "/leases/" in seen.path:
            return status(404, "NotFound")
        return Answer(body={"kind": "List", "metadata": {"resourceVersion": "9"}, "items": listed.get(seen.path, [])})

    return script


def run(api: FakeApi, *words: str, context: str = "default") -> tuple[Ending, str, str]:
    """How it ended, and both outputs."""
    chosen: argparse.Namespace = options.parse(["-n", "shop", *words])
    out, err = io.StringIO(), io.StringIO()
    client = api.client(rate_limit=None)
    session = Session(chosen, out, err, World().runtime, Door(client, api.url, context))
    ended = importlib.import_module(f"console.commands.{chosen.command}").run(session)
    return ended, out.getvalue(), err.getvalue()


LOOKING = {
    "plan": ("plan",),
    "pod": ("explain", "pod/web-0"),
    "node": ("explain", "node", "a"),
    "nodes": ("nodes",),
    "status": ("status",),
    "top": ("top",),
    "maintenance": ("maintenance", "status"),
}


@pytest.mark.parametrize("words", LOOKING.values(), ids=LOOKING.keys())
def test_wrong_settings_are_told_and_the_answer_is_printed(words: tuple[str, ...]) -> None:
    with fake_api.running() as api:
        api.script = cluster(f"{HEAD}mode: enfroce\nmaxReschedulePods: -1\n")
        ended, out, err = run(api, *words, "-o", "json")
        where = "warning: ConfigMap spotshift-system/spotshift-settings: "
        first, second, last = err.splitlines()
        assert (
            first == f"{where}mode: 'enfroce' is not accepted, use 'enforce' or 'observe' (did you mean 'enforce'?)"
        )
        assert second.startswith(f"{where}maxReschedulePods: -1 is not accepted, use ")
        assert last == f"warning: {installation.STANDING_IN}"
        assert ended is Ending.INCOMPLETE
        assert json.loads(out)


def test_a_drain_is_asked_for_under_the_prefix_of_settings_with_mistakes() -> None:
    with fake_api.running() as api:
        api.script = cluster(f"{HEAD}mode: enfroce\nlabelPrefix: example.com/\n")
        ended, _, err = run(api, "maintenance", "start", "a")
        assert (ended, err.splitlines()[-1]) == (Ending.DONE, f"warning: {installation.STANDING_IN}")
        (asked,) = (it for it in api.seen if it.method == "PATCH")
        assert asked.body["metadata"]["labels"] == {"example.com/maintenance": "true"}


@pytest.mark.parametrize("action", ["start", "stop"])
def test_nothing_is_written_under_a_prefix_that_cannot_be_told(action: str) -> None:
    with fake_api.running() as api:
        api.script = cluster(f"{HEAD}labelPrefix: example.com\n")
        told = "ConfigMap spotshift-system/spotshift-settings: labelPrefix: 'example.com' is not accepted, use "
        with pytest.raises(Unusable, match=told):
            run(api, "maintenance", action, "a")
        assert {it.method for it in api.seen} == {"GET"}


@pytest.mark.parametrize("words", LOOKING.values(), ids=LOOKING.keys())
def test_good_settings_are_not_spoken_of(words: tuple[str, ...]) -> None:
    with fake_api.running() as api:
        api.script = cluster(f"{HEAD}windows: []\n")
        ended, out, err = run(api, *words)
        assert (ended, err) == (Ending.DONE, "")
        assert out


OBSERVING = "the mode is observe: nothing is moved"


@pytest.mark.parametrize("words", [LOOKING[it] for it in ("plan", "pod", "node")], ids=["plan", "pod", "node"])
def test_a_plan_that_is_not_carried_out_says_so(words: tuple[str, ...]) -> None:
    with fake_api.running() as api:
        api.script = cluster(f"{HEAD}mode: observe\n")
        ended, out, err = run(api, *words)
        assert (ended, err, OBSERVING in out) == (Ending.DONE, f"warning: {OBSERVING}\n", False)
        told = json.loads(run(api, *words, "-o", "json")[1])
        assert told.get("summary", told)["held"] == OBSERVING
        api.script = cluster(HEAD)
        told = json.loads(run(api, *words, "-o", "json")[1])
        assert told.get("summary", told)["held"] is None


def test_a_plan_that_is_stopped_says_so() -> None:
    usual = cluster(HEAD)
    with fake_api.running() as api:
        api.script = lambda seen: Answer(body=MARKED) if "/configmaps/" in seen.path else usual(seen)
        for words in (LOOKING["plan"], LOOKING["pod"]):
            err = run(api, *words)[2]
            assert err.startswith("warning: nothing is moved while the emergency stop is set: example.com/emergency")


@pytest.mark.parametrize("words", LOOKING.values(), ids=LOOKING.keys())
def test_settings_that_may_not_be_seen_are_assumed_and_that_is_told(words: tuple[str, ...]) -> None:
    usual, denied = cluster(HEAD), status(403, "Forbidden", "not for you")
    with fake_api.running() as api:
        api.script = lambda seen: denied if "/configmaps/" in seen.path else usual(seen)
        ended, out, err = run(api, *words)
        where = "settings: ConfigMap spotshift-system/spotshift-settings"
        told = f"{where} cannot be read: not for you; assumed: the defaults"
        assert (ended, told in out + err) == (Ending.INCOMPLETE, True)


def test_a_pod_is_not_asked_to_move_to_its_own_node() -> None:
    with fake_api.running() as api:
        api.script = cluster(HEAD)
        told = "pod shop/web-0 runs on a already: name another node, or leave --to out"
        with pytest.raises(Unusable, match=told):
            run(api, "migrate", "web-0", "--to", "node/a")
        assert {it.method for it in api.seen} == {"GET"}


def refusing() -> fake_api.Script:
    """A node to be emptied, with a pod in each of two namespaces that says no."""
    node = {"metadata": {"name": "a", "uid": "n", "labels": {OURS.maintenance: "true"}}, "spec": {}, "status": {}}
    kept = {"annotations": {OURS.rescheduling: "disabled"}}
    pods = [
        {"metadata": {"name": f"{it}-0", "namespace": it, "uid": it, **kept}, "spec": {"nodeName": "a"}}
        for it in ("shop", "other")
    ]
    namespaces = [{"metadata": {"name": it}} for it in ("shop", "other", "shopping")]
    listed = {"/api/v1/nodes": [node], "/api/v1/pods": pods, "/api/v1/namespaces": namespaces}
    usual = cluster(f"{HEAD}enabledStrategies: [NodeMaintenance]\n")

    def script(seen: Seen) -> Answer:
        if seen.path not in listed:
            return usual(seen)
        items = listed[seen.path]
        return Answer(body={"kind": "List", "metadata": {"resourceVersion": "9"}, "items": items})

    return script


def test_the_plan_of_a_namespace_counts_what_it_shows() -> None:
    with fake_api.running() as api:
        api.script = refusing()
        ended, out, _ = run(api, "plan", "-o", "json")
        told = json.loads(out)
        assert (ended, [it["pod"] for it in told["refusals"]]) == (Ending.DONE, ["shop-0"])
        counted = {key: told["summary"][key] for key in ("namespace", "moves", "refusals", "refusalsByReason")}
        codes = {"NO_CONTROLLER": 1, "OPTED_OUT": 1}
        assert counted == {"namespace": "shop", "moves": 0, "refusals": 1, "refusalsByReason": codes}
        _, out, _ = run(api, "plan")
        assert "\n0 moves and 1 refusal in namespace shop, of 2 proposals in all; highest load " in out


def test_a_namespace_that_is_not_there_is_told() -> None:
    with fake_api.running() as api:
        api.script = refusing()
        with pytest.raises(Unusable, match=r"there is no namespace shoppin \(did you mean shopping\?\)"):
            run(api, "plan", "-n", "shoppin")
        ended, out, _ = run(api, "plan", "-n", "shoppin", "-A", "-o", "json")
        assert (ended, "namespace" in json.loads(out)["summary"]) == (Ending.DONE, False)


@pytest.mark.parametrize("words", [("migrations",), ("explain", "pod", "web")], ids=["migrations", "explain"])
def test_a_namespace_in_which_nothing_can_be_found_is_told(words: tuple[str, ...]) -> None:
    denied, usual = status(403, "Forbidden", "not for you"), refusing()
    with fake_api.running() as api:
        api.script = usual
        with pytest.raises(Unusable, match=r"there is no namespace shoppin \(did you mean shopping\?\)"):
            run(api, *words, "-n", "shoppin")
        if words[0] == "migrations":
            assert run(api, *words, "-n", "shopping")[1] == "No moves in namespace shopping\n"
            assert run(api, *words, "-A")[1] == "No moves\n"
            api.script = lambda seen: denied if seen.path == "/api/v1/namespaces" else usual(seen)
            assert run(api, *words, "-n", "shoppin")[1] == "No moves in namespace shoppin\n"
        else:
            with pytest.raises(Unusable, match=r"pod shoppin/shop-0 \(it is in namespace shop, use -n\)"):
                run(api, "explain", "pod", "shop-0", "-n", "shoppin")


@pytest.mark.parametrize(
    "words", [("migrations",), ("migrate", "web-0"), ("explain", "pod/web-0")], ids=lambda it: it[0]
)
def test_a_namespace_that_none_can_bear_is_refused_in_a_context_too(words: tuple[str, ...]) -> None:
    with fake_api.running() as api:
        api.script = cluster(HEAD)
        with pytest.raises(Unusable, match="the namespace of the context, 'BAD_ns', is not accepted: name another"):
            run(api, "-n", "", *words, context="BAD_ns")
        assert run(api, "status", context="BAD_ns")[0] is Ending.DONE


MARKED = {
    "metadata": {
        "name": "spotshift-settings",
        "namespace": "spotshift-system",
        "annotations": {keys.under("example.com/").emergency_stop: "yes"},
    },
    "data": {"settings.yaml": f"{HEAD}labelPrefix: example.com/\n"},
}


@pytest.mark.parametrize("given", [False, True], ids=["as installed", "with a file"])
def test_settings_of_a_file_do_not_hide_the_emergency_stop(given: bool, tmp_path: Path) -> None:
    file, usual = tmp_path / "settings.yaml", cluster(HEAD)
    file.write_text(f"{HEAD}mode: enforce\n")
    told = "example.com/emergency-stop on ConfigMap spotshift-system/spotshift-settings, with 'yes', which stops"
    with fake_api.running() as api:
        api.script = lambda seen: Answer(body=MARKED) if "/configmaps/" in seen.path else usual(seen)
        words = ("--settings", str(file)) if given else ()
        _, out, _ = run(api, "status", "-o", "json", *words)
        assert json.loads(out)["emergencyStop"].startswith(told)
        _, out, _ = run(api, "check", "-o", "json", *words)
        (mode,) = (it for it in json.loads(out)["checks"] if it["check"] == "mode")
        assert (told in mode["text"], " example.com/emergency-stop- lets" in mode["advice"]) == (True, True)
        _, _, err = run(api, "maintenance", "start", "a", *words)
        assert f"no node is drained while the emergency stop is set: {told}" in err


PASSED = {"a time": "2020-01-01T00:00:00Z", "Unix seconds": "1577836800", "no time at all": "0s"}


@pytest.mark.parametrize("deadline", PASSED.values(), ids=PASSED.keys())
def test_a_deadline_that_has_passed_is_refused(deadline: str) -> None:
    with fake_api.running() as api:
        api.script = cluster(HEAD)
        with pytest.raises(Unusable, match=r"--deadline: \S+Z has passed, use a time to come"):
            run(api, "maintenance", "start", "a", "--deadline", deadline)
        assert {it.method for it in api.seen} == {"GET"}


@pytest.mark.parametrize(("words", "told"), [((), True), (("--deadline", "2h"), False)], ids=["none", "another"])
def test_a_deadline_that_is_on_the_node_from_before_is_told(words: tuple[str, ...], told: bool) -> None:
    meta = {"name": "a", "uid": "n", "annotations": {OURS.maintenance_deadline: "2020-01-01T00:00:00Z"}}
    usual, kept = cluster(HEAD), Answer(body={"metadata": meta, "spec": {}, "status": {}})
    with fake_api.running() as api:
        api.script = lambda seen: kept if seen.path == "/api/v1/nodes/a" else usual(seen)
        ended, _, err = run(api, "maintenance", "start", "a", *words)
    line = "warning: node a keeps the deadline 2020-01-01T00:00:00Z; --deadline sets another"
    assert (ended, line in err) == (Ending.DONE, told)


def test_a_deadline_from_before_that_is_no_time_is_told() -> None:
    meta = {"name": "a", "uid": "n", "annotations": {OURS.maintenance_deadline: "tomorrow"}}
    usual, kept = cluster(HEAD), Answer(body={"metadata": meta, "spec": {}, "status": {}})
    with fake_api.running() as api:
        api.script = lambda seen: kept if seen.path == "/api/v1/nodes/a" else usual(seen)
        ended, _, err = run(api, "maintenance", "start", "a")
    wrong = (
        f"{OURS.maintenance_deadline}: 'tomorrow' is not accepted, use a time with its zone from 1970 to 8999 such as"
    )
    assert (ended, err.startswith(f"warning: node a keeps a deadline that means nothing: {wrong}")) == (
        Ending.DONE,
        True,
    )
    assert err.endswith("; --deadline sets another\n")


@pytest.mark.parametrize("words", [(), ("a",), ("-o", "json")], ids=["all", "named", "for programs"])
def test_a_label_that_asks_for_nothing_is_told(words: tuple[str, ...]) -> None:
    meta = {"name": "a", "uid": "n", "labels": {OURS.maintenance: "yes"}}
    node, usual = {"metadata": meta, "spec": {}, "status": {}}, cluster(HEAD)
    given = {
        "/api/v1/nodes/a": Answer(body=node),
        "/api/v1/nodes": Answer(body={"kind": "List", "metadata": {"resourceVersion": "9"}, "items": [node]}),
    }
    with fake_api.running() as api:
        api.script = lambda seen: given[seen.path] if seen.path in given else usual(seen)
        ended, out, err = run(api, "maintenance", "status", *words)
    told = f"warning: node a: {OURS.maintenance}: 'yes' is not accepted, use 'true', or remove the label\n"
    assert (ended, err, bool(out)) == (Ending.DONE, told, True)


END = {"metadata": {"resourceVersion": "9", "annotations": {"k8s.io/initial-events-end": "true"}}}
"""Of a list that is streamed."""


def draining(
    *nodes: dict[str, Any], gone: Sequence[dict[str, Any]] = (), then: Sequence[dict[str, Any]] = ()
) -> fake_api.Script:
    """Nodes that whoever watches them finds in this state, less those that are gone by then; and what comes after."""
    usual = cluster(HEAD)
    listed = [
        *({"type": "ADDED", "object": it} for it in nodes if it not in gone),
        {"type": "BOOKMARK", "object": END},
    ]
    sent = b"".join(json.dumps(it).encode() + b"\n" for it in (*listed, *then))
    named = {f"/api/v1/nodes/{it['metadata']['name']}": it for it in nodes}

    def script(seen: Seen) -> Answer:
        if seen.path in named:
            return Answer(body=named[seen.path])
        return Answer(body=sent, hold=True) if "watch" in seen.query else usual(seen)

    return script


def drained(name: str, remaining: str = "", status: str = "drained") -> dict[str, Any]:
    notes = {OURS.maintenance_status: status, **({OURS.maintenance_remaining: remaining} if remaining else {})}
    meta = {"name": name, "uid": name, "resourceVersion": "8", "labels": {OURS.maintenance: "true"}}
    return {"metadata": {**meta, "annotations": notes}, "spec": {"unschedulable": True}, "status": {}}


KEPT = "shop/a-0: OPTED_OUT: it says so\nshop/a-1: OPTED_OUT: it says so"
DRAINS = {
    "empty": ((drained("a"),), (Ending.DONE, "a: drained\n", "")),
    "pods stay": ((drained("a", KEPT),), (Ending.LEFT, "a: drained, 2 stay\n", "shop/a-1")),
    "on one of two": ((drained("a"), drained("b", KEPT)), (Ending.LEFT, "b: drained, 2 stay\n", "Left on b:")),
    "on both": ((drained("a", KEPT), drained("b", KEPT)), (Ending.LEFT, "a: drained, 2 stay\n", "Left on b:")),
    "not at its end": (
        (drained("a", KEPT), drained("b", "shop/b-0: moving", "draining 1/2")),
        (Ending.TIMED_OUT, "b: draining 1/2\n", "Left on a:"),
    ),
}


@pytest.mark.parametrize(("nodes", "wanted"), DRAINS.values(), ids=DRAINS.keys())
def test_how_a_drain_ends(nodes: tuple[dict[str, Any], ...], wanted: tuple[Ending, str, str]) -> None:
    with fake_api.running() as api:
        api.script = draining(*nodes)
        names = [it["metadata"]["name"] for it in nodes]
        # What does not come to its end has to be waited for; what does is never near the limit.
        limit = f"{patient(2):g}s" if wanted[0] is Ending.TIMED_OUT else "5m"
        ended, out, _ = run(api, "maintenance", "start", *names, "--wait", "--timeout", limit)
        assert (ended, wanted[1] in out, wanted[2] in out) == (wanted[0], True, True), out
        assert ("Left on a:" in out) == bool(OURS.maintenance_remaining in nodes[0]["metadata"]["annotations"])


NEW = {"metadata": {"name": "a", "uid": "new", "resourceVersion": "13"}, "spec": {}, "status": {}}
"""A machine of the same name that has nothing to do with what was asked for."""
GOING = drained("a", status="draining 1/2")
GONE = {"type": "DELETED", "object": build.merged(GOING, {"metadata": {"resourceVersion": "12"}})}
LOST: dict[str, tuple[Sequence[dict[str, Any]], Sequence[dict[str, Any]]]] = {
    "while it was waited for": ((), (GONE,)),
    "and another took its name": ((), (GONE, {"type": "ADDED", "object": NEW})),
    "before the watch began": ((GOING,), ()),
    "before the watch began, and another has its name": ((GOING,), ({"type": "ADDED", "object": NEW},)),
}


@pytest.mark.parametrize(("gone", "then"), LOST.values(), ids=LOST.keys())
def test_a_node_that_is_gone_is_no_longer_waited_for(
    gone: Sequence[dict[str, Any]], then: Sequence[dict[str, Any]]
) -> None:
    """The other one comes to its end last, so that everything about the first is heard."""
    last = {"type": "MODIFIED", "object": build.merged(drained("b"), {"metadata": {"resourceVersion": "20"}})}
    with fake_api.running() as api:
        api.script = draining(GOING, drained("b", status="draining 1/2"), gone=gone, then=(*then, last))
        ended, out, err = run(api, "maintenance", "start", "a", "b", "--wait", "--timeout", "1m")
        assert (ended, err) == (Ending.DONE, "")
        assert "a: the node is gone\n" in out


MOVES = "/apis/spotshift.dev/v1alpha1/namespaces/shop/podmigrations"


def moved(*sent: tuple[str, dict[str, Any]]) -> fake_api.Script:
    """A cluster in which a move that is asked for goes this way, of which a watch tells."""
    usual = cluster(HEAD)

    def script(seen: Seen) -> Answer:
        if seen.path != MOVES or (seen.method == "GET" and "watch" not in seen.query):
            return usual(seen)
        meta = {"name": "m", "namespace": "shop", "uid": "m", "resourceVersion": "5"}
        move = {"metadata": meta, "spec": {"podRef": {"name": "web-0", "uid": "u"}}}
        if seen.method == "POST":
            return Answer(201, move)
        events = [{"type": kind, "object": build.merged(move, changed)} for kind, changed in sent]
        return Answer(body=b"".join(json.dumps(it).encode() + b"\n" for it in events), hold=True)

    return script


def at(version: int, **status: str) -> dict[str, Any]:
    return {"metadata": {"resourceVersion": str(version)}, "status": status}


LISTED: tuple[str, dict[str, Any]] = ("BOOKMARK", END)
DELETED = "error: the move has not ended, it was deleted while it was Pending\n"
WAITS: dict[str, tuple[tuple[tuple[str, dict[str, Any]], ...], tuple[Ending, str]]] = {
    "completed": ((("ADDED", at(8, phase="Completed")), LISTED), (Ending.DONE, "")),
    "cancelled": ((("ADDED", at(8, phase="Cancelled")), LISTED), (Ending.FAILED, "")),
    "deleted before anybody took it up": ((("ADDED", at(5)), LISTED, ("DELETED", at(12))), (Ending.FAILED, DELETED)),
    "deleted before the watch began": ((LISTED,), (Ending.FAILED, DELETED)),
    "deleted and called off": (
        (("ADDED", at(5)), LISTED, ("MODIFIED", at(12, phase="Cancelled")), ("DELETED", at(13))),
        (Ending.FAILED, ""),
    ),
    "another of its name": (
        (("ADDED", build.merged(at(8, phase="Completed"), {"metadata": {"uid": "other"}})), LISTED),
        (Ending.FAILED, DELETED),
    ),
    "not at its end": (
        (("ADDED", at(8, phase="InProgress", step="Evict")), LISTED),
        (Ending.TIMED_OUT, "error: the move has not ended, it is still InProgress Evict\n"),
    ),
}


@pytest.mark.parametrize(("sent", "wanted"), WAITS.values(), ids=WAITS.keys())
def test_how_waiting_for_a_move_ends(
    sent: tuple[tuple[str, dict[str, Any]], ...], wanted: tuple[Ending, str]
) -> None:
    with fake_api.running() as api:
        api.script = moved(*sent)
        limit = f"{patient(2):g}s" if wanted[0] is Ending.TIMED_OUT else "5m"
        ended, _, err = run(api, "migrate", "web-0", "--wait", "--timeout", limit)
        assert (ended, err) == wanted


WAITING = {
    "a move": ("migrate", "web-0", "--wait"),
    "a node": ("maintenance", "start", "a", "--wait"),
    "all moves": ("migrations", "-w"),
}


@pytest.mark.parametrize("words", WAITING.values(), ids=WAITING.keys())
def test_who_may_not_follow_is_told_so(words: tuple[str, ...]) -> None:
    usual = moved()
    denied = status(403, "Forbidden", "you cannot watch this")
    with fake_api.running() as api:
        api.script = lambda seen: denied if "watch" in seen.query else usual(seen)
        with pytest.raises(Unusable, match=r"this cannot be followed: .*you cannot watch this"):
            run(api, *words, "--timeout", "1m")


def test_a_moment_in_which_everybody_is_denied_does_not_end_the_waiting() -> None:
    """As an apiserver that was restarted answers until it has read the roles."""
    told = moved(("ADDED", at(5)), LISTED)
    usual, watches = moved(("MODIFIED", at(12, phase="Completed"))), itertools.count()
    denied = status(403, "Forbidden", "nobody may do anything")

    def script(seen: Seen) -> Answer:
        if "watch" not in seen.query:
            return usual(seen)
        number = next(watches)
        if number == 0:
            return Answer(body=told(seen).body)
        return denied if number == 1 else usual(seen)

    with fake_api.running() as api:
        api.script = script
        assert run(api, "migrate", "web-0", "--wait", "--timeout", "1m")[0] is Ending.DONE


REQUESTED = {"metadata": {"name": "a", "uid": "n", "labels": {OURS.maintenance: "true"}}, "spec": {}, "status": {}}
LEASE = "/apis/coordination.k8s.io/v1/namespaces/spotshift-system/leases/spotshift-descheduler"
HOLDING: dict[str, tuple[str, dict[str, Answer], str]] = {
    "observing": (f"{HEAD}mode: observe\n", {}, "the mode is observe: no node is drained"),
    "not installed": (
        HEAD,
        {"/apis/spotshift.dev/v1alpha1/podmigrations": status(404, "NotFound")},
        "spotshift is not installed in this cluster: no node is drained before it is",
    ),
    "nobody leads": (
        HEAD,
        {LEASE: Answer(body={"metadata": {"name": "spotshift-descheduler"}, "spec": {"holderIdentity": ""}})},
        "no descheduler leads at the moment; a drain begins when one does",
    ),
}


@pytest.mark.parametrize("action", ["start", "status"])
@pytest.mark.parametrize(("settings", "answers", "told"), HOLDING.values(), ids=HOLDING.keys())
def test_what_keeps_a_drain_from_beginning_is_told(
    action: str, settings: str, answers: dict[str, Answer], told: str
) -> None:
    usual = cluster(settings)
    given = {"/api/v1/nodes/a": Answer(body=REQUESTED), **answers}
    with fake_api.running() as api:
        api.script = lambda seen: given[seen.path] if seen.path in given else usual(seen)
        ended, out, err = run(api, "maintenance", action, "a")
        assert (ended, err) == (Ending.DONE, f"warning: {told}\n")
    assert action == "start" or out.splitlines()[1].split() == ["a", "requested", "-", "-", "-", "-"]


def test_a_drain_that_goes_on_is_not_warned_of() -> None:
    usual = cluster(f"{HEAD}mode: observe\n")
    given = {"/api/v1/nodes/a": Answer(body=drained("a"))}
    with fake_api.running() as api:
        api.script = lambda seen: given[seen.path] if seen.path in given else usual(seen)
        assert run(api, "maintenance", "status", "a")[2] == ""


INTERRUPTED = {
    "metadata": {
        "name": "a",
        "uid": "n",
        "resourceVersion": "8",
        "annotations": {OURS.cordoned_by: "spotshift", OURS.interruption_cause: "taint itn"},
    },
    "spec": {"unschedulable": True},
    "status": {},
}


def test_a_cordon_of_an_interruption_is_not_waited_for() -> None:
    with fake_api.running() as api:
        api.script = draining(INTERRUPTED)
        ended, out, err = run(api, "maintenance", "stop", "a", "--wait", "--timeout", "1m")
        assert (ended, out.splitlines()[1:]) == (Ending.DONE, ["a: not drained any more, but interrupted: taint itn"])
        assert err == "warning: node a is emptied and stays closed while its interruption holds: taint itn\n"
        assert run(api, "maintenance", "status", "a")[1] == "node/a is not in maintenance\n"
