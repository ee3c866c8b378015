"""`python -m bench.extender [--smoke] [--json FILE]`: what the extender costs a scheduler, and what its weights do.

A control plane of its own. Pods per second are counted from the first to the last binding of a batch that waits when
the scheduler starts: without an extender, with one that is asked by name or with whole nodes, with one that is dead,
and with one that takes connections and never answers. Weights: the share of pods that prefer spot on spot, and the
replacements that reach their target by score alone.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console

from bench.extender import questions, stage
from bench.extender.stage import Extender
from testbed import api, bed, binaries, progress, pytest_plugin
from testbed.api import Api
from testbed.bed import ControlPlane
from testbed.waiting import eventually

Trouble = Callable[[Extender], None]
NONE, NAMES, WHOLE, DEAD, SLOW = "no extender", "asked by names", "asked with whole nodes", "dead", "never answers"
VARIANTS: Mapping[str, tuple[Mapping[str, Any], Trouble]] = {
    NONE: ({}, lambda _: None),
    NAMES: ({}, lambda _: None),
    WHOLE: ({"nodeCacheCapable": False}, lambda _: None),
    DEAD: ({}, Extender.kill),
    SLOW: ({}, Extender.freeze),
}
SPOT_CASES = ((NONE, 0, ""), ("score", 1, ""), ("score", 3, ""), ("score", 10, ""), ("filter", 1, "{prefer: filter}"))
TARGET_CASES = (("score", 1), ("score", 3), ("score", 10), ("filter", 1))


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much of everything."""

    rounds: int
    nodes: int
    pods: int
    slow_pods: int
    """Where every pod waits for two time-outs."""
    replicas: int
    moved: int


FULL, SMOKE = Sizes(3, 20, 100, 10, 40, 50), Sizes(1, 4, 12, 4, 8, 8)


@dataclass(slots=True)
class Stage:
    """One control plane, and a new namespace and scheduler for each measurement."""

    bed: ControlPlane
    kube: Api
    folder: Path
    nodes: Sequence[str]
    count: int = field(default=0)

    def namespace(self) -> str:
        """A new one."""
        self.count += 1
        name = f"bench-{self.count}"
        pytest_plugin.make_namespace(self.kube, name)
        return name

    def clear(self, namespace: str) -> None:
        """Leave the nodes as they were."""
        stage.clear(self.kube, namespace)
        pytest_plugin.remove_namespace(self.kube, namespace)
        eventually(lambda: self.kube.list("pods", namespace), until=lambda left: not left, timeout=120)


def throughput(on: Stage, variant: str, pods: int) -> float:
    """Pods per second."""
    changed, trouble = VARIANTS[variant]
    namespace = on.namespace()
    made = stage.replica_set("web", replicas=pods, scheduler_name=namespace)
    on.kube.create("replicasets", made, namespace)
    eventually(lambda: len(on.kube.list("pods", namespace)), until=lambda it: it == pods, timeout=120)
    bound: list[float] = []
    watcher = threading.Thread(target=_watch, args=(on.bed.api(), namespace, pods, bound), daemon=True)
    watcher.start()
    with ExitStack() as running:
        it = running.enter_context(stage.extender(on.bed, on.bed.kubeconfig, on.folder / f"{namespace}-extender"))
        trouble(it)
        port = None if variant == NONE else it.port
        running.enter_context(stage.scheduler(on.bed, namespace, on.folder / namespace, port, **changed))
        watcher.join(300)
    on.clear(namespace)
    return (len(bound) - 1) / (bound[-1] - bound[0])


def _watch(kube: api.Api, namespace: str, pods: int, bound: list[float]) -> None:
    seen: set[str] = set()
    for event in kube.watch("pods", namespace, seconds=300):
        name = event["object"]["metadata"]["name"]
        if event["object"]["spec"].get("nodeName") and name not in seen:
            seen.add(name)
            bound.append(time.monotonic())
            if len(bound) == pods:
                return


def on_spot(on: Stage, by: str, weight: int, said: str, pods: int) -> float:
    """Share of the pods of one workload that prefer spot, in percent; half of the nodes are spot."""
    namespace = on.namespace()
    settings = f"extender: {said}" if said else ""
    with ExitStack() as running:
        port = None
        if by != NONE:
            folder = on.folder / f"{namespace}-extender"
            it = running.enter_context(stage.extender(on.bed, on.bed.kubeconfig, folder, settings=settings))
            port = it.port
        changed = {"weight": weight} if port else {}
        running.enter_context(stage.scheduler(on.bed, namespace, on.folder / namespace, port, **changed))
        made = stage.replica_set("web", replicas=pods, scheduler_name=namespace)
        on.kube.create("replicasets", made, namespace)
        found = stage.placed(on.kube, namespace, pods)
    on.clear(namespace)
    return 100 * sum(node.startswith("spot-") for node in found.values()) / pods


