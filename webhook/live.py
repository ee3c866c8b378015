"""What the webhook watches, and the view that is kept from it.

In a view that is not complete yet no namespace is known, and pods of those are left alone.
"""

from typing import Final

from cluster import resources as known
from cluster.absent import MayBeAbsent
from cluster.client import Client
from cluster.live_view import LiveView, Sources
from cluster.recovery import Tuning
from cluster.runtime import Runtime
from cluster.source import ClusterSource
from policy.keys import Keys
from policy.settings import Settings
from webhook.parts import Parts
from webhook.tally import Tally
from webhook.view import View
from webhook.watched import WatchedClass, WatchedMove, WatchedNode, WatchedObject

WORKLOADS: Final = (known.DEPLOYMENTS, known.REPLICASETS, known.STATEFULSETS, known.JOBS, known.CRONJOBS)
RUNNING: Final = "status.phase!=Succeeded,status.phase!=Failed"
"""Pods that have ended are replaced, and do not count any more."""


def sources(client: Client, ours: Keys) -> Sources:
    """Everything the webhook looks at; of workloads only metadata, and of pods only those of mixes."""
    mixed = ClusterSource(
        client,
        known.PODS,
        WatchedObject,
        label_selector=ours.mixed,
        field_selector=RUNNING,
        metadata_only=True,
    )
    return (
        (known.NAMESPACES, ClusterSource(client, known.NAMESPACES, WatchedObject, metadata_only=True)),
        (known.NODES, ClusterSource(client, known.NODES, WatchedNode)),
        (known.PODS, mixed),
        (known.PRIORITYCLASSES, ClusterSource(client, known.PRIORITYCLASSES, WatchedClass)),
        (known.PODMIGRATIONS, MayBeAbsent(ClusterSource(client, known.PODMIGRATIONS, WatchedMove))),
        *((it, ClusterSource(client, it, WatchedObject, metadata_only=True)) for it in WORKLOADS),
    )


def view(
    sources: Sources,
    settings: Settings,
    *,
    own_namespace: str,
    tally: Tally,
    runtime: Runtime,
    tuning: Tuning = Tuning(),  # noqa: B008 - a frozen value
) -> LiveView[View]:
    """The view that is kept from these sources. Pods of mixes are counted by who hears of them, beside the view."""
    return LiveView(
        sources,
        settings,
        lambda it: Parts(it, own_namespace=own_namespace, counts=tally),
        runtime=runtime,
        tuning=tuning,
        hurry=WORKLOADS,
        aside={known.PODS: tally.apply},
    )
