"""`python -m webhook review`."""

import io
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from tests.unit.webhook import building, pods
from webhook import explain
from webhook.__main__ import main
from webhook.mutate import Decision
from webhook.patch import Op

SPOT = f"{building.PREFIX}spot"
POD: building.Json = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {"containers": []},
}


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[building.Json], str]:
    code = main(["review", *arguments])
    captured = capsys.readouterr()
    return code, list(yaml.safe_load_all(captured.out)), captured.err


def write(path: Path, *documents: object) -> str:
    path.write_text(yaml.safe_dump_all(documents))
    return str(path)


def workload(kind: str, spec: building.Json, **annotations: str) -> building.Json:
    metadata = {"name": "web", "annotations": {building.PREFIX + key: value for key, value in annotations.items()}}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec}


TEMPLATE = {"template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": []}}}


def test_a_pod(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, (report,), _ = run(capsys, write(tmp_path / "pod.yaml", POD))
    assert code == 0
    assert report["decision"] == "PATCHED"
    assert report["because"] == {"SPOT_PREFERRED": "spot nodes are preferred"}
    assert report["intent"]["spot"] == {"value": "prefer", "from": "settings placement.spot"}
    assert [op["path"] for op in report["patch"]] == ["/metadata/labels", "/spec/affinity"]
    assert report["warnings"] == []
    assert report["assumed"][0] == "nodes of both capacities, labelled node.kubernetes.io/capacity"


def test_the_whole_page_for_a_pod_that_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pod = POD | {"metadata": {"name": "web", "labels": {f"{building.PREFIX}rescheduling": "disabled"}}}
    assert main(["review", write(tmp_path / "pod.yaml", pod)]) == 0
    assert capsys.readouterr().out == (
        "decision: LEFT_ALONE\n"
        "because:\n"
        "  OPTED_OUT: rescheduling is disabled for the pod\n"
        "intent:\n"
        "  spot:\n    value: prefer\n    from: settings placement.spot\n"
        "  tier:\n    value: standard\n    from: settings placement.tier\n"
        "  rescheduling:\n    value: disabled\n    from: pod scheduler.alpha.kubernetes.io/rescheduling\n"
        "  spot_percentage:\n    value: null\n    from: settings placement.spotPercentage\n"
        "  min_on_demand:\n    value: null\n    from: settings placement.minOnDemand\n"
        "assumed:\n"
        "- nodes of both capacities, labelled node.kubernetes.io/capacity\n"
        "- the PriorityClasses of the settings exist\n"
        "- the namespace has no annotations of ours, and no pod is being moved\n"
        "warnings: []\n"
        "patch: []\n"
    )


@pytest.mark.parametrize(
    ("document", "decision", "origin"),
    [
        pytest.param(workload("Deployment", TEMPLATE, spot="ignore"), "PATCHED", f"workload {SPOT}", id="Deployment"),
        pytest.param(
            workload("StatefulSet", TEMPLATE, spot="ignore"), "PATCHED", f"workload {SPOT}", id="StatefulSet"
        ),
        pytest.param(workload("Rollout", TEMPLATE, spot="ignore"), "PATCHED", f"workload {SPOT}", id="any template"),
        pytest.param(
            workload("CronJob", {"jobTemplate": {"spec": TEMPLATE}}, spot="ignore"),
            "PATCHED",
            f"workload {SPOT}",
            id="CronJob",
        ),
        pytest.param(workload("DaemonSet", TEMPLATE), "LEFT_ALONE", None, id="DaemonSet"),
        pytest.param(
            json.loads(building.body(POD)), "LEFT_ALONE", None, id="a review of a namespace that is not known"
        ),
    ],
)
def test_what_a_file_may_hold(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    document: building.Json,
    decision: str,
    origin: str | None,
) -> None:
    code, (report,), _ = run(capsys, write(tmp_path / "file.yaml", document))
    assert (code, report["decision"]) == (0, decision)
    assert report.get("intent", {}).get("spot", {}).get("from") == origin


@pytest.mark.parametrize(
    ("metadata", "decision"),
    [
        pytest.param({"uid": "u"}, "PATCHED", id="the scheduler's choice, in a pod that runs"),
        pytest.param({}, "LEFT_ALONE", id="the user's choice, in a pod that is to be created"),
        pytest.param(
            {"uid": "u", "ownerReferences": [{"kind": "DaemonSet", "controller": True}]}, "LEFT_ALONE", id="DaemonSet"
        ),
    ],
)
def test_a_pod_with_a_node(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], metadata: building.Json, decision: str
) -> None:
    pod = POD | {"metadata": POD["metadata"] | metadata, "spec": {"containers": [], "nodeName": "node-1"}}
    code, (report,), _ = run(capsys, write(tmp_path / "pod.yaml", pod))
    assert (code, report["decision"]) == (0, decision)
    assert (explain.PLACED in report["assumed"]) is ("uid" in metadata)


def test_several_documents_and_lists(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": [POD, workload("Deployment", TEMPLATE)]}
    code, reports, _ = run(capsys, write(tmp_path / "file.yaml", listed, None, POD))
    assert (code, len(reports)) == (0, 3)


def test_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(POD)))
    code, (report,), _ = run(capsys, "-")
    assert (code, report["decision"]) == (0, "PATCHED")


