"""The review that is posted: about 4 kB, as an API server sends it for a pod of a Deployment."""

import random
from typing import Any

import msgspec

from bench import pods
from bench.pods import Object

MARKER = "@NUMBER@"
TAINT = {"key": "node.kubernetes.io/capacity", "value": "spot", "effect": "NoSchedule"}
SETTINGS = """\
apiVersion: spotshift.dev/v1alpha1
kind: Policy
capacity:
  replace: true
  labels: [{key: node.kubernetes.io/capacity, spot: [spot], onDemand: [on-demand]}]
  taints: [{key: node.kubernetes.io/capacity, value: spot}]
"""
"""What the Go webhooks do is fixed; this tells ours to do the same, whatever other nodes the cluster has."""


def pod(number: str = MARKER) -> Object:
    """A pod as it is created; `number` tells templates apart."""
    made = pods.pod(1, 1, random.Random(1))
    kept = ("generateName", "labels", "annotations", "ownerReferences")
    metadata: Object = {key: made["metadata"][key] for key in kept}
    metadata["annotations"] = {**metadata["annotations"], "checksum/config": number}
    spec: Object = {key: value for key, value in made["spec"].items() if key not in _NOT_AT_CREATION}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


_NOT_AT_CREATION = ("nodeName", "affinity", "priority", "preemptionPolicy", "serviceAccountName", "serviceAccount")


def body(namespace: str, number: str = MARKER) -> bytes:
    """The AdmissionReview of its creation in a namespace."""
    kind = {"group": "", "version": "v1", "kind": "Pod"}
    resource = {"group": "", "version": "v1", "resource": "pods"}
    made = pod(number)
    made["metadata"]["namespace"] = namespace
    request: dict[str, Any] = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "namespace": namespace,
        "operation": "CREATE",
        "userInfo": {
            "username": "system:serviceaccount:kube-system:replicaset-controller",
            "uid": "b8f5e2a4-6b0f-4c1e-9a43-0c3b0b7c0b11",
            "groups": ["system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"],
        },
        "object": {**made, "status": {}},
        "oldObject": None,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    }
    return msgspec.json.encode({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request})
