"""Pods that would rather be on spot, and no room there: how often are they thrown out for nothing?

    python -m bench.thrash [--minutes 5] [--smoke] [--json FILE]

Pods prefer spot nodes and sit on on-demand nodes; every spot node is full. The product runs from its manifests, with
SpotReclaim, SpotMix and LoadBalancing; the sigs descheduler with the plugin that looks after preferred node affinity,
and with nodeFit. Both look as often. An evicted pod comes back to on-demand; evictions are counted from a watch.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from bench import peer, plane
from bench.quality.watched import Watched
from testbed import install, objects
from testbed.bed import ControlPlane
from testbed.pytest_plugin import make_namespace, remove_namespace
from testbed.waiting import eventually

OURS, PEER = "spotshift", "sigs descheduler"
SYSTEM, INTERVAL_SECONDS = "spotshift-system", 5
NODES, REPLICAS = 4, 20
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
SETTINGS: Final[dict[str, Any]] = {
    "apiVersion": "spotshift.dev/v1alpha1",
    "kind": "Policy",
    "reschedulingInterval": f"{INTERVAL_SECONDS}s",
    "enabledStrategies": ["SpotReclaim", "SpotMix", "LoadBalancing"],
    "limits": {"minPodAge": "0s"},
    "strategies": {"SpotReclaim": {"minStay": "0s", "coolDown": "1s"}},
}


@dataclass(frozen=True, slots=True)
class Result:
    """One of them for so long."""

    variant: str
    pods: int
    seconds: float
    evictions: int

    @property
    def per_hour(self) -> float:
        return self.evictions / self.seconds * 3600


@dataclass(frozen=True, slots=True)
class Stage:
    """Full spot nodes, and the product waiting in `mode: observe`."""

    running: ControlPlane

    def mode(self, mode: str) -> None:
        """Say whether the product may act."""
        text = yaml.safe_dump({**SETTINGS, "mode": mode})
        self.running.api().patch("configmaps", "spotshift-settings", {"data": {"settings.yaml": text}}, SYSTEM)

    def play(self, variant: str, seconds: float) -> Result:
        """Pods come to on-demand, somebody may act on them, and it is counted who has to go."""
        kube, namespace = self.running.api(), f"thrash-{variant.replace(' ', '-')}"
        make_namespace(kube, namespace)
        kube.create("deployments", workload(), namespace)
        eventually(
            lambda: sum(map(objects.is_ready, kube.list("pods", namespace))),
            until=lambda ready: ready == REPLICAS,
            timeout=120,
            what="the pods",
        )
        plane.await_leader(self.running)
        watched = Watched(kube, namespace, {"web": REPLICAS})
        watched.start()
        began = time.monotonic()
        with self.acting() if variant == OURS else self.peer():
            time.sleep(seconds)
        took = time.monotonic() - began
        watched.close()
        remove_namespace(kube, namespace)
        return Result(variant, REPLICAS, took, len(watched.left))

    @contextmanager
    def acting(self) -> Iterator[None]:
        """The product, for the time of the block."""
        self.mode("enforce")
        try:
            yield
        finally:
            self.mode("observe")

    def peer(self) -> AbstractContextManager[None]:
        """The sigs descheduler's way to bring pods to the nodes that they prefer, with its check for room."""
        args = {"nodeAffinityType": [PREFERRED]}
        policy = peer.profile("RemovePodsViolatingNodeAffinity", args, kind="deschedule", maxNoOfPodsToEvictTotal=10)
        return peer.running(self.running, policy, interval_seconds=INTERVAL_SECONDS)


def workload() -> dict[str, Any]:
    """Would rather be on spot."""
    rule = {"key": objects.CAPACITY, "operator": "In", "values": ["spot"]}
    term = {"weight": 10, "preference": {"matchExpressions": [rule]}}
    affinity = {"nodeAffinity": {PREFERRED: [term]}}
    return objects.deployment(
        "web", replicas=REPLICAS, cpu="500m", affinity=affinity, terminationGracePeriodSeconds=1
    )


@contextmanager
def stage() -> Iterator[Stage]:
    """Everything up; gone afterwards."""
    with plane.started(nodes=NODES, spot=NODES) as running:
        install.install(running, tell=lambda _: None)
        yield full(running)


def full(running: ControlPlane) -> Stage:
    """On every spot node one pod that leaves no room for any other."""
    kube, made = running.api(), Stage(running)
    made.mode("observe")
    make_namespace(kube, "full")
    own = {objects.CAPACITY: "spot"}
    kube.create("deployments", objects.deployment("full", replicas=NODES, cpu="7700m", nodeSelector=own), "full")
    eventually(
        lambda: sum(map(objects.is_ready, kube.list("pods", "full"))), until=lambda it: it == NODES, timeout=120
    )
    return made


def table(results: Sequence[Result]) -> str:
    """One row each."""
    lines = ["| | evictions | within s | evictions per hour |", "|---|---|---|---|"]
    lines += [f"| {it.variant} | {it.evictions} | {it.seconds:.0f} | {it.per_hour:.0f} |" for it in results]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Play, print, and end with 1 if ours evicted anything."""
    parser = argparse.ArgumentParser(prog="python -m bench.thrash", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0, help="for each of them")
    parser.add_argument("--smoke", action="store_true", help="ours alone, a few passes")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    asked = parser.parse_args(arguments)
    results = []
    if not asked.smoke:
        peer.ensure()  # compiling it is not part of its time
    with stage() as made:
        for variant in [OURS] if asked.smoke else [OURS, PEER]:
            results.append(made.play(variant, 3 * INTERVAL_SECONDS if asked.smoke else asked.minutes * 60))
            print(msgspec.json.encode(asdict(results[-1])).decode(), flush=True)
    print(table(results))
    if asked.json:
        body = [asdict(it) | {"per_hour": it.per_hour} for it in results]
        asked.json.write_bytes(msgspec.json.format(msgspec.json.encode(body)))
    return int(any(it.evictions for it in results if it.variant == OURS))


if __name__ == "__main__":
    sys.exit(main())
