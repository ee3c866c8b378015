"""Every kind of object the state is made of: where the API has it, and what a plan assumes without it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from cluster import objects, resources
from cluster.resources import Resource


@dataclass(frozen=True, slots=True)
class Watched:
    """One kind."""

    resource: Resource
    type: type[Any]
    assumed: str
    """What is taken for granted if nothing is known of this kind."""
    installed: bool = True
    """False: a server without it is an ordinary server."""

    @property
    def name(self) -> str:
        """The plural name, as kubectl takes it."""
        return self.resource.plural


PODS: Final = Watched(resources.PODS, objects.Pod, "there are none, so there is nothing to move")
NODES: Final = Watched(resources.NODES, objects.Node, "no node has room for anything")
NAMESPACES: Final = Watched(resources.NAMESPACES, objects.Namespace, "no namespace has labels or annotations")
REPLICASETS: Final = Watched(resources.REPLICASETS, objects.ReplicaSet, "each ReplicaSet is a workload of its own")
DEPLOYMENTS: Final = Watched(resources.DEPLOYMENTS, objects.Deployment, "replicas and annotations are not known")
STATEFULSETS: Final = Watched(resources.STATEFULSETS, objects.StatefulSet, "replicas and annotations are not known")
DAEMONSETS: Final = Watched(resources.DAEMONSETS, objects.DaemonSet, "annotations are not known")
JOBS: Final = Watched(resources.JOBS, objects.Job, "failure policies and annotations are not known")
PDBS: Final = Watched(resources.PDBS, objects.PodDisruptionBudget, "no budget limits evictions")
HPAS: Final = Watched(resources.HPAS, objects.HorizontalPodAutoscaler, "nothing scales workloads by itself")
PVCS: Final = Watched(resources.PVCS, objects.PersistentVolumeClaim, "claims tie pods to no node")
PVS: Final = Watched(resources.PVS, objects.PersistentVolume, "volumes tie pods to no node")
STORAGECLASSES: Final = Watched(resources.STORAGECLASSES, objects.StorageClass, "volumes can be made everywhere")
CSINODES: Final = Watched(resources.CSINODES, objects.CSINode, "nodes take any number of volumes")
PRIORITYCLASSES: Final = Watched(resources.PRIORITYCLASSES, objects.PriorityClass, "the pods' own numbers hold")
PODMIGRATIONS: Final = Watched(
    resources.PODMIGRATIONS, objects.PodMigration, "no move is under way and none was made before", installed=False
)

ALL: Final = (
    # Nodes before pods, so that pods find their node's room described.
    NODES,
    PODS,
    NAMESPACES,
    PRIORITYCLASSES,
    DEPLOYMENTS,
    REPLICASETS,
    STATEFULSETS,
    DAEMONSETS,
    JOBS,
    PDBS,
    HPAS,
    PVCS,
    PVS,
    STORAGECLASSES,
    CSINODES,
    PODMIGRATIONS,
)
"""In the order in which they are asked for."""

COMMAND: Final = "kubectl get -A -o json " + ",".join(kind.name for kind in ALL if kind.installed)
"""What makes a complete dump. PodMigrations can be added where they are installed; naming an unknown kind fails."""
