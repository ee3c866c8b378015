"""One namespace and its nodes, what befalls them, and a protocol of what happens to the pods meanwhile."""

import contextlib
import secrets
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Self

import urllib3

from policy import keys
from testbed import bed, cordons, objects
from testbed.api import Api, ApiError, Object
from testbed.pytest_plugin import CONFINED, make_namespace, remove_namespace
from testbed.waiting import eventually
from tests.integration.descheduler.interruptions.product import Product

KEYS: Final = keys.under()
MARKS: Final = (KEYS.cordoned_by, KEYS.interruption_cause, KEYS.interruption_since, KEYS.interruption_deadline)
ITN: Final = "aws-node-termination-handler/spot-itn"
OVER: Final = {"Completed", "Failed", "Cancelled"}


@dataclass(slots=True)
class Scene:
    """What a test does and sees."""

    product: Product
    namespace: str
    names: list[str] = field(default_factory=list)

    @property
    def kube(self) -> Api:
        return self.product.kube

    # ---- what befalls nodes

    def nodes(self, *made: Object) -> list[str]:
        """Add nodes for the pods of this test alone."""
        for node in made:
            node["metadata"]["labels"][CONFINED] = self.namespace
        names = [node["metadata"]["name"] for node in made]
        self.names += names
        bed.add_nodes(self.kube, made)
        return names

    def pool(self, *, spot: int = 0, on_demand: int = 0, zone: str = "", **options: Any) -> list[str]:
        """So many nodes, in one zone if that is said."""
        tag = secrets.token_hex(2)
        made = objects.pool(f"{self.namespace}-{tag}-", on_demand=on_demand, spot=spot, **options)
        for node in made:
            if zone:
                node["metadata"]["labels"][objects.ZONE] = zone
        return self.nodes(*made)

    def taint(self, name: str, key: str = ITN) -> None:
        """As a node termination handler does, which writes no time."""
        taints = [it for it in self.node(name)["spec"].get("taints", []) if it["key"] != key]
        self.kube.patch("nodes", name, {"spec": {"taints": [*taints, {"key": key, "effect": "NoSchedule"}]}})

    def untaint(self, name: str, key: str = ITN) -> None:
        """And takes it back."""
        taints = [it for it in self.node(name)["spec"].get("taints", []) if it["key"] != key]
        self.kube.patch("nodes", name, {"spec": {"taints": taints}})

    def condition(self, name: str, kind: str, status: str) -> None:
        """As a node problem detector does."""
        found = {"type": kind, "status": status, "reason": "Said", "message": "said", "lastTransitionTime": _now()}
        body = {"status": {"conditions": [found]}}
        kind_of_patch = "application/strategic-merge-patch+json"
        self.kube.patch("nodes", name, body, kind=kind_of_patch, subresource="status")

    def silence(self, *names: str) -> None:
        """Their kubelets say that they are not ready, or nothing."""
        self._annotate(names, "false")

    def vanish(self, name: str) -> None:
        """Its kubelet is gone without a word."""
        self.kube.patch("nodes", name, {"metadata": {"labels": {"testbed.spotshift.dev/vanished": "true"}}})

    def return_of(self, name: str) -> None:
        """And is there again."""
        self.kube.patch("nodes", name, {"metadata": {"labels": {"testbed.spotshift.dev/vanished": None}}})

    def speak(self, *names: str) -> None:
        """They are back."""
        self._annotate(names, None)

    def _annotate(self, names: tuple[str, ...], value: str | None) -> None:
        for name in names:
            self.kube.patch("nodes", name, {"metadata": {"annotations": {"testbed.spotshift.dev/ready": value}}})

    @contextlib.contextmanager
    def only(self, *names: str) -> Iterator[None]:
        """Whatever is created within lands on these."""
        others = [it for it in self.names if it not in names]
        with cordons.cordoned(self.kube, others):
            yield
        # The taint goes a moment after the cordon, and until then the node is no target.
        eventually(
            lambda: [it for it in others if _has_cordon_taint(self.node(it))],
            until=lambda it: not it,
            what="the nodes to be open again",
        )

    # ---- what is there

    def create(self, resource: str, body: Object) -> None:
        self.kube.create(resource, body, self.namespace)

    def settle(self, count: int) -> None:
        """Wait until so many pods are there and Ready."""
        eventually(self.ready, until=lambda it: len(it) == count, timeout=120, what=f"{count} Ready pods")

    def node(self, name: str) -> Object:
        return self.kube.get("nodes", name)

    def pods(self) -> list[Object]:
        """Those that are not on their way out."""
        return [it for it in self.kube.list("pods", self.namespace) if "deletionTimestamp" not in it["metadata"]]

    def ready(self) -> list[str]:
        return [it["metadata"]["name"] for it in self.pods() if objects.is_ready(it)]

    def where(self, **labels: str) -> dict[str, str]:
        """The node of each pod that is not on its way out."""
        found = [it for it in self.pods() if labels.items() <= it["metadata"]["labels"].items()]
        return {it["metadata"]["name"]: it["spec"].get("nodeName", "") for it in found}

    def moves(self) -> list[Object]:
        return self.kube.list("podmigrations", self.namespace)

    def open_moves(self) -> list[str]:
        return [it["metadata"]["name"] for it in self.moves() if it.get("status", {}).get("phase") not in OVER]

    def marks(self, name: str) -> dict[str, str]:
        """Ours on a node, and whether it is cordoned."""
        node = self.node(name)
        notes = node["metadata"].get("annotations", {})
        cordon = {"cordon": "true"} if node["spec"].get("unschedulable") else {}
        return {**cordon, **{key: notes[key] for key in MARKS if key in notes}}

    def told(self, reason: str, name: str) -> list[str]:
        """What Events of this reason say about an object."""
        found = self.kube.request("GET", "/apis/events.k8s.io/v1/events", query={"limit": "5000"})["items"]
        return [it["note"] for it in found if it["reason"] == reason and it["regarding"]["name"] == name]


