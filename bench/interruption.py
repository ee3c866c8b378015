"""`python -m bench.interruption [--smoke] [--json FILE]`: a spot node is taken away, with us, with kubectl drain,
with the sigs descheduler and its plugin for taints every five seconds, and with nobody doing anything.

Thirty pods on the node, each needs five seconds to start: a workload of 16 without a budget, one of 10 that may lose
half, and four single ones. The platform says so 120 seconds before it takes the node; other spot nodes have room.
What counts is how many seconds of Ready replicas each workload is short of, from the notice on.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec
import urllib3
import yaml

from bench import peer, plane
from testbed import bed, cordons, install, objects
from testbed.api import Api, ApiError
from testbed.bed import ControlPlane
from testbed.pytest_plugin import make_namespace, remove_namespace
from testbed.waiting import eventually

OURS, DRAIN, PEER, NOTHING = "spotshift", "kubectl drain", "sigs descheduler", "nothing"
PEER_INTERVAL_SECONDS = 5
SETTLED_SECONDS, LOOK_SECONDS = 15.0, 0.2
TAINT: Final = {"key": "aws-node-termination-handler/spot-itn", "effect": "NoSchedule"}
START: Final = {"testbed.spotshift.dev/ready-delay": "5s"}
SYSTEM: Final = "spotshift-system"
SETTINGS: Final[Mapping[str, Any]] = {
    "apiVersion": "spotshift.dev/v1alpha1",
    "kind": "Policy",
    "enabledStrategies": ["SpotInterruption"],
}


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much there is to lose, and how long it takes."""

    apps: Mapping[str, int]
    notice: float
    watched: float
    """Seconds after the notice that are looked at."""


FULL = Sizes({"web": 16, "api": 10, "one": 1, "two": 1, "three": 1, "four": 1}, notice=120, watched=240)
SMOKE = Sizes({"web": 4, "one": 1}, notice=40, watched=50)


@dataclass(frozen=True, slots=True)
class Result:
    """One node taken away once."""

    variant: str
    pods: int
    first_eviction: float | None
    most_ready: float | None
    """When nine in ten were Ready elsewhere, in seconds after the notice."""
    all_ready: float | None
    lost: float
    """Seconds of Ready replicas that were missing, over all workloads."""
    worst: int
    """Most replicas that were missing at once."""


@dataclass(slots=True)
class Watched:
    """What became of the pods, from a watch."""

    apps: Mapping[str, int]
    lost: str
    pods: dict[str, tuple[str, str, bool]] = field(default_factory=dict)
    """App, node, and whether it serves."""
    gone: bool = False
    """The node is: what was on it serves nobody any more, whatever the API says."""
    evicted: float | None = None
    short: list[tuple[float, int, int]] = field(default_factory=list)
    """When it changed: replicas missing, and replicas Ready elsewhere."""

    def follow(self, kube: Api, namespace: str, seconds: int) -> None:
        """Until the time is over."""
        with suppress(ApiError, OSError, urllib3.exceptions.HTTPError):
            for event in kube.watch("pods", namespace, seconds=seconds):
                self.take(event["type"], event["object"])

    def take(self, kind: str, pod: Mapping[str, Any]) -> None:
        """One change."""
        name, leaving = pod["metadata"]["name"], "deletionTimestamp" in pod["metadata"]
        node = pod["spec"].get("nodeName", "")
        if kind == "DELETED":
            self.pods.pop(name, None)
        else:
            self.pods[name] = pod["metadata"]["labels"]["app"], node, objects.is_ready(pod) and not leaving
        if leaving and node == self.lost and self.evicted is None and not self.gone:
            self.evicted = time.monotonic()
        self.count()

    def count(self) -> None:
        """As it stands."""
        serving = [it for it in list(self.pods.values()) if it[2] and not (self.gone and it[1] == self.lost)]
        missing = elsewhere = 0
        for app, wanted in self.apps.items():
            missing += max(0, wanted - sum(1 for it in serving if it[0] == app))
            elsewhere += min(wanted, sum(1 for it in serving if it[0] == app and it[1] != self.lost))
        self.short.append((time.monotonic(), missing, elsewhere))

    def settled(self) -> bool:
        """Whether all have been Ready elsewhere for a while: nothing is lost any more."""
        at, missing, elsewhere = self.short[-1]
        return not missing and elsewhere == sum(self.apps.values()) and time.monotonic() > at + SETTLED_SECONDS


