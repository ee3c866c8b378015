"""How fast and how small is planning: our loop beside the sigs descheduler, on the same real apiserver.

    python -m bench.plan [--large] [--ours] [--smoke] [--json FILE]

1,000 nodes with 30,000 pods, with --large 5,000 with 150,000 as well. Nothing is to be done in the cluster, so both
look at everything and move nothing; then a node is put under maintenance, and how long it takes until we have a plan
is measured. Processes of both run one after the other, never together.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlencode

import msgspec

from bench import peer, plane, seed
from bench.seed import Sizes
from testbed.api import Api
from testbed.bed import ControlPlane

SMALL, LARGE, SMOKE = Sizes(1_000, 30_000), Sizes(5_000, 150_000), Sizes(20, 200)
LABEL = "scheduler.alpha.kubernetes.io/maintenance"
EVENTS = 5
LISTS = 2
PATIENCE_SECONDS = 600.0
PAGE = 30_000
"""Pods in one answer of the bare LIST: the server ends every request after a minute, and a busy one needs longer for
150,000."""
_CONTINUE = re.compile(rb'"continue":"([^"]+)"')

Figures = dict[str, float]
TARGETS = {
    "times faster": ("at least", 20.0),
    "MiB resident": ("at most", {SMALL: 120.0, LARGE: 250.0}),
    "sync over LIST": ("at most", 1.3),
    "event to plan ms": ("at most", 250.0),
}


@contextmanager
def cluster(sizes: Sizes) -> Iterator[tuple[ControlPlane, float]]:
    """A control plane with that many objects, and how long it took to make them."""
    with plane.started() as started:
        began = time.monotonic()
        seed.fill(started, sizes)
        yield started, time.monotonic() - began


def bare_list(kube: Api) -> Figures:
    """All pods, read and thrown away: no client can know them sooner."""
    seconds, size = [], 0
    for _ in range(LISTS):
        began = time.monotonic()
        size, token = _page(kube, "")
        while token:
            more, token = _page(kube, token)
            size += more
        seconds.append(time.monotonic() - began)
    return {"list seconds": min(seconds), "list MB": size / 1e6}


def _page(kube: Api, token: str) -> tuple[int, str]:
    """The size of a page, and where the next one begins."""
    url = f"{kube.server}/api/v1/pods?{urlencode({'limit': PAGE, 'continue': token})}"
    answer = kube.pool.request("GET", url, preload_content=False, timeout=PATIENCE_SECONDS)
    chunks = answer.stream(1 << 20)
    head = next(chunks)
    size = len(head) + sum(map(len, chunks))
    answer.release_conn()
    found = _CONTINUE.search(head[:2000])
    return size, found[1].decode() if found else ""


class Ours:
    """Our process."""

    def __init__(self, kubeconfig: Path) -> None:
        command = [sys.executable, "-m", "bench.planning", str(kubeconfig)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def wait(self, event: str, **wanted: Any) -> Figures:
        """The next line of this kind."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            found = msgspec.json.decode(line)
            if found.pop("event") == event and all(found[key] == value for key, value in wanted.items()):
                return dict(found)
        raise RuntimeError("the measured process ended")

    def moving(self, *, some: bool) -> Figures:
        """The next turn that has moves, or has none."""
        while bool((found := self.wait("turn"))["moves"]) is not some:
            pass
        return found

    def memory(self) -> Figures:
        """Resident now and at most."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return self.wait("memory")

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None and self._process.stdout is not None  # noqa: PT018 - two pipes
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()


def ours(started: ControlPlane) -> Figures:
    """First sync, steady plans, everything anew, event to plan, memory."""
    kube = started.api()
    process = Ours(started.kubeconfig)
    try:
        synced = process.wait("synced")
        process.wait("turn")
        waits = [_event(kube, process, f"node-{number + 1:05}") for number in range(EVENTS)]
        memory = process.memory()
    finally:
        process.close()
    return {
        "sync seconds": synced["seconds"],
        "sync cpu seconds": synced["cpu"],
        "first plan ms": synced["first"] * 1000,
        "steady plan ms": synced["steady"] * 1000,
        "state anew ms": synced["anew"] * 1000,
        "event to plan ms": median(waits) * 1000,
        "slowest event ms": max(waits) * 1000,
        "MiB resident": memory["resident"],
        "MiB peak": memory["peak"],
        "pods": synced["pods"],
        "nodes": synced["nodes"],
    }


def _event(kube: Api, process: Ours, node: str) -> float:
    """From sending the request that puts a node under maintenance to the plan that empties it."""
    sent = time.time()
    kube.patch("nodes", node, {"metadata": {"labels": {LABEL: "true"}}})
    seconds = process.moving(some=True)["at"] - sent
    kube.patch("nodes", node, {"metadata": {"labels": {LABEL: None}}})
    process.moving(some=False)
    return seconds


def measure(sizes: Sizes, *, against_peer: bool) -> Figures:
    """Everything about one size."""
    with cluster(sizes) as (started, seconds):
        figures = {"seed seconds": seconds} | bare_list(started.api()) | ours(started)
        figures["sync over LIST"] = figures["sync seconds"] / figures["list seconds"]
        if against_peer:
            figures |= {f"peer {name}": value for name, value in peer.measure(started).items()}
            figures["times faster"] = figures["peer cycle ms"] / figures["steady plan ms"]
            figures["times smaller"] = figures["peer MiB resident"] / figures["MiB resident"]
    return figures


def verdicts(sizes: Sizes, figures: Figures) -> Iterator[str]:
    """Which targets were met."""
    for name, (word, target) in TARGETS.items():
        limit = target.get(sizes) if isinstance(target, dict) else target
        if name in figures and isinstance(limit, float):
            met = figures[name] >= limit if word == "at least" else figures[name] <= limit
            yield f"target {name} {word} {limit:g}: {'met' if met else 'missed'}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and say which targets were met."""
    parser = argparse.ArgumentParser(prog="python -m bench.plan", description=__doc__)
    parser.add_argument("--large", action="store_true", help="also 5,000 nodes with 150,000 pods (12 GB of memory)")
    parser.add_argument("--only-large", action="store_true", help="not the small size")
    parser.add_argument("--ours", action="store_true", help="without the sigs descheduler")
    parser.add_argument("--smoke", action="store_true", help="a small run that shows it works")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    asked = parser.parse_args(arguments)
    wanted = (
        [SMOKE] if asked.smoke else [SMALL] * (not asked.only_large) + [LARGE] * (asked.large or asked.only_large)
    )
    found = {}
    for sizes in wanted:
        title = f"{sizes.nodes} nodes, {sizes.pods} pods"
        print(title, flush=True)
        found[title] = figures = measure(sizes, against_peer=not (asked.ours or asked.smoke))
        for name, value in figures.items():
            print(f"  {name:24} {value:.4g}")
        for line in () if asked.smoke else verdicts(sizes, figures):
            print(f"  {line}")
    if asked.json:
        asked.json.write_bytes(msgspec.json.format(msgspec.json.encode(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
