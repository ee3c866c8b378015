"""How many evictions one leader carries out each second: all spot nodes get their notice at once.

    python -m bench.evictions [--pods 300] [--smoke] [--json FILE]

The product runs from its manifests; the pods have no budget and on-demand nodes have room for all, so nothing holds
it back but itself and the API server. Every eviction is a move with its record, a guided replacement, and writes
before and after it. Counted from the API server's audit log, from the first eviction to the last.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import msgspec
import yaml

from bench import plane
from bench.interruption import SETTINGS, SYSTEM, TAINT
from bench.measured import Figures
from testbed import audit, bed, cordons, install, objects
from testbed.api import Api
from testbed.bed import ControlPlane
from testbed.waiting import eventually

NODES, PATIENCE_SECONDS = 5, 300.0
ACCOUNT = audit.of_account(SYSTEM, "spotshift-descheduler")


def measure(running: ControlPlane, pods: int) -> Figures:
    """Lay the pods out on spot, give notice, and count."""
    kube = running.api()
    started_with = [it["metadata"]["name"] for it in kube.list("nodes")]
    made = objects.pool("bench-", on_demand=NODES, spot=NODES, cpu="64", memory="256Gi", pods=str(pods))
    bed.add_nodes(kube, made)
    spot, others = ([it["metadata"]["name"] for it in some] for some in (made[NODES:], made[:NODES]))
    workload = objects.deployment("web", replicas=pods, cpu="10m", memory="8Mi", terminationGracePeriodSeconds=1)
    with cordons.cordoned(kube, others):
        kube.create("deployments", workload, "default")
        _until_ready(kube, spot, pods)
    for name in spot:
        kube.patch("nodes", name, {"spec": {"taints": [TAINT]}})
    _until_ready(kube, [*others, *started_with], pods)
    return rate(carried_out(running))


def carried_out(running: ControlPlane) -> list[datetime]:
    """When each eviction of the product was accepted."""
    asked = audit.requests(running.layout.audit_log, ACCOUNT)
    return [it.at for it in asked if it.resource == "pods/eviction" and it.code == 201]


def rate(times: Sequence[datetime]) -> Figures:
    """Evictions, from the first to the last and within the best second."""
    ordered = sorted(it.timestamp() for it in times)
    seconds = ordered[-1] - ordered[0]
    best = max(sum(start <= at < start + 1 for at in ordered) for start in ordered)
    return {
        "evictions": len(ordered),
        "seconds": seconds,
        "evictions per second": (len(ordered) - 1) / max(seconds, 0.001),
        "in the best second": best,
    }


def _until_ready(kube: Api, on: Sequence[str], pods: int) -> None:
    eventually(
        lambda: sum(it["spec"].get("nodeName") in on and objects.is_ready(it) for it in kube.list("pods", "default")),
        until=lambda count: count == pods,
        timeout=PATIENCE_SECONDS,
        interval=0.5,
        what=f"{pods} Ready pods",
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.evictions", description=__doc__)
    parser.add_argument("--pods", type=int, default=300)
    parser.add_argument("--smoke", action="store_true", help="twenty pods")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    asked = parser.parse_args(arguments)
    with plane.started(nodes=2) as running:
        install.install(running, tell=lambda _: None)
        text = yaml.safe_dump({**SETTINGS, "mode": "enforce"})
        running.api().patch("configmaps", "spotshift-settings", {"data": {"settings.yaml": text}}, SYSTEM)
        found = measure(running, 20 if asked.smoke else asked.pods)
    for figure, value in found.items():
        print(f"{figure:24} {value:.4g}")
    if asked.json:
        asked.json.write_bytes(msgspec.json.format(msgspec.json.encode(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
