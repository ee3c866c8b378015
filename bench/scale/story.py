"""What happens in the simulated cluster, event by event.   Pure: the same seed tells the same story.

A pod that goes leaves its place to the one that comes for it, so the cluster stays as even as it was. A probe, a pod
that changes fifty times a second, tells by a label which of its changes has been seen.
"""

from __future__ import annotations

import heapq
import itertools
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from bench import fleet, pods
from bench.pods import Object
from bench.scale.rates import ROLLOUT_EVERY_SECONDS, Rates

PROBE = ("bench", "probe")
PROBE_LABEL = "turn"
PROBES_PER_SECOND = 50
STEP_SECONDS = 0.7
"""Between two events of one pod's life."""
FIRST_ROLLOUT_SECONDS = 10.0
NODES, PODS = "nodes", "pods"
REPLICASETS, DEPLOYMENTS, BUDGETS = "replicasets", "deployments", "poddisruptionbudgets"
KINDS = (NODES, DEPLOYMENTS, REPLICASETS, BUDGETS, PODS)

Tell = Callable[[int], bytes]
"""The line of a watch at this version: versions grow in the order in which lines are told."""
Soon = tuple[float, str, Tell]
Happen = Callable[[], Iterator[Soon]]
Line = tuple[float, str, bytes]
"""When it is due, in seconds from the beginning; of which kind; and the line."""


@dataclass(frozen=True, slots=True)
class Living:
    """A pod as it stands; its body is made when it is told."""

    template: int
    number: int
    node: str


class Story:
    """The events of one cluster in the order of time."""

    def __init__(self, nodes: int, placed: list[Living], rates: Rates, *, seed: int = 1) -> None:
        self._nodes = nodes
        self._placed = placed
        self._rates = rates
        self._rng = random.Random(seed)
        self._numbers = itertools.count(10_000_000)
        self._probes = itertools.count(1)

    def lines(self, seconds: float, *, version: int = 2) -> Iterator[Line]:
        """All events of so many seconds; what has begun by then comes to its end."""
        versions, order = itertools.count(version), itertools.count()
        later: list[tuple[float, int, str, Tell]] = []
        for at, happen in self._calendar(seconds):
            yield from _due(later, at, versions)
            for delay, kind, tell in happen():
                heapq.heappush(later, (at + delay, next(order), kind, tell))
        yield from _due(later, float("inf"), versions)

    def _calendar(self, seconds: float) -> Iterator[tuple[float, Happen]]:
        rates, first = self._rates, min(FIRST_ROLLOUT_SECONDS, seconds / 2)
        return heapq.merge(
            _every(rates.node_status, seconds, self._node_status),
            _every(rates.replaced, seconds, self._replace),
            _every(rates.flaps, seconds, self._flap),
            _every(1 / ROLLOUT_EVERY_SECONDS, seconds, self._roll_out, first=first),
            _every(PROBES_PER_SECOND, seconds, self._probe),
            key=lambda it: it[0],
        )

    def _probe(self) -> Iterator[Soon]:
        yield 0.0, PODS, partial(_probed, next(self._probes))

    def _node_status(self) -> Iterator[Soon]:
        beat = f"2026-06-01T00:{self._rng.randrange(60):02}:00Z"
        yield 0.0, NODES, partial(_node, self._rng.randrange(self._nodes), beat)

    def _replace(self) -> Iterator[Soon]:
        """One goes and another comes to its node."""
        at = self._rng.randrange(len(self._placed))
        old = self._placed[at]
        new = self._placed[at] = Living(old.template, next(self._numbers), old.node)
        yield from _leaves(old)
        yield from _comes(new)

    def _roll_out(self) -> Iterator[Soon]:
        for _ in range(self._rates.rollout):
            delay = self._rng.random()
            yield from ((delay + after, kind, tell) for after, kind, tell in self._replace())

    def _flap(self) -> Iterator[Soon]:
        it = self._rng.choice(self._placed)
        yield 0.0, PODS, partial(_pod, "MODIFIED", it, ready=False)
        yield from _counted(0.0, it, missing=1)
        yield 4.0, PODS, partial(_pod, "MODIFIED", it)
        yield from _counted(4.0, it, missing=0)


