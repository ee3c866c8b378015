"""A mix on the real API server: decided once per pod, however often ours is asked, and not for a dry run."""

from collections import Counter

from testbed import objects
from testbed.api import Api, Object
from testbed.bed import ControlPlane
from testbed.pytest_plugin import Nodes
from testbed.waiting import eventually
from tests.integration.webhook import beside
from tests.integration.webhook.alone.test_reinvocation import OTHERS, Other, configured, reviews
from tests.integration.webhook.serving import Serving
from tests.integration.webhook.test_server import counted
from tests.unit.webhook.building import PREFIX

HALF = {PREFIX + "spot-percentage": "50"}


def pods(kube: Api, namespace: str, app: str) -> list[Object]:
    return [
        it for it in kube.list("pods", namespace, labels=f"app={app}") if "deletionTimestamp" not in it["metadata"]
    ]


def sides(kube: Api, namespace: str, app: str) -> dict[str, str]:
    return {
        it["metadata"]["name"]: it["metadata"]["annotations"][PREFIX + "capacity"]
        for it in pods(kube, namespace, app)
    }


def chosen(webhook: Serving) -> float:
    return sum(
        counted(webhook, f'spotshift_mix_choices_total{{capacity="{side}"}}') for side in ("spot", "on-demand")
    )


def test_a_mix_is_decided_once_per_pod(
    cluster: ControlPlane, kube: Api, namespace: str, nodes: Nodes, webhook: Serving
) -> None:
    nodes.add(objects.pool(f"{namespace}-", on_demand=2, spot=2))
    other = Other(OTHERS["adds a sidecar"])
    with (
        beside.answering(cluster, f"other-{namespace}", other) as server,
        configured(cluster, kube, namespace, beside.url(server)),
    ):
        eventually(
            lambda: kube.create("pods", objects.pod("probe"), namespace, dry_run=True),
            until=lambda pod: len(pod["spec"]["containers"]) == 2 and PREFIX + "managed" in pod["metadata"]["labels"],
            what="both webhooks in force",
        )
        before = reviews(webhook)
        kube.create("deployments", objects.deployment("web", replicas=10, annotations=HALF), namespace)
        eventually(lambda: pods(kube, namespace, "web"), until=lambda found: len(found) == 10, what="ten pods")
        assert Counter(sides(kube, namespace, "web").values()) == {"spot": 5, "on-demand": 5}
        assert (reviews(webhook) - before, chosen(webhook)) == (20, 10), "each was asked for twice and chosen once"

    template = {
        "metadata": {"generateName": "dry-", **_of(pods(kube, namespace, "web")[0])},
        "spec": objects.pod_spec(),
    }
    dry = [kube.create("pods", template, namespace, dry_run=True) for _ in range(4)]
    assert len({it["metadata"]["annotations"][PREFIX + "capacity"] for it in dry}) == 1, "the next one, four times"
    assert chosen(webhook) == 10

    kube.create("statefulsets", objects.stateful_set("db", replicas=4, annotations=HALF), namespace)
    eventually(lambda: pods(kube, namespace, "db"), until=lambda found: len(found) == 4, what="four members")
    expected = {"db-0": "on-demand", "db-1": "spot", "db-2": "on-demand", "db-3": "spot"}
    assert sides(kube, namespace, "db") == expected
    gone = {it["metadata"]["name"]: it["metadata"]["uid"] for it in pods(kube, namespace, "db")}["db-3"]
    kube.delete("pods", "db-3", namespace, gracePeriodSeconds=0)
    eventually(
        lambda: {it["metadata"]["name"]: it["metadata"]["uid"] for it in pods(kube, namespace, "db")},
        until=lambda found: found.get("db-3", gone) != gone,
        what="a new db-3",
    )
    assert sides(kube, namespace, "db") == expected


def _of(pod: Object) -> Object:
    """What a pod of the same owner has in common with it, before admission."""
    return {"ownerReferences": pod["metadata"]["ownerReferences"], "annotations": HALF}
