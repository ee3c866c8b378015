"""A state from one look at a cluster: every kind listed once. For commands; the loop watches instead (`sync`)."""

from __future__ import annotations

import dataclasses
from typing import Any, Final

from cluster import errors, resources
from cluster.client import Client
from cluster.objects import NodeMetrics, PodMetrics
from descheduler import kinds
from descheduler.gathered import Gap, Gathered
from descheduler.kinds import Watched
from descheduler.state import ClusterState
from descheduler.usage import Samples
from policy.settings import Settings

NEEDED: Final = (kinds.NODES, kinds.PODS)
"""Without these there is nothing to plan."""


def gather(client: Client, settings: Settings) -> Gathered:
    """Raises ApiError if the cluster does not answer, or does not show its nodes and pods."""
    return dataclasses.replace(listed(client, settings), usage=usage(client))


def listed(client: Client, settings: Settings) -> Gathered:
    """The same without what is measured."""
    state = ClusterState(settings)
    gaps: list[Gap] = []
    objects = 0
    for kind in kinds.ALL:
        try:
            for key, item in _listed(client, kind).items():
                state.apply(None, item, key)
                objects += 1
        except errors.Forbidden as denied:
            if kind in NEEDED:
                raise
            gaps.append(Gap(kind, f"not allowed to list them ({denied.message})"))
        except errors.NotFound:
            if kind.installed:
                raise
    return Gathered(state, objects, tuple(gaps))


def _listed(client: Client, kind: Watched) -> dict[tuple[str, str], Any]:
    """A list that had to start over replaces what it brought before."""
    found: dict[tuple[str, str], Any] = {}
    for page in client.pages(kind.resource, type=kind.type):
        if page.first:
            found.clear()
        found.update((item.metadata.key, item) for item in page.items)
    return found


def usage(client: Client) -> Samples | None:
    """What is measured now; None where nothing measures, which is an ordinary cluster too."""
    found = Samples()
    try:
        found.add_nodes(client.list(resources.NODEMETRICS, type=NodeMetrics).items)
        found.set_pods(client.list(resources.PODMETRICS, type=PodMetrics).items)
    except (errors.NotFound, errors.Forbidden, errors.ServerError):
        return None
    return found
