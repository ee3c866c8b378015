"""Put the product into a test bed: its real manifests, and its processes as their own ServiceAccounts.

There are no containers here, so what a Deployment would run in a pod is run as a local process, with the same
command, the same environment and the rights of the same ServiceAccount.
"""

import os
import shutil
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
    name, namespace = deployment["metadata"]["name"], deployment["metadata"].get("namespace", "default")
    spec = deployment["spec"]["template"]["spec"]
    account = spec.get("serviceAccountName", "default")
    login = access.kubeconfig(bed, account, namespace)
    for label in {label for label, _ in process.running(bed.home) if label.startswith(f"{name}/")}:
        bed.stop(label)
    for container in spec["containers"]:
        command = _command(name, container)
        env = {**_environment(name, container), "KUBECONFIG": str(login)}
        for replica in range(deployment["spec"].get("replicas", 1)):
            label = f"{name}/{container['name']}-{replica}"
            log = bed.layout.log(label.replace("/", "-"))
            child = process.start(label, command, home=bed.home, log=log, env=env)
            yield f"process/{label} started (pid {child.pid}) as {namespace}/{account}"


def _command(deployment: str, container: dict[str, Any]) -> list[str]:
    command = [*container.get("command", ()), *container.get("args", ())]
    program = (
        sys.executable if command[:1] in (["python"], ["python3"]) else shutil.which(command[0]) if command else None
    )
    if program is None:
        raise NotInstalled(
            f"Deployment {deployment}: container {container['name']}: no such command here: {command[:1]}"
        )
    return [program, *command[1:]]


def _environment(deployment: str, container: dict[str, Any]) -> dict[str, str]:
    env = {"PATH": os.environ.get("PATH", ""), "PYTHONPATH": str(ROOT)}
    for entry in container.get("env", ()):
        if "value" not in entry:
            raise NotInstalled(
                f"Deployment {deployment}: container {container['name']}: env {entry['name']} has no value; "
                "only literal values can be given to a process here"
            )
        env[entry["name"]] = entry["value"]
    return env
