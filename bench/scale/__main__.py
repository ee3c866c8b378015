"""One leader and the largest cluster that Kubernetes supports: does it keep up, and how far is its limit?

    python -m bench.scale [--minutes 10] [--nodes 5000] [--smoke] [--json FILE]

A simulation: the events of such a cluster (`bench.scale.rates` derives how many) are written into pipes at their
time, and read by the product's own reflectors, state and planner in another process. The lag of an event is from when
it was due until a plan had been made that knows it, whatever held it up. Then a minute's events without a pause.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO, Self

import msgspec

from bench import fleet
from bench.measured import Figures
from bench.scale import rates
from bench.scale.story import BUDGETS, DEPLOYMENTS, KINDS, NODES, PODS, REPLICASETS, Line, Living, Story, probe

TARGET_MS = 250.0
FLOOD_SECONDS = 60.0
"""Of the cluster's life, told without a pause."""
PATIENCE_SECONDS = 300.0


class Listener:
    """The measured process; use it as a context manager."""

    def __init__(self) -> None:
        self._pipes: dict[str, BinaryIO] = {}
        readers = {}
        for kind in KINDS:
            read, write = os.pipe()
            readers[kind], self._pipes[kind] = read, os.fdopen(write, "wb", buffering=1 << 16)
        command = [sys.executable, "-m", "bench.scale.listener", *(f"{kind}={fd}" for kind, fd in readers.items())]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, pass_fds=tuple(readers.values())
        )
        for fd in readers.values():
            os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()
        for pipe in self._pipes.values():
            _drop(pipe)

    def list(self, kind: str, pages: Iterator[bytes]) -> None:
        """What is there at the beginning."""
        for page in pages:
            self._pipes[kind].write(page + b"\n")
        self._pipes[kind].write(b"\n")
        self._pipes[kind].flush()

    def tell(self, line: Line) -> None:
        """One event, now."""
        _, kind, data = line
        self._pipes[kind].write(data + b"\n")

    def flush(self) -> None:
        """Nothing is kept back."""
        for pipe in self._pipes.values():
            pipe.flush()

    def synced(self) -> int:
        """Wait until it knows the cluster; of how many changes."""
        assert self._process.stdout is not None
        return int(self._process.stdout.readline().split()[1])

    def ask(self, word: str) -> Figures:
        """Its figures up to now."""
        assert self._process.stdin is not None and self._process.stdout is not None  # noqa: PT018 - two pipes
        self._process.stdin.write(word + "\n")
        self._process.stdin.flush()
        return {} if word.startswith("begin") else msgspec.json.decode(self._process.stdout.readline(), type=Figures)

    def after(self, changes: int) -> Figures:
        """Its figures once it has seen so many changes."""
        end = time.monotonic() + PATIENCE_SECONDS
        while (found := self.ask("figures"))["changes"] < changes:
            if time.monotonic() > end:
                raise RuntimeError(f"{found['changes']:.0f} of {changes} changes were seen")
            time.sleep(0.05)
        return found


def _drop(pipe: BinaryIO) -> None:
    """Close a pipe that nobody reads any more; what is still in its buffer has nowhere to go."""
    with suppress(BrokenPipeError):
        pipe.close()


def lay_out(listener: Listener, nodes: int, pods: int) -> list[Living]:
    """Tell the whole cluster; the pods that live in it."""
    count = fleet.templates(pods)
    listener.list(NODES, fleet.pages(fleet.node(number) for number in range(nodes)))
    size, each = fleet.PODS_PER_NODE, range(count)
    listener.list(DEPLOYMENTS, fleet.pages(fleet.deployment(it, size) for it in each))
    listener.list(REPLICASETS, fleet.pages(fleet.replica_set(it, size, of_deployment=True) for it in each))
    listener.list(BUDGETS, fleet.pages(fleet.budget(it, size) for it in each))
    living: list[Living] = []

    def remembered() -> Iterator[Any]:
        yield probe(0)
        for number, made in enumerate(fleet.placed(nodes, pods)):
            living.append(Living(number % count, number, made["spec"]["nodeName"]))
            yield made

    listener.list(PODS, fleet.pages(remembered()))
    return living


def pace(listener: Listener, lines: Iterator[Line]) -> tuple[int, float]:
    """Tell each line when it is due; how many there were, and how late the teller itself ever was."""
    began, count, late = time.time() + 0.5, 0, 0.0
    listener.ask(f"begin {began}")
    for line in lines:
        wait = began + line[0] - time.time()
        if wait > 0:
            listener.flush()
            time.sleep(wait)
        late = max(late, -wait)
        listener.tell(line)
        count += 1
    listener.flush()
    return count, late


def flood(listener: Listener, lines: Sequence[Line], seen: Figures) -> Figures:
    """As fast as it takes them."""
    began = time.time()
    for line in lines:
        listener.tell(line)
    listener.flush()
    after = listener.after(int(seen["changes"]) + len(lines))
    seconds = after["at"] - began
    return {"flood events": len(lines), "flood events per second": len(lines) / seconds}


def measure(nodes: int, seconds: float, flooded: float) -> Figures:
    """Both, one after the other."""
    pods = nodes * fleet.PODS_PER_NODE
    rate = rates.of(nodes, pods)
    with Listener() as listener:
        story = Story(nodes, lay_out(listener, nodes, pods), rate)
        known = listener.synced()
        before = listener.ask("figures")
        count, late = pace(listener, story.lines(seconds))
        after = listener.after(known + count)
        found = {
            "nodes": nodes,
            "pods": pods,
            "seconds": seconds,
            "derived events per second": rate.events,
            "told events per second": count / seconds,
            "teller late ms": late * 1000,
            **{name: value for name, value in after.items() if name not in {"at", "changes", "processor seconds"}},
            "share of a core": (after["processor seconds"] - before["processor seconds"]) / seconds,
            "bytes per pod": before["MiB resident"] * (1 << 20) / pods,
        }
        lines = list(story.lines(flooded, version=count + 10))
        return found | flood(listener, lines, after)


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulate, print, and end with 1 if it does not keep up."""
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="of the cluster's life")
    parser.add_argument("--nodes", type=int, default=5_000, help="with thirty pods each")
    parser.add_argument("--smoke", action="store_true", help="a small one of three seconds")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    asked = parser.parse_args(arguments)
    nodes, seconds, flooded = (50, 3.0, 3.0) if asked.smoke else (asked.nodes, asked.minutes * 60, FLOOD_SECONDS)
    found = measure(nodes, seconds, flooded)
    rate = rates.of(nodes, nodes * fleet.PODS_PER_NODE)
    print(f"rates per second: {asdict(rate)}")
    for name, value in found.items():
        print(f"{name:28} {value:.5g}")
    met = found["lag p99 ms"] < TARGET_MS
    print(f"target lag p99 below {TARGET_MS:g} ms: {'met' if met else 'missed'}")
    if asked.json:
        asked.json.write_bytes(msgspec.json.format(msgspec.json.encode(found)))
    return int(not met and not asked.smoke)


if __name__ == "__main__":
    sys.exit(main())
