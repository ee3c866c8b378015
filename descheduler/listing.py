"""A state from one look at a cluster: every kind listed once. For commands; the loop watches instead (`sync`)."""

from __future__ import annotations

import dataclasses
from typing import Any, Final

from cluster import errors
from cluster.client import Client
from descheduler import kinds
from descheduler.gathered import Gap, Gathered
from descheduler.kinds import Watched
from descheduler.state import ClusterState
from descheduler.usage import Samples
from descheduler.usage_sources import MetricsApi, Sources
from policy.settings import Settings

NEEDED: Final = (kinds.NODES, kinds.PODS)
"""Without these there is nothing to plan."""


def gather(client: Client, settings: Settings) -> Gathered:
    """Raises ApiError if the cluster does not answer, or does not show its nodes and pods."""
    return dataclasses.replace(listed(client, settings), usage=usage(client, settings))


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


def usage(client: Client, settings: Settings) -> Samples | None:
    """What those measure whom the settings name; None where nobody answers, which is an ordinary cluster too."""
    try:
        answer = Sources(MetricsApi(client)).ask(settings.strategies.resource_optimization)
    except errors.ApiError:
        return None
    found = Samples()
    found.add_nodes(answer.nodes)
    found.set_pods(answer.pods)
    return found
