"""A move that is only tried: what would come of it is told to people in a line, and to programs as an object."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from console.ending import Ending
from tests.unit.cluster import fake_api
from tests.unit.cluster.fake_api import Answer, Seen, status
from tests.unit.console.test_commands import HEAD, MOVES, cluster, run
from tests.unit.descheduler import build

SOURCE = {"namespace": "shop", "pod": "web-0", "from": "a"}
WENT: dict[str, Any] = {**SOURCE, "target": "b", "mode": "Evict", "cancelled": None, "assumed": []}
SETS = "/apis/apps/v1/replicasets"


def node(name: str) -> dict[str, Any]:
    room = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    ready = [{"type": "Ready", "status": "True", "lastTransitionTime": build.LONG_AGO}]
    return {"metadata": build.meta(name), "spec": {}, "status": {"allocatable": room, "conditions": ready}}


def pod(name: str) -> dict[str, Any]:
    meta = build.meta(name, "shop", labels={"app": "web"}, ownerReferences=[build.owner("ReplicaSet", "web", "shop")])
    ready = [{"type": "Ready", "status": "True", "lastTransitionTime": build.LONG_AGO}]
    running = {"phase": "Running", "startTime": build.LONG_AGO, "conditions": ready}
    return {"metadata": meta, "spec": {"nodeName": "a", "containers": [{"name": "main"}]}, "status": running}


def two_nodes(settings: str, given: Mapping[str, Answer] | None = None) -> fake_api.Script:
    """Two pods of one ReplicaSet on node a, and node b, to which one of them may go."""
    pods = [pod("web-0"), pod("web-1")]
    wanted = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}}
    made = {"metadata": build.meta("web", "shop"), "spec": wanted, "status": {"replicas": 2, "readyReplicas": 2}}
    listed = {"/api/v1/nodes": [node("a"), node("b")], "/api/v1/pods": pods, SETS: [made]}
    usual = cluster(settings)

    def script(seen: Seen) -> Answer:
        if given and seen.path in given:
            return given[seen.path]
        if seen.path == MOVES and seen.method == "POST":
            return Answer(201, build.merged(seen.body, {"metadata": {"namespace": "shop", "uid": "m"}}))
        if seen.path.endswith("/pods/web-0"):
            return Answer(body=pods[0])
        items = {"kind": "List", "metadata": {"resourceVersion": "9"}, "items": listed.get(seen.path, [])}
        return Answer(body=items) if seen.path in listed else usual(seen)

    return script


def tried(*words: str, settings: str = HEAD, given: Mapping[str, Answer] | None = None) -> tuple[Ending, str, str]:
    with fake_api.running() as api:
        api.script = two_nodes(settings, given)
        return run(api, "migrate", "web-0", "--dry-run", *words)


def test_people_get_a_line() -> None:
    ended, out, err = tried()
    assert (ended, out.splitlines()[1:], err) == (Ending.DONE, ["it would go to b by Evict"], "")


@pytest.mark.parametrize("words", [(), ("--to", "b")], ids=["anywhere", "to a node"])
def test_programs_get_where_to_and_how(words: tuple[str, ...]) -> None:
    given = {"/api/v1/nodes/b": Answer(body=node("b"))}
    ended, out, err = tried("-o", "json", *words, given=given)
    assert (ended, json.loads(out), err) == (Ending.DONE, WENT, "")
    assert yaml.safe_load(tried("-o", "yaml", *words, given=given)[1]) == WENT


def test_programs_get_why_it_would_be_cancelled() -> None:
    ended, out, err = tried("-o", "json", settings=f"{HEAD}mode: observe\n")
    why = "mode is observe: nothing new is done"
    wanted: dict[str, Any] = {**SOURCE, "target": None, "mode": None, "cancelled": why, "assumed": []}
    assert (ended, json.loads(out)) == (Ending.FAILED, wanted)
    assert err.splitlines()[-1] == f"error: it would be cancelled: {why}"


@pytest.mark.parametrize("output", ["table", "json"])
def test_what_was_taken_for_granted_is_told(output: str) -> None:
    denied = {"/apis/policy/v1/poddisruptionbudgets": status(403, "Forbidden", "not for you")}
    ended, out, err = tried("-o", output, given=denied)
    line = "poddisruptionbudgets: not allowed to list them (not for you); assumed: no budget limits evictions"
    assert (ended, err) == (Ending.INCOMPLETE, f"warning: {line}\n")
    assert output == "table" or json.loads(out) == {**WENT, "assumed": [line]}


def test_programs_hear_that_nothing_could_be_seen() -> None:
    ended, out, err = tried("-o", "json", given={"/api/v1/nodes": status(403, "Forbidden", "not for you")})
    told = json.loads(out)
    assert (ended, told["target"], told["mode"], told["cancelled"]) == (Ending.INCOMPLETE, None, None, None)
    assert err == f"warning: {told['assumed'][0]}\n"
    assert told["assumed"][0].startswith("whether it would be carried out cannot be seen: ")