@contextlib.contextmanager
def scene(running: Product) -> Iterator[Scene]:
    """Made for the time of the block."""
    made = Scene(running, f"t-{secrets.token_hex(3)}")
    confine = {"scheduler.alpha.kubernetes.io/node-selector": f"{CONFINED}={made.namespace}"}
    make_namespace(made.kube, made.namespace, annotations=confine)
    try:
        yield made
    finally:
        with contextlib.suppress(ApiError):
            remove_namespace(made.kube, made.namespace)
        for name in made.names:
            with contextlib.suppress(ApiError):
                made.kube.delete("nodes", name)


@dataclass(slots=True)
class Protocol:
    """Everything that the API told about pods and budgets of a namespace, with the time at which it came."""

    scene: Scene
    seconds: int = 300
    deleted: dict[str, float] = field(default_factory=dict)
    """When each pod was told to stop."""
    became_ready: dict[str, float] = field(default_factory=dict)
    placed: dict[str, str] = field(default_factory=dict)
    """The node of each pod that was ever placed."""
    allowed: list[tuple[float, str, int]] = field(default_factory=list)
    """When the number of disruptions changed that a budget allows."""
    broken: list[str] = field(default_factory=list)
    """Budgets with fewer healthy pods than they demand."""

    def __enter__(self) -> Self:
        for resource, take in (("pods", self._pod), ("poddisruptionbudgets", self._budget)):
            threading.Thread(target=self._follow, args=(resource, take), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        """The watches end with their time; what comes after this is not looked at."""

    def _follow(self, resource: str, take: Any) -> None:
        api = self.scene.product.bed.api()
        with contextlib.suppress(ApiError, OSError, urllib3.exceptions.HTTPError):
            for event in api.watch(resource, self.scene.namespace, seconds=self.seconds):
                take(event["type"], event["object"], time.time())

    def _pod(self, _: str, pod: Mapping[str, Any], now: float) -> None:
        name = pod["metadata"]["name"]
        if pod["spec"].get("nodeName"):
            self.placed[name] = pod["spec"]["nodeName"]
        if "deletionTimestamp" in pod["metadata"]:
            self.deleted.setdefault(name, now)
        elif objects.is_ready(pod):
            self.became_ready.setdefault(name, now)

    def _budget(self, kind: str, budget: Mapping[str, Any], now: float) -> None:
        name, status = budget["metadata"]["name"], budget.get("status", {})
        self.allowed.append((now, name, 0 if kind == "DELETED" else status.get("disruptionsAllowed", 0)))
        if status.get("currentHealthy", 0) < status.get("desiredHealthy", 0):
            self.broken.append(f"{name}: {status['currentHealthy']} of {status['desiredHealthy']}")

    def longest_wait(self, apps: Mapping[str, str], since: float) -> float:
        """Seconds that passed at most without an eviction although the budget of a pod that had to go allowed it.
        `apps`: these pods, each with its workload, whose budget has the same name.
        """
        steps: list[tuple[float, str, int | None]] = [*((at, name, count) for at, name, count in self.allowed)]
        steps += [(self.deleted[pod], app, None) for pod, app in apps.items() if pod in self.deleted]
        left, free = Counter(apps.values()), Counter[str]()
        longest, began = 0.0, since
        for at, app, count in sorted(steps, key=lambda it: it[0]):
            permitted = any(free[it] > 0 and left[it] > 0 for it in left)
            if permitted and at > since:
                longest = max(longest, at - max(began, since))
            if count is None:
                left[app] -= 1
                began = at
            else:
                free[app] = count
                began = began if permitted else at
        return longest


def _has_cordon_taint(node: Object) -> bool:
    return any(it["key"] == keys.UNSCHEDULABLE_TAINT for it in node["spec"].get("taints", ()))


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