def result(variant: str, seen: Watched, began: float, ended: float) -> Result:
    """What was missing between the two, and when it was there again."""
    pods = sum(seen.apps.values())
    steps = [it for it in seen.short if began <= it[0] <= ended]
    until = [at for at, _, _ in steps[1:]] + [ended]
    lost = sum(missing * (end - at) for (at, missing, _), end in zip(steps, until, strict=True))

    def when(count: float) -> float | None:
        return next((round(at - began, 1) for at, _, elsewhere in steps if elsewhere >= count), None)

    first = round(seen.evicted - began, 2) if seen.evicted is not None else None
    worst = max((missing for _, missing, _ in steps), default=0)
    return Result(variant, pods, first, when(0.9 * pods), when(pods), round(lost, 1), worst)


@dataclass(frozen=True, slots=True)
class Stage:
    """A control plane with the product in it."""

    running: ControlPlane
    kube: Api
    sizes: Sizes

    def mode(self, mode: str) -> None:
        """Whether the product may act."""
        text = yaml.safe_dump({**SETTINGS, "mode": mode})
        self.kube.patch("configmaps", "spotshift-settings", {"data": {"settings.yaml": text}}, SYSTEM)

    def play(self, variant: str) -> Result:
        """Lay it out, take the node away, and look."""
        self.mode("enforce" if variant == OURS else "observe")
        namespace = f"bench-{variant.replace(' ', '-')}"
        make_namespace(self.kube, namespace)
        made = [objects.node(f"{namespace}-{number}", spot=True, cpu="16") for number in range(5)]
        bed.add_nodes(self.kube, made)
        lost, *others = [it["metadata"]["name"] for it in made]
        self._lay_out(namespace, lost)
        plane.await_leader(self.running)
        seen = Watched(self.sizes.apps, lost)
        seconds = int(self.sizes.watched) + 5
        threading.Thread(target=seen.follow, args=(self.running.api(), namespace, seconds), daemon=True).start()
        eventually(lambda: len(seen.pods), until=lambda it: it == sum(self.sizes.apps.values()), what="the watch")
        began = time.monotonic()
        seen.count()
        self.kube.patch("nodes", lost, {"spec": {"taints": [TAINT]}})
        if variant == DRAIN:
            _beside(lambda: self.running.kubectl("drain", lost, "--ignore-daemonsets", "--timeout=120s"))
        with self._peer() if variant == PEER else nullcontext():
            _wait(seen, began + self.sizes.notice)
        seen.gone = True
        seen.count()
        self.kube.delete("nodes", lost)
        _wait(seen, began + self.sizes.watched)
        ended = time.monotonic()
        remove_namespace(self.kube, namespace)
        for name in others:
            self.kube.delete("nodes", name)
        return result(variant, seen, began, ended)

    def _peer(self) -> AbstractContextManager[None]:
        """The sigs descheduler evicts what does not tolerate a taint."""
        policy = peer.profile("RemovePodsViolatingNodeTaints", {}, kind="deschedule")
        return peer.running(self.running, policy, interval_seconds=PEER_INTERVAL_SECONDS)

    def _lay_out(self, namespace: str, lost: str) -> None:
        """All pods begin on the node that goes, whoever plays: what the webhook prefers while it acts, and the
        scheduler while it does not, would be two different scenes.
        """
        others = [it["metadata"]["name"] for it in self.kube.list("nodes") if it["metadata"]["name"] != lost]
        cordons.cordon(self.kube, others)
        for app, replicas in self.sizes.apps.items():
            body = objects.deployment(app, replicas=replicas, annotations=START)
            self.kube.create("deployments", body, namespace)
        self.kube.create("poddisruptionbudgets", objects.budget("api", app="api", maxUnavailable="50%"), namespace)
        eventually(
            lambda: sum(map(objects.is_ready, self.kube.list("pods", namespace))),
            until=lambda count: count == sum(self.sizes.apps.values()),
            timeout=120,
            what="all pods Ready",
        )
        cordons.uncordon(self.kube, others)
        eventually(  # the taint goes a moment after the cordon, and until then the node is no target
            lambda: [it["metadata"]["name"] for it in self.kube.list("nodes") if it["spec"].get("taints")],
            until=lambda closed: not closed,
            what="all nodes to be open",
        )


