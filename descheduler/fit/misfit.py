"""Why a pod does not fit a node: the closed set of codes, one for each filter of kube-scheduler or part of one."""

from dataclasses import dataclass
from enum import StrEnum


class FitCode(StrEnum):
    """The closed set. The docstring under each is its line in the documentation."""

    NODE_UNKNOWN = "NODE_UNKNOWN"
    """Pods name the node, but there is no such node (any more)."""
    RESOURCES = "RESOURCES"
    """Not enough cpu, memory, ephemeral storage, pod slots or extended resources are left."""
    HOST_PORTS = "HOST_PORTS"
    """A pod on the node holds a port of the node that this one wants."""
    UNSCHEDULABLE = "UNSCHEDULABLE"
    """The node is cordoned."""
    TAINT = "TAINT"
    """The node has a NoSchedule or NoExecute taint that the pod does not tolerate."""
    NODE_SELECTOR = "NODE_SELECTOR"
    """The node lacks a label of the pod's nodeSelector."""
    NODE_AFFINITY = "NODE_AFFINITY"
    """No term of the pod's required node affinity matches the node."""
    POD_AFFINITY = "POD_AFFINITY"
    """No pod that this one requires is in the node's topology domain."""
    POD_ANTI_AFFINITY = "POD_ANTI_AFFINITY"
    """A pod that this one must keep away from is in the node's topology domain."""
    REPELLED = "REPELLED"
    """A pod in the node's topology domain must keep pods like this one away."""
    TOPOLOGY_SPREAD = "TOPOLOGY_SPREAD"
    """The pod would make a DoNotSchedule spread constraint too uneven."""
    VOLUME_CLAIM = "VOLUME_CLAIM"
    """A claim is missing, lost, being deleted, or waits for somebody else to bind it."""
    VOLUME_AFFINITY = "VOLUME_AFFINITY"
    """A volume cannot be reached, or cannot be provisioned, from the node."""
    VOLUME_ZONE = "VOLUME_ZONE"
    """A volume's zone or region labels are not the node's."""
    VOLUME_LIMIT = "VOLUME_LIMIT"
    """The CSI driver can attach no more volumes to the node."""
    VOLUME_IN_USE = "VOLUME_IN_USE"
    """A ReadWriteOncePod claim is used by another pod, or a disk of the pod by one on the node."""
    SCHEDULING_GATES = "SCHEDULING_GATES"
    """The pod is held back by scheduling gates, wherever it could go."""
    RESOURCE_CLAIMS = "RESOURCE_CLAIMS"
    """The pod needs claimed devices, and where those are is not known here."""


@dataclass(frozen=True, slots=True)
class Misfit:
    """One reason, with its sentence."""

    code: FitCode
    text: str

    def __str__(self) -> str:
        """As people see it."""
        return f"{self.code}: {self.text}"
