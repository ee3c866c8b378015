"""Whatever is remembered is what would be decided anew, and what a decision depends on is never overlooked."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from policy import keys
from policy.settings import Mode
from tests.unit.webhook import building, cases
from webhook import memory, mutate, selfcheck
from webhook.handle import Outcome, handle
from webhook.memory import Memory
from webhook.reasons import Result
from webhook.tally import Tally

POD: dict[str, Any] = {
    "metadata": {"generateName": "web-", "labels": {"app": "web"}},
    "spec": {"containers": [{"name": "main", "image": "app:1"}]},
}
VIEW = building.view()


def changed(part: str, **fields: object) -> bytes:
    return building.body({**POD, part: {**POD[part], **fields}})


def answers(body: bytes, kept: Memory, view: Any = VIEW) -> Outcome:
    """The answer with this memory, which must be that without any."""
    found = handle(body, view, building.NOW, kept)
    assert found == handle(body, view, building.NOW)
    return found


@pytest.mark.parametrize(
    "path", cases.FILES, ids=[str(path.relative_to(cases.ROOT).with_suffix("")) for path in cases.FILES]
)
def test_golden_cases_are_answered_alike_the_second_time(path: Path) -> None:
    case = cases.load(path)
    view, body, kept = cases.view_of(case), cases.body_of(case, case["pod"]), Memory()
    assert answers(body, kept, view) == answers(body, kept, view)


def test_a_pod_like_another_is_not_decided_again(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Memory()
    first = answers(building.body(POD), kept)
    again = building.body(
        {**POD, "metadata": {**POD["metadata"], "generateName": "other-"}}, uid="of-now", dryRun=True
    )
    expected = handle(again, VIEW, building.NOW)
    for module, name in ((mutate, "decide"), (selfcheck, "applies")):
        monkeypatch.delattr(module, name)
    found = handle(again, VIEW, building.NOW, kept)
    assert found == expected
    assert (found.result, found.uid, found.dry_run) == (Result.PATCHED, "of-now", True)
    assert json.loads(found.body)["response"]["patch"] == json.loads(first.body)["response"]["patch"]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(changed("metadata", labels={"app": "b"}), id="labels"),
        pytest.param(changed("metadata", labels=None), id="labels null"),
        pytest.param(changed("metadata", annotations={building.PREFIX + "spot": "avoid"}), id="annotations"),
        pytest.param(
            changed("metadata", ownerReferences=[{"kind": "DaemonSet", "controller": True}]), id="ownerReferences"
        ),
        pytest.param(changed("spec", nodeName="node-1"), id="nodeName"),
        pytest.param(changed("spec", schedulerName="other"), id="schedulerName"),
        pytest.param(changed("spec", os={"name": "windows"}), id="os"),
        pytest.param(changed("spec", nodeSelector={building.CAPACITY: "spot"}), id="nodeSelector"),
        pytest.param(changed("spec", affinity={}), id="affinity"),
        pytest.param(changed("spec", tolerations=[]), id="tolerations"),
        pytest.param(changed("spec", priorityClassName="high-priority"), id="priorityClassName"),
        pytest.param(changed("spec", priority=5), id="priority"),
        pytest.param(changed("spec", preemptionPolicy="Never"), id="preemptionPolicy"),
        pytest.param(building.body(POD, namespace="kube-system"), id="namespace"),
        pytest.param(building.body(POD, operation="UPDATE"), id="operation"),
        pytest.param(building.body(POD, subResource="status"), id="subresource"),
        pytest.param(building.body(POD, kind={"group": "", "kind": "Node"}), id="kind"),
        pytest.param(building.body(POD, resource={"group": "", "resource": "nodes"}), id="resource"),
        pytest.param(building.body(POD, uid=""), id="no uid"),
        pytest.param(building.body(POD).replace(b"admission.k8s.io/v1", b"admission.k8s.io/v2"), id="version"),
        pytest.param(building.body(POD).replace(b"web", b"w\xffb", 1), id="no text"),
        pytest.param(building.body(POD)[:-1], id="truncated"),
    ],
)
def test_what_a_decision_depends_on_is_looked_at(body: bytes) -> None:
    kept = Memory()
    answers(building.body(POD), kept)
    assert kept.recall(building.body(POD), VIEW) is not None
    assert kept.recall(body, VIEW) is None
    answers(body, kept)


def test_the_same_bytes_in_another_field_are_another_pod() -> None:
    kept = Memory()
    elsewhere = changed("spec", schedulerName="node-1")
    assert answers(changed("spec", nodeName="node-1"), kept).result is Result.LEFT_ALONE
    assert kept.recall(elsewhere, VIEW) is None
    assert answers(elsewhere, kept).skips != answers(changed("spec", nodeName="node-1"), kept).skips


def test_another_view_is_another_matter() -> None:
    kept = Memory()
    assert answers(building.body(POD), kept).result is Result.PATCHED
    observing = building.view(policy={"mode": Mode.OBSERVE.value})
    assert answers(building.body(POD), kept, observing).result is Result.LEFT_ALONE
    assert answers(building.body(POD), kept).result is Result.PATCHED


def test_nothing_is_remembered_while_a_move_is_open() -> None:
    kept, moving = Memory(), replace(VIEW, migrations={("shop", "some-uid"): ()})
    answers(building.body(POD), kept, moving)
    assert kept.recall(building.body(POD), moving) is None


def test_what_could_not_be_applied_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Memory()
    with monkeypatch.context() as broken:
        broken.setattr(selfcheck, "applies", lambda *_: False)
        assert answers(building.body(POD), kept).result is Result.PATCH_UNAPPLICABLE
    assert answers(building.body(POD), kept).result is Result.PATCHED


def test_there_is_an_end_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "REMEMBERED", 2)
    kept = Memory()
    for name in ("a", "b", "c"):
        answers(changed("metadata", labels={"app": name}), kept)
    known = [kept.recall(changed("metadata", labels={"app": name}), VIEW) is not None for name in ("a", "b", "c")]
    assert known == [False, False, True]


@pytest.mark.parametrize(
    ("length", "known"),
    [
        pytest.param(memory.KEY_LIMIT_BYTES // 2, True, id="long"),
        pytest.param(memory.KEY_LIMIT_BYTES, False, id="too long"),
    ],
)
def test_it_does_not_grow_with_the_pods(length: int, known: bool) -> None:
    kept = Memory()
    body = changed("metadata", annotations={"of-a-user": "x" * length})
    assert answers(body, kept).result is Result.PATCHED
    assert (kept.recall(body, VIEW) is not None) is known


def test_pods_of_a_mix_are_not_remembered() -> None:
    """Two pods with the same bytes get different sides."""
    owner = {"kind": "ReplicaSet", "name": "web-6f7", "uid": "u-rs", "controller": True}
    body = building.body({**POD, "metadata": {**POD["metadata"], "ownerReferences": [owner]}})
    counts = Tally("me", keys.under(), lambda: building.NOW)
    view, kept = replace(building.view(policy={"placement": {"spotPercentage": 50}}), counts=counts), Memory()
    sides = [handle(body, view, building.NOW, kept).choice for _ in range(4)]
    assert [it.side.value for it in sides if it is not None] == ["on-demand", "spot", "on-demand", "spot"]
