"""What a person can do about each reason.   Only words; nothing here decides.

Keys are without their prefix `scheduler.alpha.kubernetes.io/`. The page of reasons shows them.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from descheduler.fit import FitCode
from descheduler.reasons import Code

OF_CODES: Final[Mapping[StrEnum, str]] = {
    Code.DAEMONSET: "Nothing: it ends with its node.",
    Code.MIRROR: "Nothing: it ends with its node. Its file lies on the node itself.",
    Code.TERMINATING: "Wait. If it stays so, look for a finalizer, or for a node that says nothing.",
    Code.OPTED_OUT: (
        "Remove `rescheduling: disabled` from what the sentence names, or set `enabled` nearer to the pod."
    ),
    Code.INVALID_VALUE: "Set `rescheduling` to `enabled` or `disabled` on what the sentence names, or remove it.",
    Code.NO_CONTROLLER: (
        "Give it a controller; or label the pod `rescheduling: enabled` and install the component `recreate`."
    ),
    Code.LOCAL_STORAGE: "Name the volumes in `safe-to-evict-local-volumes`, or move what they hold elsewhere.",
    Code.SAFE_TO_EVICT_FALSE: "Ask whoever set the annotation; without it, or with `true`, the pod may go.",
    Code.DO_NOT_DISRUPT: "Remove the annotation, or wait for the end of its time.",
    Code.EXCLUDED_NAMESPACE: "Take the namespace off `excludedNamespaces`, or set `rescheduling: enabled` on it.",
    Code.PRIORITY_TOO_HIGH: "Raise `limits.priorityThreshold`, or give the pod a lower class.",
    Code.TOO_YOUNG: "Wait, or lower `limits.minPodAge` (`strategies.SpotReclaim.minStay` for the way back to spot).",
    Code.NOT_READY: "Mend the pod: `kubectl describe pod` says what its probes answer.",
    Code.ALREADY_MIGRATING: "Follow it with `kubectl spotshift migrations`; deleting its PodMigration calls it off.",
    Code.COOLING_DOWN: (
        "Look why the last move did not help (`kubectl get podmigrations -o wide`); `kubectl spotshift "
        "migrate` does not wait."
    ),
    Code.OUTSIDE_WINDOW: "Wait for the window, or change `windows`.",
    Code.PINNED: "Loosen the nodeSelector or the affinity that the sentence names.",
    Code.JOB: "Wait for its end. A drain waits `strategies.NodeMaintenance.jobTimeout`.",
    Code.JOB_WOULD_FAIL: (
        "Wait for its end, raise `backoffLimit`, or let its podFailurePolicy ignore `DisruptionTarget`."
    ),
    Code.PENDING_REVISION: "Finish, resume or undo the rollout.",
    Code.STATEFULSET_BUSY: "Wait, or mend the member that is not Ready.",
    Code.NODE_SILENT: "Bring the node back, or delete its Node object when the machine is really gone.",
    Code.FOREIGN_SCHEDULER: "Leave it to that scheduler, or remove `schedulerName`.",
    Code.RESOURCE_CLAIMS: "Move it by hand, or drain the node.",
    Code.NO_NODE_FITS: (
        "Look at the second table: `explain pod` says it for every node. Add room, or loosen what the pod asks for."
    ),
    Code.PDB_NO_BUDGET: (
        "Mend pods that are not Ready; give the budget `maxUnavailable: 1`, or the workload one more replica."
    ),
    Code.PDB_MULTIPLE: "Let one budget select the pod: nobody can evict it, `kubectl drain` neither.",
    Code.SINGLE_REPLICA: (
        "Run two replicas, or take away what keeps it from being doubled; `migrations.singleReplicaFallback: "
        "evict` accepts an outage."
    ),
    Code.ALREADY_THERE: "Name another node, or leave `spec.targetNode` out: the best one is then chosen.",
    Code.MODE_UNSUITED: "Leave `spec.mode` out: the mode then follows from the workload.",
    Code.REPLICAS_CONTESTED: (
        "Let a GitOps controller ignore `spec.replicas`, or run two replicas so that none has to be added."
    ),
    Code.NO_QUOTA: "Leave room in the ResourceQuota for one pod more.",
    Code.LIMIT_TOTAL: "Wait for the next pass, or raise `maxReschedulePods`.",
    Code.LIMIT_NODE: "Wait for the next pass, or raise `limits.perNode`.",
    Code.LIMIT_NAMESPACE: "Wait for the next pass, or raise `limits.perNamespace`.",
    Code.LIMIT_WORKLOAD: "Wait for the moves of its workload, or set `limits.perWorkload`.",
    Code.NO_IMPROVEMENT: "Nothing: it is well placed. `limits.minimumImprovement` says what is worth a restart.",
    Code.METRICS_STALE: (
        "After a move wait a minute or two. Else mend the metrics server, or the Prometheus at "
        "`strategies.ResourceOptimization.prometheusURL`, or set "
        "`strategies.ResourceOptimization.source: requests`."
    ),
}

OF_FITS: Final[Mapping[StrEnum, str]] = {
    FitCode.NODE_UNKNOWN: "Nothing: the pods that name it are cleared away by Kubernetes.",
    FitCode.RESOURCES: "Add nodes, lower requests, or free room on nodes of this kind.",
    FitCode.HOST_PORTS: "Give up the hostPort, or add nodes: one such pod for each.",
    FitCode.UNSCHEDULABLE: "`kubectl uncordon`, if nobody needs the cordon.",
    FitCode.TAINT: "Add the toleration, or remove the taint.",
    FitCode.NODE_SELECTOR: "Label the node, or loosen the selector.",
    FitCode.NODE_AFFINITY: "Label the node, or turn the requirement into a preference.",
    FitCode.POD_AFFINITY: "Let a pod that it requires run there, or turn the requirement into a preference.",
    FitCode.POD_ANTI_AFFINITY: "Add nodes or zones, or turn the requirement into a preference.",
    FitCode.REPELLED: "Loosen the anti-affinity of the pod that the sentence names.",
    FitCode.TOPOLOGY_SPREAD: "Add room in the emptier domains, raise `maxSkew`, or use `ScheduleAnyway`.",
    FitCode.VOLUME_CLAIM: "Mend the claim: `kubectl describe pvc`.",
    FitCode.VOLUME_AFFINITY: "Nothing but a volume that more nodes can reach: data is not moved.",
    FitCode.VOLUME_ZONE: "Add a node in the zone of the volume: data is not moved.",
    FitCode.VOLUME_LIMIT: "Add nodes, or use fewer volumes for each pod.",
    FitCode.VOLUME_IN_USE: "Wait until the other pod is gone, or use `ReadWriteMany`.",
    FitCode.SCHEDULING_GATES: "Whoever set the gate removes it.",
    FitCode.RESOURCE_CLAIMS: "Move it by hand, or drain the node.",
}
