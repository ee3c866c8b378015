"""Requests for nodes, budgets and pods, sent; and what came of them, put into the state."""

from __future__ import annotations

from typing import Any, Final

from cluster.client import Client
from cluster.objects import Node, PodDisruptionBudget
from cluster.resources import NODES, PDBS
from cluster.store import is_newer
from descheduler.migration.outcomes import MANAGER, REQUEST_SECONDS
from descheduler.requests import Request, Verb
from descheduler.state import ClusterState

TYPES: Final[dict[str, type[Any]]] = {NODES.plural: Node, PDBS.plural: PodDisruptionBudget}
"""What is read from the answer."""


class ClusterWrites:
    """The requests on the real thing."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def __call__(self, request: Request) -> Any:
        """Send one; raises ApiError."""
        kind, where = TYPES.get(request.resource.plural), request.namespace or None
        match request.verb:
            case Verb.CREATE:
                return self._client.create(
                    request.resource,
                    request.body,
                    namespace=where,
                    type=kind,
                    field_manager=MANAGER,
                    timeout=REQUEST_SECONDS,
                )
            case Verb.PATCH:
                return self._client.merge_patch(
                    request.resource,
                    request.name,
                    request.body,
                    namespace=where,
                    type=kind,
                    field_manager=MANAGER,
                    timeout=REQUEST_SECONDS,
                )
            case Verb.DELETE:
                self._client.delete(
                    request.resource,
                    request.name,
                    namespace=where,
                    uid=request.uid or None,
                    resource_version=request.version or None,
                    grace_period_seconds=request.grace_period_seconds,
                    timeout=REQUEST_SECONDS,
                )
        return None


def adopt(item: Any, state: ClusterState) -> None:
    """Put what the API answered into the state, unless the watch was faster."""
    if isinstance(item, Node):
        found = state.nodes.get(item.metadata.name)
        known: Any = found.node if found is not None else None
        if known is None:
            return
    else:
        known = state.budgets.get(item.metadata.namespace, {}).get(item.metadata.key)
    if known is None or (
        known.metadata.uid == item.metadata.uid
        and is_newer(item.metadata.resource_version, known.metadata.resource_version)
    ):
        state.apply(known, item)


def forget(request: Request, state: ClusterState) -> None:
    """The API says that the budget is gone. The watch does not if it went before we put it into the state ourselves,
    and then nobody else would ever take it out.
    """
    key = request.namespace, request.name
    known = state.budgets.get(request.namespace, {}).get(key) if request.resource is PDBS else None
    if known is not None and known.metadata.uid == request.uid:
        state.apply(known, None)
