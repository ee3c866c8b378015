"""Processor time and memory of a process and its children, from /proc."""

from dataclasses import dataclass
from pathlib import Path

import psutil


@dataclass(frozen=True, slots=True)
class Usage:
    """What was used up to now."""

    seconds: float
    """On a processor."""
    waited: float
    """Ready to run while somebody else had the processor: what this machine's other work costs."""

    def __sub__(self, before: "Usage") -> "Usage":
        return Usage(self.seconds - before.seconds, self.waited - before.waited)


def of(pid: int) -> Usage:
    """Usage of the process, its children and all their threads."""
    lines = [line for each in _family(pid) for line in _schedstat(each)]
    return Usage(sum(int(it[0]) for it in lines) / 1e9, sum(int(it[1]) for it in lines) / 1e9)


def resident_mib(pid: int) -> float:
    """Resident memory of the process and its children; what they share is counted once."""
    return sum(_proportional(each) for each in _family(pid)) / 1024


def _family(pid: int) -> list[int]:
    return [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]


def _schedstat(pid: int) -> list[list[str]]:
    return [path.read_text().split() for path in Path(f"/proc/{pid}/task").glob("*/schedstat")]


def _proportional(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
