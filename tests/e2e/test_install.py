"""The whole product from its own manifests: `up`, `install`, and what a user does then with kubectl."""

import json
import os
import re
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509

from testbed import audit, bed, folder, install, kubelet, ports, process
from testbed import rights as testbed_rights
from testbed.api import Object
from testbed.audit import Request
from testbed.bed import ControlPlane
from testbed.binaries import Binaries
from testbed.objects import CAPACITY
from testbed.waiting import eventually

ROOT = Path(__file__).parents[2]
PREFIX = "scheduler.alpha.kubernetes.io/"
SYSTEM = "spotshift-system"
PROCESSES = ("spotshift-certs-0.certs", "spotshift-webhook-0.webhook", "spotshift-webhook-1.webhook")


def command(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "testbed", *map(str, arguments)]
    return subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False, timeout=180)


def launched(home: Path) -> ControlPlane:
    up = command("up", "--dir", home, "--nodes", "2", "--spot", "2")
    assert up.returncode == 0, up.stderr
    done = command("install", "--dir", home)
    assert done.returncode == 0, done.stderr
    for name in PROCESSES:
        assert f"\n{name} is ready: " in done.stdout
    return bed.attach(home)


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory, control_plane_binaries: Binaries) -> Iterator[ControlPlane]:
    assert control_plane_binaries
    home = tmp_path_factory.mktemp("product") / "bed"
    yield launched(home)
    bed.down(home)


def pods_of(product: ControlPlane, app: str) -> list[Object]:
    return product.api().list("pods", "default", labels=f"app={app}")


def rule_of(pod: Object) -> tuple[str, str]:
    """Operator of the one preferred rule, and the capacity type of the node it led to."""
    affinity = pod["spec"]["affinity"]["nodeAffinity"]
    (term,) = affinity["preferredDuringSchedulingIgnoredDuringExecution"]
    (expression,) = term["preference"]["matchExpressions"]
    assert (expression["key"], expression["values"]) == (CAPACITY, ["spot"])
    return expression["operator"], pod["spec"]["nodeName"].rsplit("-", 1)[0]


def placed(product: ControlPlane, app: str, count: int) -> list[tuple[str, str]]:
    found = eventually(
        lambda: pods_of(product, app),
        until=lambda pods: len(pods) == count and all(pod["spec"].get("nodeName") for pod in pods),
        what=f"{count} scheduled pods of {app}",
    )
    assert {pod["metadata"]["labels"].get(f"{PREFIX}managed") for pod in found} == {"true"}
    return sorted(map(rule_of, found))


def test_a_deployment_goes_to_spot_and_its_annotation_holds_for_the_next_pod(product: ControlPlane) -> None:
    product.kubectl("create", "deployment", "web", "--image=app:1", "--replicas=3")
    assert placed(product, "web", 3) == [("In", "spot")] * 3
    product.kubectl("annotate", "deployment", "web", f"{PREFIX}spot=avoid")

    def next_pod() -> tuple[str, str]:
        product.kubectl("scale", "deployment", "web", "--replicas=3")
        eventually(lambda: len(pods_of(product, "web")), until=lambda count: count == 3)
        product.kubectl("scale", "deployment", "web", "--replicas=4")
        return max(placed(product, "web", 4))  # NotIn sorts after In

    eventually(next_pod, until=lambda rule: rule == ("NotIn", "on-demand"), what="a pod that avoids spot")


def shown_serial(port: int) -> int:
    pem = ssl.get_server_certificate(("127.0.0.1", port), timeout=5)
    return x509.load_pem_x509_certificate(pem.encode()).serial_number


def https_ports(product: ControlPlane) -> list[int]:
    return [
        one.ports["https"] for pod in kubelet.remembered(product) for one in pod.processes if "https" in one.ports
    ]


def test_a_new_certificate_reaches_every_replica(product: ControlPlane) -> None:
    """certs makes a lost Secret anew, the mount follows, and the webhooks serve it without a restart."""
    replicas, before = https_ports(product), install.status(product)
    assert len(replicas) == 2
    old = {shown_serial(port) for port in replicas}
    product.kubectl("-n", SYSTEM, "delete", "secret", "spotshift-webhook-tls")
    eventually(
        lambda: {shown_serial(port) for port in replicas},
        until=lambda seen: len(seen) == 1 and not seen & old,
        what="the new leaf on both replicas",
    )
    made = product.kubectl("run", "after-rotation", "--image=app:1", "--dry-run=server", "-o", "json")
    assert json.loads(made)["metadata"]["labels"][f"{PREFIX}managed"] == "true"
    assert install.status(product) == before


def test_settings_of_the_config_map_are_followed(product: ControlPlane) -> None:
    settings = "apiVersion: spotshift.dev/v1alpha1\nkind: Policy\nplacement: {spot: ignore}\n"
    before = product.api().get("configmaps", "spotshift-settings", SYSTEM)["data"]

    def has_rule() -> bool:
        made = product.kubectl("run", "plain", "--image=app:1", "--dry-run=server", "-o", "json")
        return "affinity" in json.loads(made)["spec"]

    assert has_rule()
    product.api().patch("configmaps", "spotshift-settings", {"data": {"settings.yaml": settings}}, SYSTEM)
    eventually(lambda: [has_rule() for _ in range(4)], until=lambda seen: not any(seen), what="both replicas")
    product.api().patch("configmaps", "spotshift-settings", {"data": before}, SYSTEM)
    eventually(lambda: [has_rule() for _ in range(4)], until=all, what="both replicas")


