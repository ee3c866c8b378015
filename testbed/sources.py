"""Where the objects of an installation come from, and how they get into a cluster: kustomize, or a Helm chart."""

import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import yaml

from testbed import chart, pins
from testbed.api import Object
from testbed.bed import ControlPlane

RELEASE, NAMESPACE = "spotshift", "spotshift-system"


class NotApplied(Exception):
    """The objects cannot be rendered or applied; the message says what and why."""


class Source(Protocol):
    """Renders objects, and applies them as they were adapted to this machine. Both raise NotApplied."""

    def render(self, running: ControlPlane) -> list[Object]: ...
    def apply(self, running: ControlPlane, documents: Sequence[Object]) -> str: ...


@dataclass(frozen=True, slots=True)
class Kustomization:
    """A folder that kubectl knows how to build."""

    folder: Path

    def render(self, running: ControlPlane) -> list[Object]:
        if not (self.folder / "kustomization.yaml").exists():
            raise NotApplied(f"manifests: {self.folder} has no kustomization.yaml")
        return loaded(self._kubectl(running, "kustomize", str(self.folder)))

    def apply(self, running: ControlPlane, documents: Sequence[Object]) -> str:
        return self._kubectl(running, "apply", "-f", "-", stdin=yaml.safe_dump_all(documents))

    def _kubectl(self, running: ControlPlane, *arguments: str, stdin: str | None = None) -> str:
        try:
            return running.kubectl(*arguments, stdin=stdin)
        except RuntimeError as refusal:
            raise NotApplied(f"manifests: {self.folder}: {refusal}") from None


@dataclass(frozen=True, slots=True)
class Chart:
    """A Helm chart, installed as a release by Helm itself. Hooks are Helm's own business."""

    helm: Path
    folder: Path
    values: Mapping[str, Any] = field(default_factory=dict)

    def render(self, running: ControlPlane) -> list[Object]:
        return loaded(
            self.run(running, "template", *for_kubernetes(), RELEASE, str(self.folder), "--no-hooks", "-f", "-")
        )

    def apply(self, running: ControlPlane, documents: Sequence[Object]) -> str:
        """Helm hands what it rendered to a program that may change it; ours says what was adapted from it."""
        with tempfile.TemporaryDirectory() as folder:
            adapted, script = Path(folder) / "adapted.yaml", Path(folder) / "adapt"
            adapted.write_text(yaml.safe_dump_all(documents))
            script.write_text(f"#!/bin/sh\ncat > /dev/null\nexec cat '{adapted}'\n")
            script.chmod(0o700)
            install = ("upgrade", "--install", "--create-namespace", RELEASE, str(self.folder), "-f", "-")
            return self.run(running, *install, "--post-renderer", str(script))

    def run(self, running: ControlPlane, *arguments: str) -> str:
        """Any command of Helm's on this cluster; its own files stay in the folder of the test bed."""
        own = {f"HELM_{kind}_HOME": str(running.home / "helm" / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA")}
        done = subprocess.run(
            [self.helm, *arguments, "--namespace", NAMESPACE, "--kubeconfig", str(running.kubeconfig)],
            input=yaml.safe_dump(dict(self.values)),
            env={"PATH": "/usr/bin:/bin", "HOME": str(running.home), **own},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise NotApplied(f"helm {arguments[0]}: {done.stderr.strip()}")
        return done.stdout


def for_kubernetes() -> tuple[str, str]:
    """Which version a chart is rendered for; a helm that we built ourselves believes in a very old one."""
    return "--kube-version", pins.versions()["kubernetes"]


def kustomized(kubectl: Path, resources: Sequence[Path], components: Sequence[Path] = ()) -> list[Object]:
    """The objects of these folders with these components; no cluster is needed."""
    with tempfile.TemporaryDirectory() as folder:
        chart.combine(Path(folder), resources, components)
        return loaded(rendered(kubectl, Path(folder)))


def rendered(kubectl: Path, folder: Path) -> str:
    done = subprocess.run([kubectl, "kustomize", str(folder)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NotApplied(f"manifests: {done.stderr.strip()}")
    return done.stdout


def loaded(text: str) -> list[Object]:
    """The documents of a text; the loader in C where there is one, for renderings are long and compared often."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return [document for document in yaml.load_all(text, loader) if document]
