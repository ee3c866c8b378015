"""Granted and used rights, from manifests and from an audit log: which are missing, which are too many."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed import audit, command, remains, rights
from testbed.rights import Used

MANIFESTS = """\
{kind: ServiceAccount, metadata: {name: reader}}
---
kind: ClusterRole
metadata: {name: reads}
rules:
- {apiGroups: [""], resources: [pods], verbs: [list, watch]}
- {apiGroups: [apps], resources: [deployments/scale], verbs: [patch]}
---
kind: ClusterRoleBinding
metadata: {name: reads}
roleRef: {kind: ClusterRole, name: reads}
subjects: [{kind: ServiceAccount, name: reader}]
"""
GIVEN = {"reader": {("list", "pods"), ("watch", "pods"), ("patch", "deployments.apps/scale")}}
READER = audit.of_account("shop", "reader")
POD = {"resource": "pods", "namespace": "shop", "name": "web"}
SCALE = {"resource": "deployments", "apiGroup": "apps", "subresource": "scale"}


def line(
    verb: str, ref: dict[str, str], *, code: int = 200, stage: str = "", agent: str = "reader/1", **more: Any
) -> str:
    decision = "forbid" if code == 403 else "allow"
    said = {
        "stage": stage or "ResponseComplete",
        "verb": verb,
        "user": {"username": READER},
        "userAgent": agent,
        "objectRef": ref,
        "responseStatus": {"code": code},
        "stageTimestamp": "2026-01-02T03:04:05.000000Z",
        "annotations": {"authorization.k8s.io/decision": decision},
    }
    return json.dumps(said | more) + "\n"


def log(folder: Path, *lines: str) -> Path:
    path = folder / "logs" / "audit.log"
    path.parent.mkdir(parents=True)
    path.write_text("".join(lines))
    return path


def test_rights_by_account() -> None:
    assert rights.granted(list(yaml.safe_load_all(MANIFESTS))) == GIVEN


def test_requests_of_one_user(tmp_path: Path) -> None:
    other = line("get", POD, user={"username": f"{READER}s"})
    path = log(tmp_path, line("create", POD, code=403), other, line("patch", SCALE), line("get", POD)[:-1])
    first, second = audit.requests(path, READER)
    assert (first.verb, first.resource, first.namespace, first.name) == ("create", "pods", "shop", "web")
    assert (first.code, first.decision, second.resource) == (403, "forbid", "deployments.apps/scale")


def test_a_watch_counts_once(tmp_path: Path) -> None:
    path = log(
        tmp_path, line("watch", POD, stage="ResponseStarted"), line("watch", POD), line("watch", POD, code=403)
    )
    assert [it.code for it in audit.requests(path, READER)] == [200, 403]


USED = {
    "all of it": (("watch", "pods"), ("patch", "deployments.apps/scale")),
    "a list beside the watch": (("list", "pods"), ("watch", "pods"), ("patch", "deployments.apps/scale")),
}


@pytest.mark.parametrize("taken", USED.values(), ids=USED.keys())
def test_nothing_is_too_much(taken: tuple[rights.Right, ...]) -> None:
    used = Used()
    for right in taken:
        used.add("reader", right, 2)
    given = rights.roles(list(yaml.safe_load_all(MANIFESTS)))
    assert rights.unused(given, used) == []
    assert "never" not in rights.matrix(given, used)


def test_what_nobody_used_is_told_by_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rbac.yaml").write_text(MANIFESTS)
    used = Used()
    used.add("reader", ("watch", "pods"), 1200)
    (tmp_path / "rights.json").write_text(remains.told(used))
    asked = ["rights", "--manifests", str(tmp_path), "--file", str(tmp_path / "rights.json")]
    assert command.main(asked) == 1
    printed = capsys.readouterr()
    assert "| ClusterRole reads | reader | pods | list as watch, watch 1,200 |" in printed.out
    assert "| ClusterRole reads | reader | deployments.apps/scale | patch **never** |" in printed.out
    assert printed.err == "never used: ClusterRole reads grants patch deployments.apps/scale\n"
    used.add("reader", ("patch", "deployments.apps/scale"), 1)
    (tmp_path / "rights.json").write_text(remains.told(used))
    assert command.main(asked) == 0
    used.add("reader", ("watch", "pods"), 1, refused=True)  # by a server that has just started
    used.add("somebody", ("get", "secrets"), 1, refused=True)
    (tmp_path / "rights.json").write_text(remains.told(used))
    assert command.main(asked) == 0
    capsys.readouterr()
    used.add("reader", ("get", "secrets"), 1, refused=True)
    (tmp_path / "rights.json").write_text(remains.told(used))
    assert command.main(asked) == 1
    assert capsys.readouterr().err == "not granted: reader asked to get secrets\n"


def test_two_runs_are_added_up() -> None:
    first, second = Used(), Used()
    first.add("reader", ("watch", "pods"), 2)
    second.add("reader", ("watch", "pods"), 3)
    second.add("reader", ("get", "secrets"), 1, refused=True)
    first.join(second)
    assert first.counts == {"reader": {("watch", "pods"): 5}}
    assert first.refused == {"reader": {("get", "secrets"): 1}}


def test_one_that_stands_in_for_another_need_not_use_all_of_its_role() -> None:
    second = {
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "too"},
        "roleRef": {"kind": "ClusterRole", "name": "reads"},
    }
    documents = [*yaml.safe_load_all(MANIFESTS), second | {"subjects": [{"name": "stand-in"}]}]
    used = Used()
    used.add("stand-in", ("watch", "pods"), 1)
    used.add("reader", ("patch", "deployments.apps/scale"), 1)
    (role,) = rights.roles(documents)
    assert role.accounts == ("reader", "stand-in")
    assert rights.unused([role], used) == []


def test_control_planes_leave_notes_that_are_put_together(tmp_path: Path) -> None:
    environ = {remains.FOLDER: str(tmp_path / "notes")}
    for number, lines in enumerate(([line("patch", SCALE), line("get", POD, code=403)], [line("patch", SCALE)])):
        by_a_test = line("delete", POD, agent="python-urllib3/2")
        log(tmp_path / str(number), *lines, by_a_test)
        remains.note(tmp_path / str(number), environ)
        remains.note(tmp_path / str(number), {})
    found = remains.gather(tmp_path / "notes")
    assert found.beds == 2
    assert found.used.counts == {"reader": {("patch", "deployments.apps/scale"): 2}}
    assert found.used.refused == {"reader": {("get", "pods"): 1}}
    assert found.leaks == []
