"""Pods and what belongs to them, with most of what a tenant may write, and then spoilt."""

import copy
import random
from typing import Any

from policy import keys
from tests.unit.descheduler import build
from tests.unit.descheduler.test_command_hostile import EXTRA
from tests.unit.fuzz import hostile

Json = dict[str, Any]
SPEC: Json = {
    "initContainers": [{"name": "i", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}],
    "overhead": {"cpu": "100m"},
    "nodeSelector": {"a": "5"},
    "priority": 5,
    "hostNetwork": True,
    "resourceClaims": [{"name": "x", "resourceClaimName": "y"}],
    "schedulingGates": [{"name": "g"}],
    "readinessGates": [{"conditionType": "x"}],
    "preemptionPolicy": "Never",
    **EXTRA,
}
PORTS = [{"containerPort": 80, "hostPort": 8080, "hostIP": "", "protocol": "TCP"}]
REQUESTS = {"cpu": "500m", "memory": "1Gi", "example.com/gpu": "1"}
CONTAINER: Json = {"name": "main", "ports": PORTS, "resources": {"requests": REQUESTS, "limits": {"cpu": "1"}}}
FAILURES = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]}
TERMS = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["5"]}]}]}
SELECTOR = {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]}
OWNERS: tuple[Json, ...] = (
    {
        "kind": "Job",
        "metadata": build.meta("j", "default"),
        "spec": {
            "backoffLimit": 3,
            "backoffLimitPerIndex": 1,
            "completionMode": "Indexed",
            "completions": 2,
            "podFailurePolicy": FAILURES,
        },
        "status": {"active": 1, "failed": 0},
    },
    {
        "kind": "StatefulSet",
        "metadata": build.meta("s", "default", generation=2),
        "spec": {"replicas": 2, "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}},
        "status": {"replicas": 2, "currentRevision": "a", "updateRevision": "b", "observedGeneration": 2},
    },
    {"kind": "ReplicaSet", "metadata": build.meta("r", "default"), "spec": {"replicas": 2}},
)
BESIDE: tuple[Json, ...] = (
    {
        "kind": "PodDisruptionBudget",
        "metadata": build.meta("p", "default", generation=1),
        "spec": {"selector": SELECTOR, "maxUnavailable": "50%", "unhealthyPodEvictionPolicy": "AlwaysAllow"},
        "status": {"disruptionsAllowed": 1, "observedGeneration": 1, "expectedPods": 2},
    },
    {
        "kind": "HorizontalPodAutoscaler",
        "metadata": build.meta("h", "default"),
        "spec": {"scaleTargetRef": {"kind": "StatefulSet", "name": "s"}, "minReplicas": 1, "maxReplicas": 3},
    },
    {
        "kind": "PersistentVolumeClaim",
        "metadata": build.meta("c", "default"),
        "spec": {"volumeName": "pv", "storageClassName": "sc", "accessModes": ["ReadWriteOnce"]},
    },
    {
        "kind": "PersistentVolume",
        "metadata": build.meta("pv"),
        "spec": {"nodeAffinity": {"required": TERMS}, "csi": {"driver": "d"}},
    },
)


def spoilt(rng: random.Random, pod: Json) -> list[Json]:
    """Two pods like this one, their owners and the rest; two of them are no longer what they were."""
    made = [copy.deepcopy(it) for it in (*OWNERS, *BESIDE) if rng.random() < 0.7]
    made += [_pod(rng, pod, name) for name in ("web-1", "web-2")]
    for item in rng.sample(made, 2):
        kind = item["kind"]
        hostile.spoil(item, rng, times=rng.randint(1, 4))
        item["kind"] = kind
    return made


def _pod(rng: random.Random, like: Json, name: str) -> Json:
    made = copy.deepcopy(like)
    owner = rng.choice((*OWNERS, None))
    owners = [build.owner(owner["kind"], owner["metadata"]["name"])] if owner else []
    notes = {keys.JOB_INDEX_FAILURE_COUNT: rng.choice(("0", "1"))}
    made["metadata"] |= {"name": name, "uid": name, "ownerReferences": owners, "annotations": notes}
    parts = {key: value for key, value in SPEC.items() if rng.random() < 0.6}
    made["spec"] |= copy.deepcopy({**parts, "containers": [CONTAINER]})
    return made
