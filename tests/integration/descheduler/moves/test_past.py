"""What the watcher of the chaos run relies on where an apiserver was restarted: versions that a watch has missed."""

from testbed.waiting import eventually
from tests.chaos.past import Past
from tests.chaos.records import ENDED
from tests.integration.descheduler.moves.product import Product
from tests.integration.descheduler.moves.scene import Scene


def test_every_version_between_two_is_known(running: Product, on: Scene) -> None:
    body = {
        "apiVersion": "spotshift.dev/v1alpha1",
        "kind": "PodMigration",
        "metadata": {"name": "of-nobody"},
        "spec": {"podRef": {"name": "nobody"}},
    }
    first = on.kube.create("podmigrations", body, on.namespace)
    last = eventually(
        lambda: on.kube.get("podmigrations", "of-nobody", on.namespace),
        until=lambda it: it.get("status", {}).get("phase") in ENDED and not it["metadata"].get("finalizers"),
        what="its end",
    )
    past, begun, ended = (Past.of(running.bed), *(int(it["metadata"]["resourceVersion"]) for it in (first, last)))
    versions = [int(it["metadata"]["resourceVersion"]) for it in past.between(last, 0)]
    assert versions[0] == begun
    assert versions == sorted(set(versions))
    assert versions[-1] < ended
    assert [int(it["metadata"]["resourceVersion"]) for it in past.between(last, begun)] == versions[1:]
    assert versions[1:], "at least the one that says who works on it"