def test_settings_and_a_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = {"apiVersion": "spotshift.dev/v1alpha1", "kind": "Policy", "placement": {"spotWeight": 42}}
    namespace = {"kind": "Namespace", "metadata": {"name": "shop", "annotations": {SPOT: "avoid"}}}
    node = {"kind": "Node", "metadata": {"name": "n", "labels": {"karpenter.sh/capacity-type": "spot"}}}
    rs = {"kind": "ReplicaSet", "metadata": {"name": "web-6f7", "namespace": "shop", "uid": pods.OWNER}}
    moving = pods.move("migration-1790000000000-a", "w-1", "w-2", owner={"kind": "ReplicaSet", "uid": pods.OWNER})
    dump = {"kind": "List", "items": [namespace, node, rs, moving, {"kind": "Secret", "metadata": {}}]}
    code, (report,), _ = run(
        capsys,
        write(tmp_path / "pod.yaml", POD),
        "--settings",
        write(tmp_path / "settings.yaml", settings),
        "--cluster-dump",
        write(tmp_path / "dump.yaml", dump),
    )
    assert code == 0
    assert report["because"] == {"SPOT_AVOIDED": "spot nodes are avoided"}
    assert report["intent"]["spot"]["from"] == f"namespace {SPOT}"
    assert "assumed" not in report
    (term,) = report["patch"][1]["value"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert (term["weight"], term["preference"]["matchExpressions"][0]["key"]) == (42, "karpenter.sh/capacity-type")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("", "there is no object in it", id="empty"),
        pytest.param("a: [", "not YAML or JSON", id="not YAML"),
        pytest.param("- 1", "not a Kubernetes object", id="a list"),
        pytest.param("hello", "not a Kubernetes object", id="a word"),
        pytest.param("kind: Service\nmetadata: {}\nspec: {}", "Service has no pod template", id="not a workload"),
        pytest.param("kind: Deployment\nmetadata: 3", "metadata is not a mapping", id="metadata a number"),
        pytest.param("kind: Pod\nmetadata: {}", "no pod with metadata and spec", id="no spec"),
        pytest.param("kind: Pod\nmetadata: {labels: {a: true}}\nspec: {}", "labels[...]", id="label not a text"),
        pytest.param("kind: Pod\nmetadata: &it {x: *it}\nspec: {}", "not a Kubernetes object", id="within itself"),
        pytest.param("kind: AdmissionReview\napiVersion: x", "must be admission.k8s.io/v1", id="wrong review"),
        pytest.param(
            "kind: Pod\nmetadata: {a: 2026-01-01, b: {1: 2}, c: !!set {x}}\nspec: {}", "", id="odd YAML types"
        ),
    ],
)
def test_a_file_that_cannot_be_understood(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, told: str
) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(text)
    code, _, error = run(capsys, str(path))
    assert (code == 1) is bool(told)
    assert error.startswith(f"error: {path}: ") is bool(told)
    assert told in error


def test_a_missing_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, error = run(capsys, str(tmp_path / "absent"))
    assert (code, error) == (1, f"error: {tmp_path / 'absent'}: No such file or directory\n")


def test_a_file_of_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_bytes(b"\xff\xfe")
    code, _, error = run(capsys, str(tmp_path / "file"))
    assert (code, error) == (1, f"error: {tmp_path / 'file'}: not UTF-8 text\n")


def test_settings_with_mistakes_are_all_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = write(
        tmp_path / "s.yaml", {"apiVersion": "spotshift.dev/v1alpha1", "kind": "Policy", "mode": "x", "y": 1}
    )
    code, _, error = run(capsys, write(tmp_path / "pod.yaml", POD), "--settings", settings)
    assert code == 1
    assert len(error.splitlines()) == 2


def test_a_dump_with_an_odd_object_names_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump = write(tmp_path / "d.yaml", {"kind": "Node", "metadata": {"name": "n", "labels": 3}})
    code, _, error = run(capsys, write(tmp_path / "pod.yaml", POD), "--cluster-dump", dump)
    assert code == 1
    assert error.startswith(f"error: {dump}: Node n: Expected `object | null`")


def test_a_pod_that_is_being_moved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    owner = {"kind": "ReplicaSet", "name": "web-6f7", "uid": pods.OWNER, "controller": True}
    moving = pods.move("migration-1790000000000-a", "w-1", "w-2", owner=owner)
    moving["metadata"]["creationTimestamp"] = datetime.now(UTC).isoformat()
    namespace = {"kind": "Namespace", "metadata": {"name": "shop"}}
    pod = POD | {"metadata": {"generateName": "web-", "namespace": "shop", "ownerReferences": [owner]}}
    dump = write(tmp_path / "dump.yaml", {"kind": "List", "items": [moving, namespace]})
    code, (report,), _ = run(capsys, write(tmp_path / "pod.yaml", pod), "--cluster-dump", dump)
    assert (code, report["migrations"]) == (0, ["migration-1790000000000-a"])
    assert "HINTED" in report["because"]


def test_a_patch_that_would_not_apply_is_told() -> None:
    report = explain.report(building.parsed(POD), Decision(ops=(Op("remove", "/spec/priority"),)))
    assert report["decision"] == "PATCH_UNAPPLICABLE"


def test_wrong_usage() -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["review"])
    assert stopped.value.code == 2