def on_target(on: Stage, by: str, weight: int, pods: int, seed: int) -> float:
    """Replacements that reach a target that was drawn by lot, in percent."""
    namespace = on.namespace()
    with ExitStack() as running:
        folder, settings = on.folder / f"{namespace}-extender", f"extender: {{target: {by}}}"
        it = running.enter_context(stage.extender(on.bed, on.bed.kubeconfig, folder, settings=settings))
        running.enter_context(stage.scheduler(on.bed, namespace, on.folder / namespace, it.port, weight=weight))
        for number in range(2):
            made = stage.replica_set(f"web-{number}", replicas=pods // 2, scheduler_name=namespace)
            on.kube.create("replicasets", made, namespace)
        stage.placed(on.kube, namespace, pods // 2 * 2)
        reached = stage.move_all(on.kube, namespace, it, on.nodes, random.Random(seed))
    on.clear(namespace)
    return 100 * reached / (pods // 2 * 2)


@dataclass(slots=True)
class Figures:
    """One list for each case, one number for each round."""

    pods_per_second: dict[str, list[float]] = field(default_factory=dict)
    percent_on_spot: dict[str, list[float]] = field(default_factory=dict)
    percent_on_target: dict[str, list[float]] = field(default_factory=dict)
    micros_per_question: dict[str, list[float]] = field(default_factory=dict)


def measure(on: Stage, sizes: Sizes) -> Figures:
    """All cases in turn, as many rounds as are asked for."""
    made = Figures()
    for number in range(sizes.rounds):
        for name in VARIANTS:
            pods = sizes.slow_pods if name == SLOW else sizes.pods
            _add(made.pods_per_second, name, throughput(on, name, pods))
        for by, weight, said in SPOT_CASES:
            _add(made.percent_on_spot, _case(by, weight), on_spot(on, by, weight, said, sizes.replicas))
        for by, weight in TARGET_CASES:
            _add(made.percent_on_target, _case(by, weight), on_target(on, by, weight, sizes.moved, number))
        for name, micros in questions.measure():
            _add(made.micros_per_question, name, micros)
    return made


def _case(by: str, weight: int) -> str:
    return by if by == NONE else f"by {by}, weight {weight}"


def _add(into: dict[str, list[float]], name: str, value: float) -> None:
    into.setdefault(name, []).append(round(value, 1))
    print(f"{name}: {value:.1f}", file=sys.stderr, flush=True)  # it takes minutes


def report(made: Figures) -> str:
    """Tables with the median, and the least and the most in brackets."""
    titles = {
        "pods_per_second": "pods per second",
        "percent_on_spot": "percent on spot of pods that prefer it",
        "percent_on_target": "percent of replacements on target",
        "micros_per_question": "processor time of one question, us",
    }
    lines = []
    for key, title in titles.items():
        lines += ["", f"| {title} | median | least to most |", "|---|---|---|"]
        for name, values in getattr(made, key).items():
            ordered = sorted(values)
            middle = ordered[len(ordered) // 2]
            lines.append(f"| {name} | {middle:g} | {ordered[0]:g} to {ordered[-1]:g} |")
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.extender", description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="small sizes that only show that it works")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures into this file")
    asked = parser.parse_args(arguments)
    sizes = SMOKE if asked.smoke else FULL
    found = binaries.ensure(os.environ, report=progress.BuildProgress(Console(stderr=True)))
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "bed"
        running = bed.up(home, found, nodes=sizes.nodes // 2, spot=sizes.nodes // 2, owner=os.getpid())
        try:
            stage.define_moves(running)
            kube = running.api()
            names = [node["metadata"]["name"] for node in kube.list("nodes")]
            made = measure(Stage(running, kube, Path(folder), names), sizes)
        finally:
            bed.down(home)
    print(f"{sizes.nodes} nodes, {sizes.pods} pods a batch, {sizes.rounds} rounds")
    print(report(made))
    if asked.json:
        asked.json.write_bytes(msgspec.json.format(msgspec.json.encode(asdict(made))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
