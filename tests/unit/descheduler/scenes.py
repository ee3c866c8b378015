"""Small clusters for the tests of plans: workloads with their controllers, where each pod is, a short way to ask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from descheduler import plan
from descheduler.plan import Plan
from descheduler.reasons import Code
from descheduler.usage import Usage
from policy.settings import Settings
from tests.unit.descheduler import build

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
PREFIX = "scheduler.alpha.kubernetes.io/"


def deployment(name: str, on: Sequence[str], *, namespace: str = "default", **pod: Any) -> list[Any]:
    """A Deployment whose pods are on these nodes, '' for one that waits."""
    above = [build.owner("Deployment", name, namespace)]
    count = {"replicas": len(on)}
    status = {"replicas": len(on), "readyReplicas": len(on), "updatedReplicas": len(on)}
    labels = {"app": name, **pod.pop("labels", {})}
    return [
        build.thing("Deployment", name, namespace, spec=count, status=status),
        build.thing("ReplicaSet", f"{name}-rs", namespace, spec=count, metadata={"ownerReferences": above}),
        *(
            build.pod(
                f"{name}-{number:02}",
                on=node,
                namespace=namespace,
                of=build.owner("ReplicaSet", f"{name}-rs", namespace),
                labels=labels,
                **pod,
            )
            for number, node in enumerate(on)
        ),
    ]


def nodes(*names: str, **more: Any) -> list[Any]:
    return [build.node(name, **more) for name in names]


def made(objects: Sequence[Any], settings: Settings | None = None, usage: Usage | None = None) -> Plan:
    chosen = settings or Settings()
    return plan.make(build.state(*objects, settings=chosen), chosen, NOW, usage)


def moves(found: Plan) -> list[tuple[str, str, str | None]]:
    return [(it.pod.metadata.name, it.source, it.target) for it in found.moves]


def refused(found: Plan) -> Mapping[str, set[Code]]:
    return {it.pod.metadata.name: {reason.code for reason in it.reasons} for it in found.refusals}
