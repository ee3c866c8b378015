"""Somebody with every right in one namespace, and what that reaches elsewhere: nothing.

The descheduler runs as it is shipped; the tenant has a token. What he writes in his own namespace names, forges and
copies what belongs to another; afterwards that other namespace is as it was, and nobody asked for a change in it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from policy import keys
from testbed import access, objects
from testbed.api import Api, ApiError, Object, connect, path
from testbed.pytest_plugin import make_namespace, remove_namespace
from testbed.waiting import eventually
from tests.integration.descheduler.moves import oracle, product
from tests.integration.descheduler.moves.product import Product
from tests.integration.descheduler.moves.scene import APP, Scene

KEYS = keys.under()
WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})


@dataclass(frozen=True, slots=True)
class Tenant:
    """His API and namespace, and the scene that is none of his business."""

    api: Api
    namespace: str
    victim: Scene

    def pod(self) -> Object:
        """One of the victim's."""
        return self.victim.kube.get("pods", self.victim.a_pod(), self.victim.namespace)

    def ask(self, pod: str, **spec: Any) -> str:
        """A PodMigration in his own namespace."""
        body: Object = {
            "apiVersion": "spotshift.dev/v1alpha1",
            "kind": "PodMigration",
            "metadata": {"generateName": "mine-"},
            "spec": {"podRef": {"name": pod}, **spec},
        }
        return str(self.api.create("podmigrations", body, self.namespace)["metadata"]["name"])

    def ended(self) -> list[str]:
        moves = product.migrations(self.victim.kube, self.namespace)
        return [it.get("status", {}).get("phase", "") for it in moves]


@pytest.fixture
def tenant(running: Product, on: Scene) -> Iterator[Tenant]:
    namespace, kube = f"{on.namespace}-tenant", running.kube
    make_namespace(kube, namespace)
    kube.create("serviceaccounts", {"metadata": {"name": "dev"}}, namespace)
    rule = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
    kube.create("roles", {"metadata": {"name": "all"}, "rules": [rule]}, namespace)
    subject = {"kind": "ServiceAccount", "name": "dev", "namespace": namespace}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "all"}
    kube.create("rolebindings", {"metadata": {"name": "dev"}, "roleRef": role, "subjects": [subject]}, namespace)
    yield Tenant(connect(access.kubeconfig(running.bed, "dev", namespace)), namespace, on)
    remove_namespace(kube, namespace)


def named(it: Tenant) -> None:
    """A pod of the victim by its name, which in his namespace nobody has."""
    it.ask(it.pod()["metadata"]["name"])


def by_uid(it: Tenant) -> None:
    """The same with its UID, beside a pod of his own of that name."""
    found = it.pod()["metadata"]
    it.api.create("pods", objects.pod(found["name"]), it.namespace)
    body = {"podRef": {"name": found["name"], "uid": found["uid"]}}
    it.ask(found["name"], **body)


def forged(mode: str) -> Callable[[Tenant], None]:
    """A pod of his own that claims to belong to the victim's ReplicaSet, to be moved."""

    def write(it: Tenant) -> None:
        name, owner = f"forged-{mode.lower()}", it.pod()["metadata"]["ownerReferences"]
        made = objects.pod(name, annotations={KEYS.rescheduling: "enabled"})
        made["metadata"] |= {"ownerReferences": owner, "labels": {"app": APP, KEYS.rescheduling: "enabled"}}
        it.api.create("pods", made, it.namespace)
        it.ask(name, mode=mode, targetNode=it.victim.target)

    return write


def fake(it: Tenant) -> None:
    """The UID of the victim's Deployment under a kind that no cluster has: the garbage collector lets that be."""
    uid = it.victim.kube.get("deployments", APP, it.victim.namespace)["metadata"]["uid"]
    owner = {"apiVersion": "example.com/v1", "kind": "Fake", "name": APP, "uid": uid, "controller": True}
    made = objects.pod("fake", annotations={KEYS.rescheduling: "enabled"})
    made["metadata"] |= {"ownerReferences": [owner], "labels": {"app": APP, KEYS.rescheduling: "enabled"}}
    it.api.create("pods", made, it.namespace)
    it.ask("fake", mode="Evict", targetNode=it.victim.target)


def copied(it: Tenant) -> None:
    """The marks of a move on a pod of his own, naming the victim's pod and its node."""
    found = it.pod()
    made = objects.pod("copied")
    made["metadata"]["labels"] = {KEYS.migration_id: "m-1", KEYS.migration_status: "in-progress"}
    made["metadata"]["annotations"] = {KEYS.original_pod: found["metadata"]["uid"], KEYS.migration_target: "x"}
    it.api.create("pods", made, it.namespace)
    it.ask("copied")


FORGERIES: dict[str, Callable[[Tenant], None]] = {
    "the name of a pod elsewhere": named,
    "its UID": by_uid,
    "a forged owner, to be evicted": forged("Evict"),
    "a forged owner, to be doubled": forged("Surge"),
    "the UID of a workload elsewhere": fake,
    "marks of a move": copied,
}


def test_nothing_that_he_writes_reaches_elsewhere(
    running: Product, tenant: Tenant, subtests: pytest.Subtests
) -> None:
    victim = tenant.victim

    def as_it_is() -> object:
        pods = {it["metadata"]["uid"] for it in product.running_pods(victim.kube, victim.namespace)}
        replicas = [it["spec"]["replicas"] for it in victim.kube.list("deployments", victim.namespace)]
        return pods, replicas, len(victim.kube.list("podmigrations", victim.namespace))

    before = as_it_is()
    for name, forge in FORGERIES.items():
        with subtests.test(name):
            forge(tenant)
            count = len(tenant.ended())
            eventually(
                tenant.ended,
                until=lambda it, count=count: len(it) == count and set(it) <= oracle.ENDED,  # type: ignore[misc]
                timeout=60,
                what="an end of what he asked for",
            )
            assert as_it_is() == before
    asked = [it for it in oracle.requests(running.bed) if it.verb in WRITES and it.namespace == victim.namespace]
    assert asked == []


FORBIDDEN: dict[str, Callable[[Tenant], object]] = {
    "move": lambda it: it.api.create("podmigrations", {"spec": {"podRef": {"name": "x"}}}, it.victim.namespace),
    "cancel a move": lambda it: it.api.delete("podmigrations", "x", it.victim.namespace),
    "evict": lambda it: it.api.evict(it.victim.a_pod(), it.victim.namespace),
    "delete": lambda it: it.api.delete("pods", it.victim.a_pod(), it.victim.namespace),
    "annotate": lambda it: it.api.patch("deployments", APP, {"metadata": {}}, it.victim.namespace),
    "drain": lambda it: it.api.patch("nodes", it.victim.source, {"metadata": {"labels": {KEYS.maintenance: "true"}}}),
    "change the settings": lambda it: it.api.patch("configmaps", "spotshift-settings", {}, product.SYSTEM),
    "take the lease": lambda it: it.api.patch("leases", product.ACCOUNT, {}, product.SYSTEM),
    "become the descheduler": lambda it: it.api.request(
        "POST", path("serviceaccounts", product.ACCOUNT, product.SYSTEM) + "/token", body={"spec": {}}
    ),
    "make a PriorityClass": lambda it: it.api.create("priorityclasses", {"metadata": {"name": "mine"}, "value": 9}),
}


def test_what_the_apiserver_itself_refuses(tenant: Tenant, subtests: pytest.Subtests) -> None:
    for name, call in FORBIDDEN.items():
        with subtests.test(name):
            with pytest.raises(ApiError) as refusal:
                call(tenant)
            assert refusal.value.status == 403, refusal.value
