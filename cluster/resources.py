"""Names of the resources we speak to, and the URL paths the API server gives them.

Knows nothing about objects or requests: a resource is an address.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind of object as the API server addresses it."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool

    @property
    def api_version(self) -> str:
        """What objects of this resource carry as `apiVersion`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """Path of the collection, of one object, or of a subresource of it.

        No namespace on a namespaced resource means the collection across all namespaces, which exists only without
        a name.
        """
        if namespace and not self.namespaced:
            raise ValueError(f"{self.plural} live outside namespaces, got namespace {namespace!r}")
        if name and self.namespaced and not namespace:
            raise ValueError(f"{self.plural} {name!r} needs a namespace")
        if subresource and not name:
            raise ValueError(f"{self.plural}/{subresource} needs a name")
        parts = ["apis", self.group, self.version] if self.group else ["api", self.version]
        if namespace:
            parts += ["namespaces", namespace]
        parts += [part for part in (self.plural, name, subresource) if part]
        return "/" + "/".join(_segment(part) for part in parts)


def _segment(part: str) -> str:
    """One path segment, whatever the name: names may come from users, and `..` must not lead elsewhere."""
    return part.replace(".", "%2E") if part in {".", ".."} else quote(part, safe="")


def _namespaced(group: str, version: str, plural: str, kind: str) -> Resource:
    return Resource(group, version, plural, kind, namespaced=True)


def _global(group: str, version: str, plural: str, kind: str) -> Resource:
    return Resource(group, version, plural, kind, namespaced=False)


PODS = _namespaced("", "v1", "pods", "Pod")
NODES = _global("", "v1", "nodes", "Node")
NAMESPACES = _global("", "v1", "namespaces", "Namespace")
CONFIGMAPS = _namespaced("", "v1", "configmaps", "ConfigMap")
SECRETS = _namespaced("", "v1", "secrets", "Secret")
SERVICES = _namespaced("", "v1", "services", "Service")
SERVICEACCOUNTS = _namespaced("", "v1", "serviceaccounts", "ServiceAccount")
RESOURCEQUOTAS = _namespaced("", "v1", "resourcequotas", "ResourceQuota")
REPLICATIONCONTROLLERS = _namespaced("", "v1", "replicationcontrollers", "ReplicationController")
PVCS = _namespaced("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
PVS = _global("", "v1", "persistentvolumes", "PersistentVolume")

REPLICASETS = _namespaced("apps", "v1", "replicasets", "ReplicaSet")
DEPLOYMENTS = _namespaced("apps", "v1", "deployments", "Deployment")
STATEFULSETS = _namespaced("apps", "v1", "statefulsets", "StatefulSet")
DAEMONSETS = _namespaced("apps", "v1", "daemonsets", "DaemonSet")
JOBS = _namespaced("batch", "v1", "jobs", "Job")
CRONJOBS = _namespaced("batch", "v1", "cronjobs", "CronJob")
PDBS = _namespaced("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
HPAS = _namespaced("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")

STORAGECLASSES = _global("storage.k8s.io", "v1", "storageclasses", "StorageClass")
CSINODES = _global("storage.k8s.io", "v1", "csinodes", "CSINode")
PRIORITYCLASSES = _global("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass")
LEASES = _namespaced("coordination.k8s.io", "v1", "leases", "Lease")
EVENTS = _namespaced("events.k8s.io", "v1", "events", "Event")
NODEMETRICS = _global("metrics.k8s.io", "v1beta1", "nodes", "NodeMetrics")
PODMETRICS = _namespaced("metrics.k8s.io", "v1beta1", "pods", "PodMetrics")
MUTATINGWEBHOOKCONFIGURATIONS = _global(
    "admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration"
)
VALIDATINGADMISSIONPOLICIES = _global(
    "admissionregistration.k8s.io", "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy"
)
VALIDATINGADMISSIONPOLICYBINDINGS = _global(
    "admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding"
)
SUBJECTACCESSREVIEWS = _global("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview")
SELFSUBJECTACCESSREVIEWS = _global(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview"
)
CRDS = _global("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition")
PODMIGRATIONS = _namespaced("spotshift.dev", "v1alpha1", "podmigrations", "PodMigration")
