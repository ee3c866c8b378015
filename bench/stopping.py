"""How long the product's processes take to end when they are asked to: SIGTERM to exit.

    python -m bench.stopping [--repeat 5] [--smoke] [--json FILE]

The product is installed from its manifests, with extender and dashboard, on a control plane with a workload. A
process is asked to end while it works, and started again for the next round. Nobody has a connection to the webhook
meanwhile: one that an API server keeps open is waited for, up to `--grace-seconds`, so that no review is lost.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import msgspec
import psutil
import yaml

from bench import plane
from testbed import install, kubelet, objects, process
from testbed.bed import ControlPlane
from testbed.waiting import eventually

TARGET_SECONDS = 2.0
PATIENCE_SECONDS = 120.0
Found = dict[str, list[float]]
"""Seconds of each round by Deployment."""


def manifests(folder: Path) -> Path:
    """The base with everything that can be switched on and stays on."""
    parts = install.MANIFESTS.parent
    components = [parts / "components" / name for name in ("extender", "console")]
    body = {
        "resources": [os.path.relpath(install.MANIFESTS, folder)],
        "components": [os.path.relpath(it, folder) for it in components],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(body))
    return folder


def ended(running: ControlPlane, name: str) -> float:
    """Ask one process to end; after how many seconds it had."""
    child: psutil.Process = process.mains(running.home)[name]
    began = time.monotonic()
    child.send_signal(signal.SIGTERM)
    while not process.has_ended(child):
        if time.monotonic() > began + PATIENCE_SECONDS:
            raise RuntimeError(f"{name} did not end within {PATIENCE_SECONDS:g} s")
        time.sleep(0.002)
    return time.monotonic() - began


def measure(running: ControlPlane, repeat: int, *, prefix: str = "") -> Found:
    """One replica of each Deployment whose name begins so, again and again."""
    found: Found = {}
    pods = [pod for pod in kubelet.remembered(running) if pod.deployment.startswith(prefix)]
    firsts = {pod.deployment: pod for pod in reversed(pods)}
    for _ in range(repeat):
        for deployment, pod in sorted(firsts.items()):
            (planned,) = pod.processes
            found.setdefault(deployment, []).append(ended(running, planned.name))
            print(f"{deployment}: {found[deployment][-1]:.2f} s", flush=True)
            install.start(running, pod)
            if planned.probe is not None:
                probe = planned.probe
                eventually(lambda probe=probe: kubelet.is_ready(probe), timeout=90, what=planned.name)  # type: ignore[misc]
    return found


def table(found: Found) -> str:
    """One row each."""
    lines = ["| process | SIGTERM to exit, s | worst |", "|---|---|---|"]
    lines += [f"| {name} | {median(it):.2f} | {max(it):.2f} |" for name, it in found.items()]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and end with 1 if one of them takes too long."""
    parser = argparse.ArgumentParser(prog="python -m bench.stopping", description=__doc__)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--smoke", action="store_true", help="each process once")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    asked = parser.parse_args(arguments)
    with plane.started(nodes=2, spot=2) as running:
        folder = running.home.parent / "manifests"
        folder.mkdir()
        running.api().create("deployments", objects.deployment("web", replicas=6), "default")
        install.install(running, manifests(folder), tell=lambda _: None)
        found = measure(running, 1 if asked.smoke else asked.repeat)
    print(table(found))
    if asked.json:
        asked.json.write_bytes(msgspec.json.format(msgspec.json.encode(found)))
    return int(any(max(it) >= TARGET_SECONDS for it in found.values()) and not asked.smoke)


if __name__ == "__main__":
    sys.exit(main())