def _leaves(it: Living) -> Iterator[Soon]:
    yield 0.0, PODS, partial(_pod, "MODIFIED", it, leaving=True)
    yield STEP_SECONDS, PODS, partial(_pod, "MODIFIED", it, leaving=True, ready=False)
    yield from _counted(STEP_SECONDS, it, missing=1)
    yield 2 * STEP_SECONDS, PODS, partial(_pod, "DELETED", it, leaving=True, ready=False)


def _comes(it: Living) -> Iterator[Soon]:
    yield 0.1, PODS, partial(_pod, "ADDED", it, bound=False, ready=False)
    yield from _counted(0.1, it, missing=1, healthy=False)
    yield 0.2, PODS, partial(_pod, "MODIFIED", it, ready=False)
    yield STEP_SECONDS, PODS, partial(_pod, "MODIFIED", it, ready=False)
    yield 4 * STEP_SECONDS, PODS, partial(_pod, "MODIFIED", it)
    yield from _counted(4 * STEP_SECONDS, it, missing=0)


def _counted(delay: float, it: Living, *, missing: int, healthy: bool = True) -> Iterator[Soon]:
    """Whoever counts this pod writes down how many there are; a budget only if one more or less is healthy."""
    yield delay, REPLICASETS, partial(_status, fleet.replica_set, it, missing=missing, of_deployment=True)
    yield delay, DEPLOYMENTS, partial(_status, fleet.deployment, it, missing=missing)
    if healthy:
        yield delay, BUDGETS, partial(_status, fleet.budget, it, missing=missing)


def _due(later: list[tuple[float, int, str, Tell]], at: float, versions: Iterator[int]) -> Iterator[Line]:
    while later and later[0][0] <= at:
        due, _, kind, tell = heapq.heappop(later)
        yield due, kind, tell(next(versions))


def _every(rate: float, seconds: float, happen: Happen, *, first: float = 0.0) -> Iterator[tuple[float, Happen]]:
    for number in range(math.ceil((seconds - first) * rate)):
        yield first + number / rate, happen


# ---- lines


def probe(number: int, *, version: int = 1) -> Object:
    """The probe after so many changes; its label makes each of them one that matters."""
    made = fleet.pod(0, 0, fleet.node_name(0), version=version)
    made["metadata"] |= {"namespace": PROBE[0], "name": PROBE[1], "uid": "probe", "ownerReferences": []}
    made["metadata"]["labels"] = {PROBE_LABEL: str(number)}
    return made


def _probed(number: int, version: int) -> bytes:
    return _event("MODIFIED", probe(number, version=version))


def _node(number: int, beat: str, version: int) -> bytes:
    return _event("MODIFIED", fleet.node(number, version=version, beat=beat))


def _status(make: Callable[..., Object], it: Living, version: int, **more: Any) -> bytes:
    return _event("MODIFIED", make(it.template, fleet.PODS_PER_NODE, version=version, **more))


def _pod(
    kind: str, it: Living, version: int, *, bound: bool = True, ready: bool = True, leaving: bool = False
) -> bytes:
    made = fleet.pod(it.template, it.number, it.node if bound else "", version=version)
    if leaving:
        made["metadata"]["deletionTimestamp"] = pods.BORN
    if not ready:
        made["status"]["phase"] = "Running" if leaving else "Pending"
        for condition in made["status"]["conditions"]:
            condition["status"] = "False" if "Ready" in condition["type"] else "True"
    return _event(kind, made)


def _event(kind: str, made: Object) -> bytes:
    return msgspec.json.encode({"type": kind, "object": made})
