"""Put the product into a test bed: its real manifests, and its processes as their own ServiceAccounts.

There are no containers here, so what a Deployment would run in a pod is run as a local process, with the same
command, the same environment and the rights of the same ServiceAccount.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from testbed import access, process
from testbed.bed import ControlPlane

ROOT = Path(__file__).parent.parent
MANIFESTS = ROOT / "manifests" / "base"


class NotInstalled(Exception):
    """The manifests cannot be applied; the message says which and why."""


def install(bed: ControlPlane, manifests: Path = MANIFESTS) -> Iterator[str]:
    """Apply a kustomize folder and start its Deployments; yields a line about each thing done."""
    if not (manifests / "kustomization.yaml").exists():
        raise NotInstalled(f"manifests: {manifests} has no kustomization.yaml")
    try:
        yield from bed.kubectl("apply", "-k", str(manifests)).splitlines()
        rendered = bed.kubectl("kustomize", str(manifests))
    except RuntimeError as refusal:
        raise NotInstalled(f"manifests: {manifests}: {refusal}") from None
    for document in yaml.safe_load_all(rendered):
        if document["kind"] == "Deployment":
            yield from _start(bed, document)


def _start(bed: ControlPlane, deployment: dict[str, Any]) -> Iterator[str]:
    """One process for each replica and container; those of an earlier install are replaced."""
    namespace, name = deployment["metadata"]["namespace"], deployment["metadata"]["name"]
    spec = deployment["spec"]["template"]["spec"]
    login = access.kubeconfig(bed, spec["serviceAccountName"], namespace)
    for replica in range(deployment["spec"].get("replicas", 1)):
        for container in spec["containers"]:
            label = f"{name}-{container['name']}-{replica}"
            bed.stop(label)
            command = [*container.get("command", ()), *container.get("args", ())]
            if not command:
                raise NotInstalled(f"Deployment {name}: container {container['name']} has no command to run here")
            env = {
                "PATH": os.environ.get("PATH", ""),
                "PYTHONPATH": str(ROOT),
                "KUBECONFIG": str(login),
                **{entry["name"]: entry["value"] for entry in container.get("env", ()) if "value" in entry},
            }
            program = sys.executable if command[0] in ("python", "python3") else command[0]
            child = process.start(label, [program, *command[1:]], home=bed.home, log=bed.layout.log(label), env=env)
            yield f"process/{label} started (pid {child.pid}) as {namespace}/{spec['serviceAccountName']}"
