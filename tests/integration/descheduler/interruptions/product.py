"""The real descheduler on a control plane of its own, one process, straight to the apiserver: here times count."""

import contextlib
import sys
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import psutil
import yaml

from policy import settings_load
from testbed import access, bed, pki, ports, process
from testbed.api import Api
from testbed.bed import ControlPlane
from testbed.waiting import eventually
from tests.integration.descheduler.moves.product import ACCOUNT, SYSTEM, apply_manifests

SETTINGS: Final[Mapping[str, Any]] = {
    "apiVersion": "spotshift.dev/v1alpha1",
    "kind": "Policy",
    # What happens within these seconds happened because of an event.
    "reschedulingInterval": "60s",
    "enabledStrategies": ["SpotInterruption", "NodeMaintenance"],
    "placement": {"criticalNamespaces": ["*"]},
    "strategies": {"NodeMaintenance": {"maxNodes": 100}, "SpotInterruption": {"notReadyAfter": "4s"}},
}


@dataclass(slots=True)
class Product:
    """Use it as a context manager."""

    bed: ControlPlane
    folder: Path
    process: psutil.Process | None = None
    probes: int = 0
    _kube: Api | None = None

    @property
    def kube(self) -> Api:
        """All rights."""
        self._kube = self._kube or self.bed.api()
        return self._kube

    @property
    def log(self) -> Path:
        return self.folder / "descheduler.log"

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        apply_manifests(self.bed)
        self.configure()
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def configure(self, **changed: Any) -> None:
        """Other settings from now on; bad ones would be refused silently."""
        text = yaml.safe_dump({**SETTINGS, **changed})
        settings_load.load(text)
        fresh = self.folder / "settings.new"
        fresh.write_text(text)
        fresh.rename(self.folder / "settings.yaml")

    def start(self) -> None:
        """Until it leads."""
        kubeconfig = pki.kubeconfig(
            self.folder / "kubeconfig",
            server=self.bed.server,
            ca=self.bed.layout.ca.bundle(),
            user={"token": access.token(self.kube, ACCOUNT, SYSTEM)},
        )
        self.probes = ports.free(["probes"])["probes"]
        command: list[str | Path] = [
            *(sys.executable, "-m", "descheduler", "run"),
            *("--kubeconfig", kubeconfig, "--settings", self.folder / "settings.yaml"),
            *("--probes", f"127.0.0.1:{self.probes}"),
        ]
        self.process = process.start("descheduler", command, home=self.bed.home, log=self.log, env=bed.importable({}))
        eventually(
            lambda: self.metric("leader"), until=lambda it: it == 1, timeout=60, what="the descheduler to lead"
        )

    def kill(self) -> None:
        """Without a word."""
        if self.process is not None:
            with contextlib.suppress(psutil.NoSuchProcess):
                self.process.kill()
                self.process.wait(10)
            self.process = None

    def metric(self, name: str, **labels: str) -> float:
        """The value of one series, 0 if there is none."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.probes}/metrics", timeout=5) as answer:
                lines = answer.read().decode().splitlines()
        except OSError:
            return 0.0
        told = ",".join(f'{key}="{value}"' for key, value in sorted(labels.items()))
        series = f"spotshift_{name}" + (f"{{{told}}}" if told else "")
        return next((float(line.split()[-1]) for line in lines if line.startswith(f"{series} ")), 0.0)
