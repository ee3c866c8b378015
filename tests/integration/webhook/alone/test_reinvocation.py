"""Another webhook changes the pod after ours, so the API server asks ours again: nothing is there twice or gone."""

import base64
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from testbed import objects
from testbed.api import Api, Object
from testbed.bed import ControlPlane
from testbed.pytest_plugin import Nodes
from testbed.waiting import eventually
from tests.integration.webhook import beside
from tests.integration.webhook.serving import Serving
from tests.integration.webhook.test_server import counted, preferences
from tests.unit.webhook.building import PREFIX
from tests.unit.webhook.pods import AZURE

MANAGED = PREFIX + "managed"
TAINT = {"key": AZURE, "value": "spot", "effect": "NoSchedule"}
TOLERATION = {"operator": "Equal", **TAINT}
PREFERENCE = {
    "weight": 10,
    "preference": {"matchExpressions": [{"key": AZURE, "operator": "In", "values": ["spot"]}]},
}
CLASS = {"priorityClassName": "batch-priority", "priority": -100, "preemptionPolicy": "Never"}


def key(name: str) -> str:
    return (PREFIX + name).replace("/", "~1")


OTHERS: dict[str, list[Object]] = {
    "adds a sidecar": [{"op": "add", "path": "/spec/containers/-", "value": {"name": "proxy", "image": "proxy:1"}}],
    "adds a label": [{"op": "add", "path": "/metadata/labels/seen", "value": "yes"}],
    "takes our label away": [{"op": "remove", "path": f"/metadata/labels/{key('managed')}"}],
    "takes our tolerations away": [{"op": "remove", "path": "/spec/tolerations"}],
    "takes our affinity away": [{"op": "remove", "path": "/spec/affinity"}],
    "says the opposite": [{"op": "add", "path": f"/metadata/annotations/{key('spot')}", "value": "avoid"}],
}
"""What the other webhook does at its first sight of a pod. The first decision on capacity stands, as a rule of the
pod's own would: a later annotation does not undo it.
"""


class Other:
    """Changes a pod once, as a webhook without reinvocation does."""

    def __init__(self, patch: list[Object]) -> None:
        self.patch = patch

    def __call__(self, handler: beside.Handler, review: Object) -> None:
        handler.reply(beside.patched(review, self.patch))


@contextmanager
def configured(bed: ControlPlane, kube: Api, namespace: str, url: str) -> Iterator[None]:
    """Behind ours, for configurations are called in the order of their names; in front of nobody."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    webhook = {
        "name": "other.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "clientConfig": {"url": url, "caBundle": base64.b64encode(bed.layout.ca.bundle()).decode()},
        "rules": [rule],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
    }
    name = f"z-{namespace}"
    kube.create("mutatingwebhookconfigurations", {"metadata": {"name": name}, "webhooks": [webhook]})
    yield
    kube.delete("mutatingwebhookconfigurations", name)


def reviews(webhook: Serving) -> float:
    results = ("patched", "unchanged", "skipped", "failed")
    return sum(counted(webhook, f'spotshift_admissions_total{{result="{result}"}}') for result in results)


def batch(name: str) -> Object:
    return objects.pod(name, annotations={PREFIX + "tier": "batch"})


def test_a_second_call_leaves_one_of_everything(
    cluster: ControlPlane,
    kube: Api,
    namespace: str,
    nodes: Nodes,
    webhook: Serving,
    subtests: pytest.Subtests,
) -> None:
    pool = objects.pool(f"{namespace}-", on_demand=0, spot=1, taints=[TAINT])
    labels = pool[0]["metadata"]["labels"]
    labels[AZURE] = labels.pop(objects.CAPACITY)
    nodes.add(pool)
    other = Other(OTHERS["adds a label"])
    with (
        beside.answering(cluster, f"other-{namespace}", other) as server,
        configured(cluster, kube, namespace, beside.url(server)),
    ):
        eventually(
            lambda: kube.create("pods", batch("probe"), namespace, dry_run=True),
            until=lambda pod: preferences(pod) == [PREFERENCE] and "seen" in pod["metadata"]["labels"],
            what="both webhooks in force",
        )
        for number, (name, patch) in enumerate(OTHERS.items()):
            with subtests.test(name):
                other.patch, before = patch, reviews(webhook)
                kube.create("pods", batch(f"pod-{number}"), namespace)
                assert reviews(webhook) - before == 2, "ours was asked again"
                pod = kube.get("pods", f"pod-{number}", namespace)
                assert pod["metadata"]["labels"][MANAGED] == "true"
                assert preferences(pod) == [PREFERENCE]
                assert [it for it in pod["spec"]["tolerations"] if it.get("key") == AZURE] == [TOLERATION]
                assert {field: pod["spec"][field] for field in CLASS} == CLASS
