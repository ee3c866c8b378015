"""Both ways to install, and both ways off again in the middle of moves: nothing of ours is left anywhere."""

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3
import yaml

from testbed import audit, bed, cordons, extras, install, jobs, kubelet, objects, process, sources
from testbed.api import Api, Object
from testbed.bed import ControlPlane
from testbed.binaries import Binaries
from testbed.waiting import eventually
from tests.unit.manifests import test_monitoring as monitoring

ROOT = Path(__file__).parents[2]
MANIFESTS = ROOT / "manifests"
PREFIX = "scheduler.alpha.kubernetes.io/"
SYSTEM = sources.NAMESPACE
FAIL_OPEN = "apiserver_admission_webhook_fail_open_count"
"""Is there once it has happened; looked for in the tests of the manifests."""
THEIRS = {f"{PREFIX}maintenance"}
"""What the test itself wrote, as a user."""
POLICY = {
    "apiVersion": "spotshift.dev/v1alpha1",
    "kind": "Policy",
    "enabledStrategies": ["NodeMaintenance"],
    "migrations": {"hintPropagation": "0s"},
}
SLOW = {"testbed.spotshift.dev/ready-delay": "8s"}
"""Long enough for an uninstall to begin while replacements are not Ready yet."""

pytestmark = pytest.mark.timeout(1800)
"""Where helm is not found it is built first."""


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory, control_plane_binaries: Binaries) -> Iterator[ControlPlane]:
    home = tmp_path_factory.mktemp("uninstall") / "bed"
    yield bed.up(home, control_plane_binaries, nodes=3, spot=1, owner=os.getpid())
    bed.down(home)


# ---- what is under way

EVERYTHING = frozenset({"AwaitReplacement", "AwaitAvailable", "temporary budget", "cordon", "second replica"})


def begin(running: ControlPlane, until: frozenset[str] = EVERYTHING) -> None:
    """A drain in its middle: a cordon, evictions, a temporary budget, and a second pod for a single replica."""
    kube, node = running.api(), "on-demand-0"
    kube.patch("configmaps", "spotshift-settings", {"data": {"settings.yaml": yaml.safe_dump(POLICY)}}, SYSTEM)
    others = [it["metadata"]["name"] for it in kube.list("nodes") if it["metadata"]["name"] != node]
    with cordons.cordoned(kube, others):
        kube.create("deployments", objects.deployment("web", replicas=4, annotations=SLOW), "default")
        kube.create("deployments", objects.deployment("single", replicas=1, annotations=SLOW), "default")
        eventually(
            lambda: sum(map(objects.is_ready, kube.list("pods", "default"))),
            until=lambda ready: ready == 5,
            timeout=60,
            what="5 Ready pods",
        )
    kube.patch("nodes", node, {"metadata": {"labels": {f"{PREFIX}maintenance": "true"}}})
    eventually(lambda: under_way(kube), until=lambda seen: seen >= until, timeout=90, what="moves in the middle")


def under_way(kube: Api) -> set[str]:
    moves = kube.list("podmigrations", "default")
    found = {it["status"]["step"] for it in moves if it.get("status", {}).get("phase") == "InProgress"}
    if any(
        it["metadata"]["name"].endswith("-rescheduler-pdb") for it in kube.list("poddisruptionbudgets", "default")
    ):
        found.add("temporary budget")
    if any(f"{PREFIX}cordoned-by" in it["metadata"].get("annotations", {}) for it in kube.list("nodes")):
        found.add("cordon")
    if kube.get("deployments", "single", "default")["spec"]["replicas"] == 2:
        found.add("second replica")
    return found


# ---- what is left


def everything(running: ControlPlane) -> Iterator[tuple[str, Object]]:
    """Every object of every kind that can be listed. Events tell what happened, and expire by themselves."""
    kube = running.api()
    groups = kube.request("GET", "/apis")["groups"]
    for where in ("/api/v1", *(f"/apis/{it['preferredVersion']['groupVersion']}" for it in groups)):
        if "metrics.k8s.io" in where:
            continue  # measurements of pods and nodes under their names
        for kind in kube.request("GET", where)["resources"]:
            if "list" in kind["verbs"] and kind["name"] not in ("events", "componentstatuses"):
                yield from ((kind["name"], it) for it in kube.request("GET", f"{where}/{kind['name']}")["items"])


def ours(found: Object) -> list[str]:
    """What in an object speaks of us. Who wrote which field last is the API server's own book."""
    bare = {**found, "metadata": {k: v for k, v in found["metadata"].items() if k != "managedFields"}}
    text = json.dumps(bare).replace("testbed.spotshift.dev", "")
    words = set(re.findall(rf"spotshift[\w.-]*|{re.escape(PREFIX)}[\w-]+", text))
    return sorted(words - THEIRS)


def left(running: ControlPlane) -> list[str]:
    return [
        f"{name} {it['metadata'].get('namespace', '')}/{it['metadata']['name']}: {', '.join(ours(it))}"
        for name, it in everything(running)
        if ours(it)
    ]


def clean(running: ControlPlane, *, but: Callable[[str], bool] = lambda _: False) -> None:
    """Nothing of ours is left, the workloads are as users wrote them, and our processes have ended."""
    eventually(lambda: [it for it in left(running) if not but(it)], until=lambda it: not it, timeout=60, interval=1.0)
    kube = running.api()
    assert not any(it["spec"].get("unschedulable") for it in kube.list("nodes"))
    assert kube.get("deployments", "single", "default")["spec"]["replicas"] == 1
    assert kube.get("deployments", "web", "default")["spec"]["replicas"] == 4
    eventually(
        lambda: [name for name in process.mains(running.home) if name.startswith("spotshift")],
        until=lambda names: not names,
        what="no process of ours",
    )
    for name in ("web", "single"):
        kube.delete("deployments", name, "default", propagationPolicy="Foreground")
    kube.patch("nodes", "on-demand-0", {"metadata": {"labels": {f"{PREFIX}maintenance": None}}})
    eventually(lambda: kube.list("pods", "default"), until=lambda pods: not pods, timeout=60, what="no pods")