def rights(product: ControlPlane) -> dict[str, list[Mapping[str, Any]]]:
    """The rules of each ServiceAccount that the manifests make."""
    documents = list(yaml.safe_load_all(product.kubectl("kustomize", str(install.MANIFESTS))))
    roles = {(one["kind"], one["metadata"]["name"]): one["rules"] for one in documents if "rules" in one}
    found: dict[str, list[Mapping[str, Any]]] = {
        one["metadata"]["name"]: [] for one in documents if one["kind"] == "ServiceAccount"
    }
    for binding in (one for one in documents if "roleRef" in one):
        for subject in binding["subjects"]:
            found[subject["name"]] += roles[binding["roleRef"]["kind"], binding["roleRef"]["name"]]
    return found


def is_granted(rule: Mapping[str, Any], asked: Request) -> bool:
    named = rule.get("resourceNames", [asked.name])
    return (asked.verb, asked.resource) in testbed_rights.of_rule(rule) and asked.name in named


def test_rights_are_enough_and_nothing_else_is_asked_for(product: ControlPlane) -> None:
    for account, rules in rights(product).items():
        used = list(audit.requests(product.layout.audit_log, audit.of_account(SYSTEM, account)))
        assert used, f"{account} is in use"
        assert [it for it in used if it.code in (401, 403)] == []
        for asked in used:
            assert any(is_granted(rule, asked) for rule in rules), asked


def test_nobody_uses_more_than_its_own_account(product: ControlPlane) -> None:
    """The processes come with user agents of their own: none of them is anybody else."""
    agents = ("spotshift-certs", "spotshift-webhook")
    found = {(it.agent, it.user) for agent in agents for it in audit.matching(product.layout.audit_log, agent)}
    seen = {(agent, user) for agent, user in found if agent in agents}
    assert seen == {(agent, audit.of_account(SYSTEM, agent)) for agent in agents}


def used_ports(running: ControlPlane) -> set[int]:
    routes = json.loads(install.routes_file(running).read_text())
    own = {port for pod in kubelet.remembered(running) for one in pod.processes for port in one.ports.values()}
    return {*running.ports.values(), *own, *(route["listen"] for route in routes)}


def nothing_left(home: Path, taken: set[int]) -> None:
    assert process.running(home) == []
    assert not home.exists()
    eventually(lambda: {port for port in taken if not ports.is_free(port)}, until=lambda left: not left, what="ports")


@pytest.mark.campaign
def test_a_second_one_beside_it_and_its_end(product: ControlPlane, tmp_path: Path) -> None:
    home = tmp_path / "second"
    try:
        second = launched(home)
        taken = used_ports(second)
        assert len(taken) == len(second.ports) + 8, "one port for each thing that listens"
        assert not taken & used_ports(product)
        for running in (second, product):
            running.kubectl("create", "deployment", "both", "--image=app:1")
            assert placed(running, "both", 1) == [("In", "spot")]

        victim = process.mains(home)["spotshift-webhook-0.webhook"]
        victim.send_signal(signal.SIGKILL)
        eventually(lambda: process.has_ended(victim))
        status = command("status", "--dir", home)
        assert status.returncode == 1
        assert re.search(r"spotshift-webhook-0\.webhook +not running", status.stdout)
        assert re.search(r"spotshift-webhook-1\.webhook +pid ", status.stdout)
        second.kubectl("create", "deployment", "again", "--image=app:1")
        assert placed(second, "again", 1) == [("In", "spot")], "the other replica answers"
        logs = command("logs", "spotshift-certs-0.certs", "--dir", home, "--tail", "500")
        assert '"event":"STARTING"' in logs.stdout

        down = command("down", "--dir", home)
        assert down.returncode == 0
        assert {"kubelet", "kube-proxy", *PROCESSES} - {PROCESSES[1]} <= set(
            down.stdout.strip().split("stopped ")[1].split(", ")
        )
        nothing_left(home, taken)
        assert command("status", "--dir", product.home).returncode == 0, "the first goes on"
    finally:
        bed.down(home)


@pytest.mark.campaign
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["killed", "interrupted"])
def test_install_that_is_ended_in_the_middle(tmp_path: Path, number: int, control_plane_binaries: Binaries) -> None:
    home = tmp_path / "bed"
    try:
        running = bed.up(home, control_plane_binaries, owner=os.getpid())
        launcher = subprocess.Popen(
            [sys.executable, "-m", "testbed", "install", "--dir", str(home)],
            cwd=ROOT,
            stderr=subprocess.PIPE,
            text=True,
        )
        eventually(lambda: "spotshift-certs-0.certs" in process.mains(home), interval=0.01, what="a process of ours")
        launcher.send_signal(number)
        _, errors = launcher.communicate(timeout=60)
        assert "Traceback" not in errors
        left = [name for name in process.mains(home) if name.startswith("spotshift")]
        assert bool(left) == (number == signal.SIGKILL), "interrupted, it stops what it started"
        taken = used_ports(running)
        assert command("down", "--dir", home).returncode == 0
        nothing_left(home, taken)
        assert folder.read_state(home) is None
    finally:
        bed.down(home)
