"""What people read in Events: their own mistakes on the object that carries them, and nothing of our own work."""

from descheduler.migration import temporary_budget
from policy import keys
from testbed.api import Api, Object
from testbed.waiting import eventually
from tests.integration.descheduler import logged
from tests.integration.descheduler.logged import ANY
from tests.integration.descheduler.moves import oracle, product
from tests.integration.descheduler.moves.product import Product
from tests.integration.descheduler.moves.scene import APP, REPLICAS, Scene

OURS = keys.under()
NODES_EVENTS = "default"
"""Where the API keeps Events of objects without a namespace."""


def told(kube: Api, namespace: str, reason: str) -> list[Object]:
    """Events of ours; repeats of one are one Event with a count."""
    return [it for it in kube.list("events", namespace) if it["reason"] == reason]


def mistakes(on: Scene) -> dict[str, list[str]]:
    """Notes by the object they are about."""
    found: dict[str, list[str]] = {}
    of_nodes = [it for it in told(on.kube, NODES_EVENTS, "InvalidValue") if it["involvedObject"]["name"] == on.source]
    for event in (*told(on.kube, on.namespace, "InvalidValue"), *of_nodes):
        assert (event["type"], event.get("series")) == ("Warning", None)
        subject = event["involvedObject"]
        found.setdefault(f"{subject['kind']} {subject['name']}", []).append(event["message"])
    return found


def say(on: Scene, resource: str, name: str, key: str, value: str | None) -> None:
    namespace = None if resource in {"nodes", "namespaces"} else on.namespace
    on.kube.patch(resource, name, {"metadata": {"annotations": {key: value}}}, namespace)


def note(on: Scene, key: str) -> str:
    return str(on.kube.get("nodes", on.source)["metadata"].get("annotations", {}).get(key, ""))


def test_a_mistyped_opt_out_holds_is_told_and_can_be_mended(running: Product, on: Scene) -> None:
    pod = on.a_pod()
    say(on, "deployments", APP, OURS.rescheduling, "disbled")
    say(on, "pods", pod, OURS.spot, "maybe")
    say(on, "namespaces", on.namespace, OURS.tier, "vip")
    say(on, "nodes", on.source, OURS.rescheduling, "off")
    on.drain()
    eventually(lambda: note(on, OURS.maintenance_status), until=lambda it: it == "drained", what="a look at the node")
    assert note(on, OURS.maintenance_remaining).count("INVALID_VALUE") == REPLICAS
    opt, where, tier = "'enabled' or 'disabled'; until then it is disabled", "'avoid' or 'ignore'", "'critical'"
    expected = {
        f"Deployment {APP}": (f"{OURS.rescheduling}: 'disbled' is not accepted, use ", opt),
        f"Pod {pod}": (f"{OURS.spot}: 'maybe' is not accepted, use ", where),
        f"Namespace {on.namespace}": (f"{OURS.tier}: 'vip' is not accepted, use {tier}", "'batch'"),
        f"Node {on.source}": (f"{OURS.rescheduling}: 'off' is not accepted, use ", opt),
    }
    found = eventually(lambda: mistakes(on), until=lambda it: it.keys() == expected.keys(), what="an Event on each")
    for subject, (begins, ends) in expected.items():
        assert len(found[subject]) == 1, found
        assert found[subject][0].startswith(begins), found
        assert found[subject][0].endswith(ends), found
    assert not [it for it in oracle.evictions(running.bed) if it.namespace == on.namespace]

    say(on, "deployments", APP, OURS.rescheduling, None)
    eventually(on.is_drained, timeout=60, what="the drained node")
    on.return_node()
    assert on.left() == []
    assert told(on.kube, on.namespace, "MoveCompleted")
    assert not told(on.kube, on.namespace, "EvictionBlocked"), "our own budget made them go one by one"
    refused = {it["message"] for it in told(on.kube, on.namespace, "MoveRefused")}
    assert refused
    assert not [it for it in refused if "ALREADY_MIGRATING" in it or temporary_budget.SUFFIX in it]
    the_log_tells_it_too(running, on)


def the_log_tells_it_too(running: Product, on: Scene) -> None:
    """Each move from its start to its end, and what was done for it: the node is the target by now."""
    moves = product.migrations(on.kube, on.namespace)
    assert len(moves) == REPLICAS
    for migration in moves:
        landed = migration["status"]["replacement"]
        logged.tells(
            logged.story(running.said, migration["metadata"]["name"]),
            {"event": "MIGRATION_STARTED", "strategy": "NodeMaintenance", "mode": "Evict", "sourceNode": on.target},
            {"event": "HINT_PUBLISHED", "preferredNode": on.source, "avoidNode": on.target},
            {"event": "EVICTED", "sourceNode": on.target, "strategy": "NodeMaintenance"},
            {"event": "REPLACEMENT_READY", "newPod": landed["name"], "targetNode": on.source, "onTarget": True},
            {"event": "MIGRATION_FINISHED", "sourceNode": on.target, "targetNode": on.source, "reason": "onTarget"},
            {"event": "CLEANED_UP", "seconds": ANY},
        )
    node = [it["event"] for it in logged.lines(running.said(), node=on.target)]
    assert [it for it in node if it.startswith("NODE_SIGNAL")] == ["NODE_SIGNAL", "NODE_SIGNAL_GONE"]
    budgets = logged.lines(running.said(), namespace=on.namespace, budget=temporary_budget.name_for(APP))
    assert [it["event"] for it in budgets][:1] == ["TEMPORARY_PDB_CREATED"]
    assert budgets[0]["workload"] == f"Deployment/{APP}"
    assert [it for it in logged.lines(running.said(), event="PASS_FINISHED") if it["moves"] and it["passId"]]