# ---- the ways


def make_uninstall(running: ControlPlane, overlay: str) -> str:
    kubectl = running.binaries["kubectl"]
    environ = {**os.environ, "KUBECONFIG": str(running.kubeconfig)}
    done = subprocess.run(
        # The Python that runs this test, and no look at the environment: a test must never make that anew.
        ["make", "uninstall", f"OVERLAY={overlay}", f"KUBECTL={kubectl}", "READY=", f"PY={sys.executable}"],
        cwd=ROOT,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def scraped(running: ControlPlane) -> str:
    """What a scraper gets from every process of ours."""
    own = [one.ports["probes"] for pod in kubelet.remembered(running) for one in pod.processes]
    pages = [urllib3.request("GET", f"http://127.0.0.1:{port}/metrics").data.decode() for port in own]
    return "\n".join(pages)


def test_kustomize(empty: ControlPlane) -> None:
    before = {f"{name} {it['metadata']['name']}" for name, it in everything(empty) if not ours(it)}
    install.install(empty, MANIFESTS / "overlays" / "production", tell=lambda _: None)
    begin(empty)
    page = scraped(empty)
    wanted = {name for _, expression in monitoring.ASKED for name, _ in monitoring.series(expression)}
    for name in wanted - {FAIL_OPEN}:
        declared = re.sub(r"_(bucket|count|sum)$", "", name)
        assert re.search(rf"^# TYPE {declared} |^{name}[ {{]", page, re.MULTILINE), f"{name} is not scraped"
    told = make_uninstall(empty, "production")
    assert "nothing of ours is left" in told
    assert f"label {PREFIX}maintenance is yours and stays on: on-demand-0\n" in told
    clean(empty)
    assert before >= {f"{name} {it['metadata']['name']}" for name, it in everything(empty) if name == "nodes"}


@pytest.fixture(scope="module")
def chart() -> sources.Chart:
    values: dict[str, Any] = {"cleanup": {"podAnnotations": jobs.UNTIL_TOLD}}
    return sources.Chart(extras.find("helm", os.environ), MANIFESTS / "chart", values)


def asked_for(running: ControlPlane, account: str) -> Iterator[tuple[str, str, int]]:
    """Verb, resource and answer of every request of a ServiceAccount."""
    for it in audit.requests(running.layout.audit_log, audit.of_account(SYSTEM, account)):
        yield it.verb, re.sub(r"\.[^/]+", "", it.resource), it.code


def own_rights() -> set[tuple[str, str]]:
    """What the cleanup may beyond what the descheduler may."""
    documents = yaml.safe_load_all((MANIFESTS / "cleanup" / "rbac.yaml").read_text())
    rules = [rule for it in documents for rule in it.get("rules", ())]
    return {(verb, name) for rule in rules for verb in rule["verbs"] for name in rule["resources"]}


def test_helm(empty: ControlPlane, chart: sources.Chart) -> None:
    install.install(empty, chart, tell=lambda _: None)
    begin(empty)
    done: list[subprocess.CompletedProcess[str]] = []
    hook = threading.Thread(target=lambda: done.append(jobs.run(empty, "spotshift-cleanup", SYSTEM)))
    hook.start()
    told = chart.run(empty, "uninstall", sources.RELEASE)
    hook.join(timeout=60)
    assert [it.returncode for it in done] == [0], done
    assert 'release "spotshift" uninstalled' in told
    asked = list(asked_for(empty, "spotshift-cleanup"))
    assert [it for it in asked if it[2] in (401, 403)] == []
    assert own_rights() <= {(verb, what) for verb, what, _ in asked}, "every right of its own is used"
    clean(
        empty,
        but=lambda it: it.startswith(
            ("namespaces /", f"configmaps {SYSTEM}/kube-root", f"serviceaccounts {SYSTEM}/default")
        ),
    )
    empty.kubectl("delete", "namespace", SYSTEM)


@pytest.mark.campaign
def test_nobody_leads_any_more(empty: ControlPlane) -> None:
    """The descheduler is gone for good while a single replica is doubled: the cleanup stands in for it."""
    install.install(empty, MANIFESTS / "overlays" / "minimal", tell=lambda _: None)
    begin(empty)
    empty.kubectl("-n", SYSTEM, "delete", "deployment", "spotshift-descheduler")
    eventually(
        lambda: [name for name in process.mains(empty.home) if "descheduler" in name],
        until=lambda names: not names,
        what="no descheduler",
    )
    assert under_way(empty.api()) & {"AwaitReplacement", "AwaitAvailable"}
    told = make_uninstall(empty, "minimal")
    assert "nothing of ours is left" in told
    clean(empty)


@pytest.mark.campaign
@pytest.mark.parametrize("moment", sorted(EVERYTHING - {"AwaitReplacement"}))
def test_at_other_moments(empty: ControlPlane, moment: str) -> None:
    """As soon as the first of it is there, and before the rest is."""
    install.install(empty, MANIFESTS / "overlays" / "minimal", tell=lambda _: None)
    begin(empty, frozenset({moment}))
    make_uninstall(empty, "minimal")
    clean(empty)
