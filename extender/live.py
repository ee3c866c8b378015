"""What the extender watches, and the view that is kept from it."""

from typing import Final

from cluster import resources as known
from cluster.absent import MayBeAbsent
from cluster.client import Client
from cluster.live_view import LiveView, Sources
from cluster.meta import PartialObjectMetadata
from cluster.migration import PodMigration
from cluster.node import Node
from cluster.recovery import Tuning
from cluster.runtime import Runtime
from cluster.source import ClusterSource
from extender import parts
from extender.objects import PlacedPod
from extender.view import View
from policy.settings import Settings

PLACED: Final = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
"""Pods that take room of a node; the API server selects them, so the others never come."""


def sources(client: Client) -> Sources:
    """Everything the extender looks at; of namespaces only metadata."""
    return (
        (known.NODES, ClusterSource(client, known.NODES, Node)),
        (known.PODS, ClusterSource(client, known.PODS, PlacedPod, field_selector=PLACED)),
        (known.NAMESPACES, ClusterSource(client, known.NAMESPACES, PartialObjectMetadata, metadata_only=True)),
        (known.PODMIGRATIONS, MayBeAbsent(ClusterSource(client, known.PODMIGRATIONS, PodMigration))),
    )


def view(
    sources: Sources,
    settings: Settings,
    *,
    runtime: Runtime,
    tuning: Tuning = Tuning(),  # noqa: B008 - a frozen value
) -> LiveView[View]:
    """The view that is kept from these sources."""
    return LiveView(
        sources,
        settings,
        lambda it: parts.Parts(it, now=runtime.wall),
        runtime=runtime,
        tuning=tuning,
        refresh_seconds=parts.LOOK_AGAIN.total_seconds(),
    )
