"""The sigs descheduler: built once from the module that pins it, and measured where there is nothing to move."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import psutil
import urllib3
import yaml

from testbed import golang, pins, ports
from testbed.bed import ControlPlane

MODULE = Path(__file__).parent / "peer_module"
POLICY = MODULE / "policy.yaml"

CYCLES = 4
"""Of which the first also waits for the caches."""
INTERVAL_SECONDS = 2
PATIENCE_SECONDS = 900.0
_METRIC = re.compile(r"^descheduler_loop_duration_seconds_(sum|count) (\S+)$", re.MULTILINE)


def version() -> str:
    """The one that is pinned."""
    return str(re.findall(r"sigs\.k8s\.io/descheduler v(\S+)", (MODULE / "go.mod").read_text())[0])


def measure(bed: ControlPlane) -> dict[str, float]:
    """Seconds until its first cycle has ended, how long a later cycle takes, and memory."""
    program = ensure()
    port = ports.free(["metrics"])["metrics"]
    command = [str(program), f"--kubeconfig={bed.kubeconfig}", f"--policy-config-file={POLICY}"]
    command += [f"--descheduling-interval={INTERVAL_SECONDS}s", f"--secure-port={port}", "--bind-address=127.0.0.1"]
    with (bed.home / "peer.log").open("w") as log:
        began = time.monotonic()
        process = subprocess.Popen([*command, f"--cert-dir={bed.home}"], stdout=log, stderr=log)
    try:
        cycles, first = _cycles(process, port, began)
        used = psutil.Process(process.pid).memory_info().rss / (1 << 20)
    finally:
        process.terminate()
        process.wait(30)
    return {"first cycle seconds": first, "cycle ms": median(cycles[1:]) * 1000, "MiB resident": used}


def _cycles(process: subprocess.Popen[bytes], port: int, began: float) -> tuple[list[float], float]:
    """The duration of each cycle as it counts them itself, and when the first one had ended."""
    durations: list[float] = []
    total, first = 0.0, 0.0
    while len(durations) < CYCLES:
        if process.poll() is not None or time.monotonic() > began + PATIENCE_SECONDS:
            raise RuntimeError("the sigs descheduler did not come to its cycles; see its log")
        told = _told(port)
        if told.get("count", 0) > len(durations):
            durations += [(told["sum"] - total) / (told["count"] - len(durations))] * int(
                told["count"] - len(durations)
            )
            total, first = told["sum"], first or time.monotonic() - began
        time.sleep(0.1)
    return durations, first


def _told(port: int) -> dict[str, float]:
    pool = urllib3.PoolManager(cert_reqs="CERT_NONE", assert_hostname=False)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", urllib3.exceptions.InsecureRequestWarning)
            text = pool.request("GET", f"https://127.0.0.1:{port}/metrics", retries=False, timeout=5).data.decode()
    except urllib3.exceptions.HTTPError:
        return {}
    return {name: float(value) for name, value in _METRIC.findall(text)}


@contextmanager
def running(bed: ControlPlane, policy: Mapping[str, Any], *, interval_seconds: int) -> Iterator[None]:
    """It acts by this policy for the time of the block; its first look is at once."""
    path = bed.home / "peer.yaml"
    path.write_text(yaml.safe_dump(dict(policy)))
    command = [str(ensure()), f"--kubeconfig={bed.kubeconfig}", f"--policy-config-file={path}"]
    command += [f"--descheduling-interval={interval_seconds}s", "--secure-port=0"]
    with (bed.home / "peer.log").open("a") as log:
        child = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield
    finally:
        child.terminate()
        child.wait(30)


def profile(plugin: str, args: Mapping[str, Any], *, kind: str, **limits: int) -> dict[str, Any]:
    """A policy of one plugin, with its check for room."""
    config = [{"name": "DefaultEvictor", "args": {"nodeFit": True}}, {"name": plugin, "args": dict(args)}]
    one = {"name": "bench", "pluginConfig": config, "plugins": {kind: {"enabled": [plugin]}}}
    return {"apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy", **limits, "profiles": [one]}


def ensure() -> Path:
    """The program; the first build takes about three minutes."""
    sums = hashlib.sha256((MODULE / "go.mod").read_bytes() + (MODULE / "go.sum").read_bytes()).hexdigest()[:16]
    target = pins.cache_dir(os.environ) / f"peer-{sums}"
    if not (target / "descheduler").exists():
        staging = target.with_suffix(f".{os.getpid()}")
        _install(staging)
        target.mkdir(parents=True, exist_ok=True)
        (staging / "descheduler").replace(target / "descheduler")
        staging.rmdir()
    return target / "descheduler"


def _install(target: Path) -> None:
    fixed = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "", "GOWORK": "off", "GOBIN": str(target)}
    command = [str(golang.find(os.environ)), "install", "-mod=readonly", "-trimpath", "-buildvcs=false"]
    subprocess.run(
        [*command, "-ldflags", "-s -w", "tool"], cwd=MODULE, env={**os.environ, **fixed}, check=True, timeout=1800
    )
