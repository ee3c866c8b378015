"""What really happened to the pods, from a watch: who left where, who came where, and how many were down."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import urllib3

from bench.quality import scene
from testbed import objects
from testbed.api import Api, Object

SECONDS = 600
"""Longer than any run."""


@dataclass(slots=True)
class Seen:
    """One pod as last told."""

    app: str
    node: str
    cpu: int
    memory: int
    ready: bool
    leaving: bool


def seen(pod: Object) -> Seen:
    requests = pod["spec"]["containers"][0].get("resources", {}).get("requests", {})
    return Seen(
        app=pod["metadata"].get("labels", {}).get("app", ""),
        node=pod["spec"].get("nodeName", ""),
        cpu=_milli(requests.get("cpu", "100m")),
        memory=_mebi(requests.get("memory", "200Mi")),
        ready=objects.is_ready(pod),
        leaving="deletionTimestamp" in pod["metadata"],
    )


def _milli(text: str) -> int:
    return int(text[:-1]) if text.endswith("m") else int(text) * 1000


def _mebi(text: str) -> int:
    units = {"Ki": 1 / 1024, "Mi": 1, "Gi": 1024}
    return int(int(text[:-2]) * units[text[-2:]])


def allowed(replicas: int) -> int:
    """Pods of a workload that may be down at once where nobody said: the product's default."""
    return replicas // 10 if replicas > 10 else 2 if replicas >= 4 else 1


@dataclass
class Watched:
    """Everything since it was started; `close` ends it."""

    kube: Api
    namespace: str
    replicas: dict[str, int]
    others: dict[str, dict[str, tuple[int, int]]] = field(default_factory=dict)
    """By node: what pods of other namespaces ask for, which nobody moves."""
    pods: dict[str, Seen] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)
    """Node of each pod that was asked to go."""
    came: dict[str, str] = field(default_factory=dict)
    """Node of each pod that is new."""
    line: float = float("inf")
    """How full a node may be."""
    onto_full: int = 0
    """New pods on a node that was fuller than that without them."""
    again: int = 0
    """Pods that were asked to go although they had only just come."""
    hit_again: set[str] = field(default_factory=set)
    """Workloads of these pods."""
    over: Counter[str] = field(default_factory=Counter)
    """By workload: pods down beyond what is allowed, at the worst moment."""
    lost: float = 0.0
    """Seconds of Ready replicas that were missing, over all workloads."""
    _missing: tuple[float, int] | None = None
    """Since when so many replicas are missing."""
    _first: frozenset[str] = frozenset()
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _closed: bool = False

    def start(self) -> None:
        """From the pods as they are now."""
        for pod in self.kube.list("pods"):
            name, now = pod["metadata"]["name"], seen(pod)
            if pod["metadata"]["namespace"] == self.namespace:
                self.pods[name] = now
            else:
                self.others.setdefault(now.node, {})[name] = (now.cpu, now.memory)
        self._first = frozenset(self.pods)
        self._count(time.monotonic())
        threading.Thread(target=self._follow, name="watched", daemon=True).start()

    def close(self) -> None:
        """What comes later does not count."""
        with self._lock:
            self._count(time.monotonic())
            self._closed = True

    def held(self, every: Iterable[str]) -> dict[str, dict[str, tuple[int, int]]]:
        """Requests on each node now, pods on their way out not counted."""
        with self._lock:
            return {node: self._held(node) for node in every}

    def _held(self, node: str, *, but: str = "") -> dict[str, tuple[int, int]]:
        staying = ((name, it) for name, it in self.pods.items() if it.node == node and not it.leaving and name != but)
        return {**self.others.get(node, {}), **{name: (it.cpu, it.memory) for name, it in staying}}

    def settled(self) -> bool:
        """Every workload has all its pods, Ready."""
        with self._lock:
            return not any(self._down().values())

    def _follow(self) -> None:
        # From the beginning: pods that changed between the list and the watch come again, which changes nothing.
        with suppress(urllib3.exceptions.HTTPError):  # the control plane goes down before the watch has ended
            for event in self.kube.watch("pods", self.namespace, seconds=SECONDS):
                with self._lock:
                    if self._closed:
                        return
                    self._take(event["type"], event["object"])

    def _take(self, kind: str, pod: dict[str, Any]) -> None:
        if kind not in {"ADDED", "MODIFIED", "DELETED"}:
            return
        name, now = pod["metadata"]["name"], seen(pod)
        if (now.leaving or kind == "DELETED") and name not in self.left and name in self.pods:
            self.left[name] = now.node
            if name not in self._first:
                self.again += 1
                self.hit_again.add(now.app)
        if name not in self._first and now.node and name not in self.came:
            self.came[name] = now.node
            self.onto_full += scene.load(self._held(now.node, but=name)) > self.line
        if kind == "DELETED":
            self.pods.pop(name, None)
        else:
            self.pods[name] = now
        self._count(time.monotonic())
        for app, down in self._down().items():
            self.over[app] = max(self.over[app], down - allowed(self.replicas[app]))

    def _count(self, now: float) -> None:
        if self._missing is not None:
            since, missing = self._missing
            self.lost += missing * (now - since)
        self._missing = now, sum(max(0, down) for down in self._down().values())

    def _down(self) -> dict[str, int]:
        up = Counter(pod.app for pod in self.pods.values() if pod.ready and not pod.leaving)
        return {app: wanted - up[app] for app, wanted in self.replicas.items()}
