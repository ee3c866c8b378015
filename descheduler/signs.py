"""The parts of a node that can carry a signal, as `policy.signals` wants them.   Pure."""

from __future__ import annotations

from cluster.objects import Node
from policy.signals import NodeSigns


def of(node: Node) -> NodeSigns:
    """What to read the signals of this node from."""
    return NodeSigns(
        labels=node.metadata.labels,
        annotations=node.metadata.annotations,
        taints=node.spec.taints,
        conditions=node.status.conditions,
        unschedulable=node.spec.unschedulable,
    )
