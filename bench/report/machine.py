"""The machine and the versions that a figure was measured with."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import msgspec
import psutil

from bench import peer
from testbed import pins

ROOT = Path(__file__).parents[2]
RESULTS = "bench/results"


class Machine(msgspec.Struct, frozen=True):
    """As much as tells whether two figures can be compared."""

    at: str
    processor: str
    cores: int
    memory_gib: int
    kernel: str
    load: float
    """Of the minute before, for each core: what else the machine had to do."""
    python: str
    commit: str
    versions: dict[str, str]

    @property
    def hardware(self) -> str:
        """In words."""
        return f"{self.cores} cores ({self.processor}), {self.memory_gib} GiB, Linux {self.kernel}"


def here() -> Machine:
    """The one that this runs on, now."""
    cores = len(os.sched_getaffinity(0))
    return Machine(
        at=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        processor=_processor(),
        cores=cores,
        memory_gib=round(psutil.virtual_memory().total / (1 << 30)),
        kernel=platform.release().partition("-")[0],
        load=round(os.getloadavg()[0] / cores, 2),
        python=platform.python_version(),
        commit=_commit(),
        versions=_versions(),
    )


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _commit() -> str:
    """The results are left out: the benchmark before this one has just written there."""
    try:
        changed = _git("status", "--porcelain", "--", ".", f":!{RESULTS}")
        return _git("describe", "--always", "--abbrev=10") + ("-dirty" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _versions() -> dict[str, str]:
    found = {"spotshift": pins.product(), **pins.versions(), "sigs descheduler": peer.version()}
    return found | {f"{name} (Python)": metadata.version(name) for name in ("kubernetes", "msgspec", "uvloop")}
