"""A control plane with the product in it, on which scenes are laid out, played and cleared away again."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import yaml

from bench import peer, plane
from bench.quality import scene
from bench.quality.scene import Line, Scene, Sizes
from testbed import api, bed, cordons, install, objects, process
from testbed.api import Api, ApiError, Object
from testbed.bed import ControlPlane
from testbed.waiting import eventually

SYSTEM, NAMESPACE = "spotshift-system", "quality"
INTERVAL_SECONDS = 2
PATIENCE_SECONDS = 180.0
SETTINGS: dict[str, Any] = {
    "apiVersion": "spotshift.dev/v1alpha1",
    "kind": "Policy",
    "reschedulingInterval": f"{INTERVAL_SECONDS}s",
    "enabledStrategies": ["LoadBalancing"],
    "limits": {"minPodAge": "0s"},
}


@dataclass(frozen=True, slots=True)
class Stage:
    """Nodes, and the product waiting in `mode: observe`."""

    running: ControlPlane
    kube: Api
    sizes: Sizes

    def mode(self, mode: str) -> None:
        """Say whether the product may act."""
        text = yaml.safe_dump({**SETTINGS, "mode": mode})
        self.kube.patch("configmaps", "spotshift-settings", {"data": {"settings.yaml": text}}, SYSTEM)

    def lay_out(self, wanted: Scene, *, prefers_hot: bool) -> None:
        """Bind every pod to its node by hand. The nodes are cordoned meanwhile, so that the scheduler does not."""
        cordons.cordon(self.kube, scene.names(self.sizes))
        for workload in wanted.workloads:
            self.kube.create("deployments", workload.body(prefers_hot=prefers_hot), NAMESPACE)
        found = eventually(
            lambda: self.kube.list("pods", NAMESPACE),
            until=lambda pods: len(pods) == wanted.pods,
            timeout=PATIENCE_SECONDS,
            what="all pods",
        )
        by_app: dict[str, list[str]] = {}
        for pod in found:
            by_app.setdefault(pod["metadata"]["labels"]["app"], []).append(pod["metadata"]["name"])
        pairs = [pair for it in wanted.workloads for pair in zip(by_app[it.name], it.nodes, strict=True)]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda pair: self._bind(*pair), pairs))
        cordons.uncordon(self.kube, scene.names(self.sizes))
        eventually(
            lambda: self.kube.list("pods", NAMESPACE),
            until=lambda pods: len(pods) == wanted.pods and all(map(objects.is_ready, pods)),
            timeout=PATIENCE_SECONDS,
            interval=0.5,
            what="all pods Ready",
        )

    def clear(self) -> None:
        """Remove workloads, pods and the records of moves."""

        def left() -> int:
            for resource in ("deployments", "replicasets", "pods", "podmigrations"):
                now = {"gracePeriodSeconds": 0} if resource == "pods" else {}
                where = api.path(resource, None, NAMESPACE)
                self.kube.request("DELETE", where, body={"kind": "DeleteOptions", **now})
            return len(self.kube.list("pods", NAMESPACE)) + len(self.kube.list("podmigrations", NAMESPACE))

        eventually(left, until=lambda count: count == 0, timeout=PATIENCE_SECONDS, interval=0.5, what="an end")

    def moves(self) -> list[Object]:
        """The product's own records."""
        return self.kube.list("podmigrations", NAMESPACE)

    def stop(self, prefix: str) -> None:
        """Scale a Deployment of the product to nothing: its processes end, the rest of it stays."""
        found = [child for name, child in process.running(self.running.home) if name.startswith(prefix)]
        process.stop(found, grace_seconds=5)

    def peer(self, line: Line) -> AbstractContextManager[None]:
        """The sigs descheduler with the same goal, as often and with as many evictions from one node at a time."""
        return peer.running(self.running, _peer_policy(line), interval_seconds=INTERVAL_SECONDS)

    def _bind(self, pod: str, node: str) -> None:
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": pod, "namespace": NAMESPACE},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        self.kube.request("POST", api.path("pods", pod, NAMESPACE) + "/binding", body=body)


def _peer_policy(line: Line) -> dict[str, Any]:
    under, over = int(line.mean), int(line.act)
    args = {"thresholds": dict.fromkeys(("cpu", "memory"), under)}
    args["targetThresholds"] = dict.fromkeys(("cpu", "memory"), over)
    limits = {"maxNoOfPodsToEvictPerNode": 5, "maxNoOfPodsToEvictTotal": 10}
    return peer.profile("LowNodeUtilization", args, kind="balance", **limits)


@contextmanager
def stage(sizes: Sizes) -> Iterator[Stage]:
    """Everything up; gone afterwards."""
    with plane.started() as started:
        kube = started.api()
        bed.add_nodes(kube, scene.nodes(sizes))
        _remember_image(kube, scene.names(sizes)[: sizes.hot])
        kube.create("namespaces", {"metadata": {"name": NAMESPACE}})
        install.install(started, tell=lambda _: None)
        made = Stage(started, kube, sizes)
        made.mode("observe")
        plane.await_leader(started)
        yield made


def _remember_image(kube: Api, hot: Sequence[str]) -> None:
    """The full nodes have the image of every pod; the others would have to pull it."""
    image = {"names": [scene.IMAGE], "sizeBytes": scene.IMAGE_BYTES}
    for name in hot:
        kube.patch("nodes", name, {"status": {"images": [image]}}, subresource="status")


def wait_quiet(quiet: Any, *, seconds: float, timeout: float) -> float:
    """Until `quiet` has held for so long; when it began to hold, from now, or the timeout if it never did."""
    began = time.monotonic()
    since: float | None = None
    while (now := time.monotonic()) < began + timeout:
        held = False
        with suppress(ApiError):
            held = bool(quiet())
        since = (since or now) if held else None
        if since is not None and now - since >= seconds:
            return since - began
        time.sleep(0.25)
    return timeout