def _beside(run: Callable[[], object]) -> None:
    threading.Thread(target=run, daemon=True).start()


def _wait(seen: Watched, until: float) -> None:
    """Until then, or until there is nothing more to see."""
    while time.monotonic() < until and not seen.settled():
        time.sleep(LOOK_SECONDS)


@contextmanager
def stage(sizes: Sizes) -> Iterator[Stage]:
    """Everything up; gone afterwards."""
    with plane.started(nodes=2) as started:
        install.install(started, tell=lambda _: None)
        yield Stage(started, started.api(), sizes)


def table(results: Sequence[Result]) -> str:
    """One column for each variant."""
    rows: dict[str, Callable[[Result], object]] = {
        "first eviction after the notice, s": lambda it: it.first_eviction,
        "nine in ten Ready elsewhere, s": lambda it: it.most_ready,
        "all Ready elsewhere, s": lambda it: it.all_ready,
        "Ready-replica-seconds lost": lambda it: it.lost,
        "replicas missing at once": lambda it: it.worst,
    }
    lines = ["| | " + " | ".join(it.variant for it in results) + " |", "|---" * (len(results) + 1) + "|"]
    for name, read in rows.items():
        told = ["-" if read(it) is None else str(read(it)) for it in results]
        lines.append(f"| {name} | " + " | ".join(told) + " |")
    return "\n".join(lines)


def misses(results: Sequence[Result]) -> list[str]:
    """What ours promises and did not keep."""
    ours = [it for it in results if it.variant == OURS]
    others = [it for it in results if it.variant != OURS]
    checks = {
        "the first eviction within a second": all((it.first_eviction or 9) < 1 for it in ours),
        "nine in ten Ready within 30 seconds": all((it.most_ready or 999) < 30 for it in ours),
        "all Ready before the node is gone": all((it.all_ready or 999) < 120 for it in ours),
        "less is lost than otherwise": all(it.lost <= other.lost for it in ours for other in others),
    }
    return [name for name, kept in checks.items() if not kept]


def main(arguments: Sequence[str] | None = None) -> int:
    """Play, print, and end with 1 if a promise was not kept."""
    parser = argparse.ArgumentParser(prog="python -m bench.interruption", description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="a small one, ours alone")
    parser.add_argument("--json", type=Path, help="write every single result to this file")
    asked = parser.parse_args(arguments)
    results = []
    if not asked.smoke:
        peer.ensure()  # compiling it is not part of its time
    with stage(SMOKE if asked.smoke else FULL) as made:
        for variant in [OURS] if asked.smoke else [OURS, DRAIN, PEER, NOTHING]:
            results.append(made.play(variant))
            print(msgspec.json.encode(asdict(results[-1])).decode(), flush=True)
    print(table(results))
    if asked.json:
        asked.json.write_bytes(msgspec.json.format(msgspec.json.encode([asdict(it) for it in results])))
    missed = misses(results)
    for promise in missed:
        print(f"not kept: {promise}")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
