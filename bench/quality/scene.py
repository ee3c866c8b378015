"""The start: a few nodes that are nearly full, many that are not, and workloads spread over both.   Pure."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from testbed import objects
from testbed.api import Object

NODE_CPU, NODE_MEMORY, NODE_PODS = 8_000, 32_768, 110
"""Thousandths of a core, MiB, pods."""
FULL_PERCENT, FILLED_PERCENT, COLD_PERCENT = 90.0, 97.0, 40.0
IMAGE, IMAGE_BYTES = "app:1", 5_000_000_000
"""So large that the scheduler's preference for nodes that have it is as strong as it gets."""
POOL = "example.com/pool"
PREFERENCE = 50
"""Weight with which pods prefer the full nodes, where they do: half of what a hint has."""
THRESHOLD, FLOOR = 20.0, 5.0
"""The product's defaults for imbalance: percent of the mean, and points."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large a scene is."""

    nodes: int
    hot: int
    pods: int


@dataclass(frozen=True, slots=True)
class Workload:
    """A Deployment, and the node of each of its pods."""

    name: str
    cpu: int
    memory: int
    nodes: tuple[str, ...]

    def body(self, *, prefers_hot: bool) -> Object:
        """As it is created."""
        spec: dict[str, Any] = {"cpu": f"{self.cpu}m", "memory": f"{self.memory}Mi"}
        if prefers_hot:
            rule = {"key": POOL, "operator": "In", "values": ["hot"]}
            term = {"weight": PREFERENCE, "preference": {"matchExpressions": [rule]}}
            spec["affinity"] = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}
        return objects.deployment(self.name, replicas=len(self.nodes), **spec)


@dataclass(frozen=True, slots=True)
class Scene:
    """Where everything is at the start."""

    hot: tuple[str, ...]
    workloads: tuple[Workload, ...]

    @property
    def pods(self) -> int:
        return sum(len(it.nodes) for it in self.workloads)


def names(sizes: Sizes) -> tuple[str, ...]:
    return tuple(f"node-{number:02}" for number in range(sizes.nodes))


def nodes(sizes: Sizes) -> list[Object]:
    """Half of them spot, in three zones; the full ones are of both kinds."""
    return [
        objects.node(
            name,
            spot=number % 2 == 1,
            zone=objects.ZONES[number % len(objects.ZONES)],
            cpu=f"{NODE_CPU}m",
            memory=f"{NODE_MEMORY}Mi",
            labels={POOL: "hot" if number < sizes.hot else "cold"},
        )
        for number, name in enumerate(names(sizes))
    ]


def make(sizes: Sizes, seed: int) -> Scene:
    """Pods of all workloads in random order onto the full nodes until they are full, then onto the others."""
    rng = random.Random(seed)
    every = names(sizes)
    hot, cold = every[: sizes.hot], every[sizes.hot :]
    kinds = _kinds(sizes.pods, rng)
    waiting = [(name, cpu, memory) for name, cpu, memory, replicas in kinds for _ in range(replicas)]
    rng.shuffle(waiting)
    used = {name: [0, 0] for name in every}
    placed: dict[str, list[str]] = {name: [] for name, *_ in kinds}
    for name, cpu, memory in waiting:
        node = _place(cpu, memory, hot, FILLED_PERCENT, used, rng) or _place(
            cpu, memory, cold, COLD_PERCENT, used, rng
        )
        if node is not None:
            placed[name].append(node)
    for node in hot:
        if _share(*used[node]) < FULL_PERCENT:
            return make(sizes, seed + 1_000)
    made = (Workload(name, cpu, memory, tuple(placed[name])) for name, cpu, memory, _ in kinds)
    return Scene(hot, tuple(it for it in made if it.nodes))


def _kinds(pods: int, rng: random.Random) -> list[tuple[str, int, int, int]]:
    found: list[tuple[str, int, int, int]] = []
    left = pods
    while left > 0:
        replicas = min(left, rng.choice((2, 3, 3, 4, 5, 6, 8, 10, 12, 20)))
        cpu = rng.choice((50, 100, 100, 150, 150, 200, 250, 300, 400, 500))
        memory = int(cpu * 4 * rng.uniform(0.6, 1.4))
        found.append((f"w{len(found):02}", cpu, memory, replicas))
        left -= replicas
    return found


def _place(
    cpu: int, memory: int, on: tuple[str, ...], limit: float, used: dict[str, list[int]], rng: random.Random
) -> str | None:
    open_nodes = [it for it in on if _share(used[it][0] + cpu, used[it][1] + memory) <= limit]
    if not open_nodes:
        return None
    node = rng.choice(open_nodes)
    used[node][0] += cpu
    used[node][1] += memory
    return node


def _share(cpu: int, memory: int) -> float:
    return max(100 * cpu / NODE_CPU, 100 * memory / NODE_MEMORY)


@dataclass(frozen=True, slots=True)
class Line:
    """What balanced means here: the same as for the strategy LoadBalancing with its defaults."""

    mean: float
    act: float


Holding = Mapping[str, tuple[int, int]]
"""Requests of pods by name: thousandths of a core and MiB."""


def line(held: Mapping[str, Holding]) -> Line:
    """From what every node holds."""
    sums = [sum(pod[part] for pods in held.values() for pod in pods.values()) for part in (0, 1)]
    count = sum(len(pods) for pods in held.values())
    mean = max(
        100 * sums[0] / (NODE_CPU * len(held)),
        100 * sums[1] / (NODE_MEMORY * len(held)),
        100 * count / (NODE_PODS * len(held)),
    )
    margin = max(mean * THRESHOLD / 100, FLOOR)
    return Line(mean, mean + margin)


def load(pods: Holding) -> float:
    """The largest share of a node, in percent."""
    cpu, memory = (sum(pod[part] for pod in pods.values()) for part in (0, 1))
    return max(_share(cpu, memory), 100 * len(pods) / NODE_PODS)


def fewest(held: Mapping[str, Holding]) -> int:
    """Moves without which it cannot be done: of each overfull node, in its worst share, as many of the largest pods
    as it takes to get down to the line. Whether they fit elsewhere is not asked.
    """
    act = line(held).act
    return sum(_leavers(pods, act) for pods in held.values())


def _leavers(pods: Holding, line: float) -> int:
    worst = 0
    for part, offered in ((0, NODE_CPU), (1, NODE_MEMORY)):
        over = sum(pod[part] for pod in pods.values()) - line * offered / 100
        count = 0
        for size in sorted((pod[part] for pod in pods.values()), reverse=True):
            if over <= 0:
                break
            over, count = over - size, count + 1
        worst = max(worst, count)
    return worst
