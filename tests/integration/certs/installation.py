"""certs on the real control plane: the shipped rights, the real command, and a configuration to look after."""

import base64
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import urllib3
import yaml

from certs import findings, keys, objects, options, plan, store, x509
from certs.x509 import Certificate
from cluster import auth
from cluster.client import Client
from testbed import access, audit, ports
from testbed.api import JSON_PATCH, Api, ApiError, Object
from testbed.bed import ControlPlane
from testbed.waiting import eventually

ROOT = Path(__file__).parents[3]
ACCOUNT, CA, LEAF = "spotshift-certs", "spotshift-ca", "spotshift-webhook-tls"
OVERLAP_SECONDS = 2
COMMON = (f"--overlap={OVERLAP_SECONDS}s", "--leaf-life=1h", "--ca-life=10h")


@dataclass(slots=True)
class Running:
    """One `python -m certs run`."""

    process: subprocess.Popen[str]
    port: int
    log: Path

    def get(self, path: str) -> tuple[int, str]:
        try:
            answer = urllib3.request("GET", f"http://127.0.0.1:{self.port}{path}", retries=False, timeout=2)
        except urllib3.exceptions.HTTPError:
            return 0, ""
        return answer.status, answer.data.decode()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=20.0)


@dataclass(slots=True)
class Installation:
    """The rights in a namespace of the test's own; the configuration is named after the namespace."""

    bed: ControlPlane
    kube: Api
    namespace: str
    folder: Path
    kubeconfig: Path

    def command(self, *arguments: str) -> list[str]:
        where = (
            f"--kubeconfig={self.kubeconfig}",
            f"--namespace={self.namespace}",
            f"--configuration={self.namespace}",
        )
        return [sys.executable, "-m", "certs", arguments[0], *where, *COMMON, *arguments[1:]]

    def call(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run one command to its end."""
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
        return subprocess.run(
            self.command(*arguments), env=env, capture_output=True, text=True, timeout=60, check=False
        )

    def ensure(self, *arguments: str) -> str:
        done = self.call("ensure", "--now", *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    @contextlib.contextmanager
    def running(self, *arguments: str) -> Iterator[Running]:
        """Start the loop and wait until it answers; killed at the end if the test did not stop it."""
        port = ports.free(("certs",))["certs"]
        log = self.folder / f"certs-{port}.log"
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
        command = self.command("run", "--now", f"--listen=127.0.0.1:{port}", "--interval=2s", *arguments)
        with (
            log.open("w") as output,
            subprocess.Popen(command, env=env, text=True, stdout=output, stderr=output) as process,
        ):
            started = Running(process, port, log)
            try:
                eventually(lambda: started.get("/healthz")[0] == 200, what="the probes of certs")
                yield started
            finally:
                process.kill()

    def configure(self, *webhooks: Object) -> None:
        body = {
            "metadata": {"name": self.namespace},
            "webhooks": list(webhooks or (self.webhook("ours.example.com"),)),
        }
        self.kube.create("mutatingwebhookconfigurations", body)

    def webhook(self, name: str, service: str = "spotshift-webhook", url: str = "", **fields: Any) -> Object:
        """Matches the pods of this namespace only."""
        rule = {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "operations": ["CREATE"],
            "resources": ["pods"],
            "scope": "*",
        }
        client = (
            {"url": url} if url else {"service": {"name": service, "namespace": self.namespace, "path": "/mutate"}}
        )
        return {
            "name": name,
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": "Ignore",
            "timeoutSeconds": 2,
            "clientConfig": client,
            "rules": [rule],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": self.namespace}},
            **fields,
        }

    def configuration(self) -> Object:
        return self.kube.get("mutatingwebhookconfigurations", self.namespace)

    def bundle(self, index: int = 0) -> tuple[Certificate, ...]:
        text = self.configuration()["webhooks"][index]["clientConfig"].get("caBundle", "")
        return x509.read(base64.b64decode(text))[0]

    def wipe(self) -> None:
        operation = {"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}
        self.kube.patch("mutatingwebhookconfigurations", self.namespace, [operation], kind=JSON_PATCH)

    def secret(self, name: str) -> Object:
        return self.kube.get("secrets", name, self.namespace)

    def annotate(self, name: str, value: str) -> None:
        self.kube.patch("secrets", name, {"metadata": {"annotations": {keys.ROTATE: value}}}, self.namespace)

    def leaf(self) -> x509.Pair | None:
        return leaf_of(self.secret(LEAF))

    def healthy(self) -> bool:
        """One CA, and a leaf of it."""
        bundle, leaf = self.bundle(), self.leaf()
        return len(bundle) == 1 and leaf is not None and x509.signed_by(leaf.cert, bundle[0])

    def settled(self) -> bool:
        """Nothing is wrong and nothing is under way, in the words of certs itself."""
        client = Client(auth.connect(self.bed.kubeconfig))
        _, settings = options.parse(self.command("check")[3:])
        world = objects.observe(store.Store(client, settings), ca_secret=CA, leaf_secret=LEAF)
        client.close()
        decision = plan.decide(world, settings, datetime.now(UTC))
        return decision.settled and not findings.findings(world, decision, settings)

    def verbs_used(self) -> set[tuple[str, str]]:
        """Resource and verb of every request our account was granted, from the apiserver's audit log."""
        asked = audit.requests(self.bed.layout.audit_log, audit.of_account(self.namespace, ACCOUNT))
        return {(it.resource.partition(".")[0], it.verb) for it in asked if it.code < 400}


def leaf_of(secret: Object) -> x509.Pair | None:
    data = {name: base64.b64decode(value) for name, value in secret.get("data", {}).items()}
    return x509.read_pair(data.get(keys.LEAF_CERT, b""), data.get(keys.LEAF_KEY, b""))


@contextlib.contextmanager
def install(bed: ControlPlane, kube: Api, namespace: str, folder: Path) -> Iterator[Installation]:
    """The shipped RBAC and policy, moved into the namespace of the test."""
    policies = shipped_policies(namespace)
    bed.kubectl("apply", "-f", "-", stdin=policies)
    created: list[tuple[str, str]] = []
    for document in shipped_rights():
        kind, name = document["kind"], document["metadata"]["name"]
        scoped = "namespace" in document["metadata"]
        if scoped:
            document["metadata"]["namespace"] = namespace
        else:
            document["metadata"]["name"] = f"{name}-{namespace}"
            created.append((f"{kind.lower()}s", f"{name}-{namespace}"))
        for subject in document.get("subjects", ()):
            subject["namespace"] = namespace
        if kind == "ClusterRoleBinding":
            document["roleRef"]["name"] = f"{name}-{namespace}"
        for rule in document.get("rules", ()) if kind == "ClusterRole" else ():
            rule["resourceNames"] = [namespace]
        kube.create(f"{kind.lower()}s", document, namespace if scoped else None)
    try:
        yield Installation(bed, kube, namespace, folder, access.kubeconfig(bed, ACCOUNT, namespace))
    finally:
        bed.kubectl("delete", "--wait=false", "-f", "-", stdin=policies)
        for resource, name in (*created, ("mutatingwebhookconfigurations", namespace)):
            with contextlib.suppress(ApiError):
                kube.delete(resource, name)


def shipped_policies(namespace: str) -> str:
    """Named after the namespace, and about the account in it."""
    text = (ROOT / "manifests" / "base" / "certs" / "policy.yaml").read_text()
    return text.replace("spotshift-certs-secrets", f"spotshift-certs-{namespace}").replace(
        ":spotshift-system:", f":{namespace}:"
    )


def shipped_rights() -> list[Object]:
    return list(yaml.safe_load_all((ROOT / "manifests" / "base" / "certs" / "rbac.yaml").read_text()))
