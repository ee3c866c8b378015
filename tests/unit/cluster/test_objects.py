"""Typed objects read what the API writes: exact spellings, defaults, and nothing lost on the way."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from cluster import objects
from cluster.affinity import NodeAffinity, NodeSelectorTerm
from cluster.meta import Part
from cluster.objects import Decoders

AT = "2026-11-16T03:20:25Z"
TIME = datetime(2026, 11, 16, 3, 20, 25, tzinfo=UTC)


def decoded(typed: Any, **body: Any) -> Any:
    return Decoders().of(typed).decode(json.dumps({"apiVersion": "v1", "kind": "X", **body}).encode())


@pytest.mark.parametrize(
    ("typed", "body", "read", "value"),
    [
        pytest.param(
            objects.Node,
            {"spec": {"taints": [{"key": "k", "effect": "NoExecute", "timeAdded": AT}], "providerID": "aws://1"}},
            lambda o: (o.spec.taints[0].time_added, o.spec.taints[0].value, o.spec.provider_id),
            (TIME, "", "aws://1"),
            id="node-taint",
        ),
        pytest.param(
            objects.Node,
            {"status": {"conditions": [{"type": "Ready", "status": "Unknown", "lastTransitionTime": AT}]}},
            lambda o: (o.status.conditions[0].status, o.status.conditions[0].last_transition_time),
            ("Unknown", TIME),
            id="node-condition",
        ),
        pytest.param(
            objects.PodDisruptionBudget,
            {"spec": {"minAvailable": "50%", "selector": {}}, "status": {"disruptionsAllowed": 1}},
            lambda o: (o.spec.min_available, o.spec.max_unavailable, o.spec.selector, o.status.disruptions_allowed),
            ("50%", None, objects.LabelSelector(), 1),
            id="budget",
        ),
        pytest.param(
            objects.PodDisruptionBudget,
            {"spec": {"maxUnavailable": 1}, "status": {"disruptedPods": {"p": AT}}},
            lambda o: (o.spec.max_unavailable, o.spec.selector, o.status.disrupted_pods),
            (1, None, {"p": TIME}),
            id="budget-number-no-selector",
        ),
        pytest.param(
            objects.Deployment,
            {"spec": {"replicas": 0, "strategy": {"type": "Recreate"}}, "status": {"readyReplicas": 2}},
            lambda o: (o.spec.replicas, o.spec.strategy.type, o.status.ready_replicas),
            (0, "Recreate", 2),
            id="deployment",
        ),
        pytest.param(objects.Deployment, {"spec": {}}, lambda o: o.spec.replicas, 1, id="replicas-default"),
        pytest.param(
            objects.Scale, {"spec": {}, "status": {"replicas": 1}}, lambda o: o.spec.replicas, 0, id="scale-zero"
        ),
        pytest.param(
            objects.StatefulSet,
            {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 2}}}, "status": {"updateRevision": "r2"}},
            lambda o: (o.spec.update_strategy.rolling_update.partition, o.status.update_revision),
            (2, "r2"),
            id="statefulset",
        ),
        pytest.param(
            objects.Job,
            {
                "spec": {
                    "backoffLimit": 0,
                    "podFailurePolicy": {
                        "rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]
                    },
                }
            },
            lambda o: (o.spec.backoff_limit, o.spec.pod_failure_policy.rules[0].on_pod_conditions[0].status),
            (0, "True"),
            id="job",
        ),
        pytest.param(
            objects.HorizontalPodAutoscaler,
            {"spec": {"scaleTargetRef": {"kind": "Deployment", "name": "web"}}, "status": {"currentMetrics": None}},
            lambda o: (o.spec.scale_target_ref.kind, o.spec.scale_target_ref.name, o.spec.min_replicas),
            ("Deployment", "web", 1),
            id="autoscaler",
        ),
        pytest.param(
            objects.PersistentVolumeClaim,
            {"spec": {"storageClassName": "", "accessModes": ["ReadWriteOncePod"]}},
            lambda o: (o.spec.storage_class_name, o.spec.access_modes),
            ("", ("ReadWriteOncePod",)),
            id="claim-without-class",
        ),
        pytest.param(
            objects.PersistentVolume,
            {
                "spec": {
                    "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "z"}]}]}},
                    "csi": {"driver": "ebs", "volumeHandle": "vol-1"},
                    "claimRef": {"uid": "u"},
                }
            },
            lambda o: (
                o.spec.node_affinity.required.node_selector_terms[0].match_expressions[0].key,
                o.spec.csi.volume_handle,
                o.spec.claim_ref.uid,
            ),
            ("z", "vol-1", "u"),
            id="volume",
        ),
        pytest.param(
            objects.StorageClass,
            {
                "volumeBindingMode": "WaitForFirstConsumer",
                "allowedTopologies": [{"matchLabelExpressions": [{"key": "z"}]}],
            },
            lambda o: (o.volume_binding_mode, o.allowed_topologies[0].match_label_expressions[0].key),
            ("WaitForFirstConsumer", "z"),
            id="storage-class",
        ),
        pytest.param(
            objects.CSINode,
            {
                "spec": {
                    "drivers": [{"name": "ebs", "nodeID": "i-1", "topologyKeys": ["z"], "allocatable": {"count": 25}}]
                }
            },
            lambda o: (o.spec.drivers[0].node_id, o.spec.drivers[0].allocatable.count),
            ("i-1", 25),
            id="csi-node",
        ),
        pytest.param(
            objects.Lease,
            {"spec": {"holderIdentity": "a", "renewTime": "2026-11-16T03:20:25.123456Z", "leaseDurationSeconds": 15}},
            lambda o: (o.spec.holder_identity, o.spec.renew_time, o.spec.lease_duration_seconds),
            ("a", TIME.replace(microsecond=123456), 15),
            id="lease",
        ),
        pytest.param(
            objects.PriorityClass,
            {"value": -100, "globalDefault": True},
            lambda o: (o.value, o.global_default),
            (-100, True),
            id="priority-class",
        ),
        pytest.param(
            objects.NodeMetrics,
            {"timestamp": AT, "window": "20s", "usage": {"cpu": "1n"}},
            lambda o: (o.timestamp, o.usage),
            (TIME, {"cpu": "1n"}),
            id="node-metrics",
        ),
        pytest.param(
            objects.Namespace,
            {"status": {"phase": "Terminating"}},
            lambda o: o.status.phase,
            "Terminating",
            id="namespace",
        ),
        pytest.param(
            objects.PodMigration,
            {
                "spec": {"podRef": {"name": "p"}, "targetNode": "n", "deadline": AT},
                "status": {
                    "phase": "InProgress",
                    "onTarget": False,
                    "resolved": {"owner": {"kind": "ReplicaSet"}, "sourceNode": "s"},
                    "intent": {"action": "evict", "number": 1},
                    "startedAt": AT,
                },
            },
            lambda o: (
                o.spec.pod_ref.name,
                o.spec.deadline,
                o.status.on_target,
                o.status.resolved.owner.kind,
                o.status.intent,
                o.status.started_at,
            ),
            ("p", TIME, False, "ReplicaSet", {"action": "evict", "number": 1}, TIME),
            id="migration",
        ),
    ],
)
def test_fields(typed: Any, body: dict[str, Any], read: Any, value: Any) -> None:
    assert read(decoded(typed, **body)) == value


def test_affinity_with_every_kind_of_term() -> None:
    requirement = {"key": "metadata.name", "operator": "Gt", "values": ["5"]}
    body = {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [requirement]}, {}]},
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 7, "preference": {"matchExpressions": [requirement]}}
        ],
    }
    found = msgspec.convert(body, NodeAffinity)
    assert found.required is not None
    assert found.required.node_selector_terms[0].match_fields[0].operator == "Gt"
    assert found.required.node_selector_terms[1] == NodeSelectorTerm()
    assert found.preferred[0].weight == 7
    assert json.loads(msgspec.json.encode(found)) == body


def test_pod_affinity_tells_absent_and_empty_selectors_apart() -> None:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}, "matchLabelKeys": ["h"]}
    required = [term, {**term, "namespaceSelector": {}}]
    pod = decoded(
        objects.Pod,
        spec={"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}},
    )
    one, all_namespaces = pod.spec.affinity.pod_anti_affinity.required
    assert (one.namespace_selector, all_namespaces.namespace_selector) == (None, objects.LabelSelector())
    assert one.match_label_keys == ("h",)


def test_the_controller_is_the_owner_that_says_so() -> None:
    owners = [{"kind": "PodMigration", "uid": "1"}, {"kind": "ReplicaSet", "uid": "2", "controller": True}]
    metadata = decoded(objects.PartialObjectMetadata, metadata={"ownerReferences": owners}).metadata
    assert metadata.controller.uid == "2"
    assert objects.ObjectMeta().controller is None


def subclasses(kind: type[Part]) -> set[type[Part]]:
    found = {kind}
    for inner in kind.__subclasses__():
        found |= subclasses(inner)
    return found


def test_every_part_is_frozen_and_has_only_defaults() -> None:
    for part in subclasses(Part):
        assert part.__struct_config__.frozen, part
        assert part() == part()
        assert part().__class__ is part


@pytest.mark.parametrize(
    ("at", "text"),
    [
        pytest.param(TIME, "2026-11-16T03:20:25.000000Z", id="whole-second"),
        pytest.param(TIME.replace(microsecond=42), "2026-11-16T03:20:25.000042Z", id="microseconds"),
    ],
)
def test_micro_time_has_six_digits(at: datetime, text: str) -> None:
    assert objects.micro_time(at) == text
