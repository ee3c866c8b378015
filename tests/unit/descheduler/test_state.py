"""The state holds what it was told and nothing else, whatever the order."""

import random

import pytest

from descheduler.state import ClusterState
from policy.settings import Settings
from tests.unit.descheduler import build

ASKS = "scheduler.alpha.kubernetes.io/spot-percentage"


def contents(state: ClusterState) -> object:
    """Everything in a state that can be compared."""
    return (
        {name: (sorted(it.pods), it.cpu, it.memory, it.load(), it.node) for name, it in state.nodes.items()},
        sorted(state.pods),
        sorted(state.pending),
        {name: sorted(pods) for name, pods in state.by_namespace.items()},
        {uid: sorted(pods) for uid, pods in state.by_owner.items()},
        sorted((name, sorted(group.nodes.items())) for name, group in state.repelling.groups()),
        sorted(state.controllers),
        {uid: sorted(sets) for uid, sets in state.replica_sets.items()},
        {name: sorted(budgets) for name, budgets in state.budgets.items()},
        sorted(state.namespaces),
        [
            (sorted(it.pods), sorted(it.controllers), sorted(it.namespaces))
            for it in (state.mixing.mixed, state.mixing.avoiding)
        ],
    )


def test_load_is_the_largest_share() -> None:
    state = build.state(
        build.node("a", cpu="4", memory="16Gi", pods="10"),
        build.pod("x", on="a", cpu="1", memory="12Gi"),
        build.pod("y", on="a"),
    )
    node = state.nodes["a"]
    assert node.shares() == pytest.approx((27.5, 100 * (12 * 1024 + 200) / (16 * 1024), 20.0))
    assert node.load() == max(node.shares())
    assert (node.cpu, node.memory) == (1000, 12 * 2**30)


def test_the_workload_is_the_deployment_above_the_replica_set() -> None:
    pod = build.pod("web-1", on="a", of=build.owner("ReplicaSet", "web-5f"))
    replica_set = build.thing(
        "ReplicaSet", "web-5f", metadata={"ownerReferences": [build.owner("Deployment", "web")]}
    )
    deployment = build.thing("Deployment", "web", spec={"replicas": 3})
    state = build.state(pod)
    assert (found := state.workload(pod)) is not None
    assert found.kind == "ReplicaSet"
    state.apply(None, replica_set)
    assert (found := state.workload(pod)) is not None
    assert (found.kind, found.replicas) == ("Deployment", None)
    state.apply(None, deployment)
    assert (found := state.workload(pod)) is not None
    assert (found.text, found.replicas) == ("Deployment default/web", 3)
    assert [key for key, _ in state.siblings(found)] == [("default", "web-1")]


def test_a_pod_outlives_its_node_and_the_node_returns() -> None:
    pod, node = build.pod("x", on="a", cpu="1"), build.node("a")
    state = build.state(pod)
    assert state.nodes["a"].node is None
    state.apply(None, node)
    assert state.nodes["a"].load() == 25.0
    state.apply(node, None)
    assert state.nodes["a"].load() == float("inf")
    state.apply(pod, None)
    assert state.nodes == {}


def test_pods_that_have_ended_hold_nothing() -> None:
    running = build.pod("x", on="a", cpu="1")
    done = build.pod("x", on="a", cpu="1", status={"phase": "Succeeded"})
    state = build.state(build.node("a"), running)
    state.apply(running, done)
    assert state.pods == {}
    assert state.nodes["a"].cpu == 0
    state.apply(done, None)
    assert state.nodes["a"].cpu == 0


def test_the_key_of_the_store_is_the_only_key_of_a_pod() -> None:
    key = ("default", "x")
    before = build.pod("x", on="a", cpu="1", of=build.owner("ReplicaSet", "web"), ready=False)
    after = build.pod("x", on="a", cpu="1", of=build.owner("ReplicaSet", "web"))
    state = ClusterState(Settings())
    state.apply(None, before, key)
    state.apply(before, after, ("default", "".join(["x"])))
    indexes = (state.nodes["a"].pods, state.by_namespace["default"], state.by_owner["default", "uid-default-web"])
    assert all(next(iter(index)) is key for index in indexes)
    assert all(index[key] is after for index in (*indexes, state.pods))


def test_a_resize_changes_what_a_pod_holds() -> None:
    given = {"name": "main", "resources": {"requests": {"cpu": "3"}}, "allocatedResources": {"cpu": "3"}}
    resized = {"containerStatuses": [given]}
    before, after = build.pod("x", on="a", cpu="1"), build.pod("x", on="a", cpu="1", status=resized)
    state = build.state(build.node("a"), before)
    state.apply(before, after)
    assert state.nodes["a"].cpu == 3000
    state.apply(after, None)
    assert state.nodes["a"].cpu == 0


@pytest.mark.parametrize("seed", range(20))
def test_any_history_ends_like_a_fresh_start(seed: int) -> None:
    rng = random.Random(seed)
    state = ClusterState(Settings())
    alive: dict[tuple[str, str], object] = {}
    for _ in range(400):
        name = f"o{rng.randrange(40)}"
        kind = rng.choice(("pod", "pod", "pod", "node", "replicaset", "budget", "namespace"))
        new = None if rng.random() < 0.3 else _some(rng, kind, name)
        old = alive.pop((kind, name), None)
        if old is None and new is None:
            continue
        state.apply(old, new)
        if new is not None:
            alive[kind, name] = new
    assert contents(state) == contents(build.state(*alive.values()))
    for item in alive.values():
        state.apply(item, None)
    assert contents(state) == contents(ClusterState(Settings()))


def _asks(rng: random.Random) -> dict[str, dict[str, str]]:
    return {"annotations": {ASKS: "70"}} if rng.random() < 0.2 else {}


def _some(rng: random.Random, kind: str, name: str) -> object:
    if kind == "node":
        return build.node(name, cpu=str(rng.randint(1, 8)))
    if kind == "replicaset":
        above = [build.owner("Deployment", f"d{rng.randrange(4)}")] if rng.random() < 0.8 else []
        return build.thing("ReplicaSet", name, metadata={"ownerReferences": above, **_asks(rng)})
    if kind == "namespace":
        return build.thing("Namespace", name, "", metadata=_asks(rng))
    if kind == "budget":
        return build.budget(name, allowed=1, labels={"app": name}, namespace=f"n{int(name[1:]) % 3}")
    anti = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}}
    return build.pod(
        name,
        on=rng.choice(("", "o1", "o2", "o3", "o4")),
        of=build.owner("ReplicaSet", f"o{rng.randrange(6)}") if rng.random() < 0.8 else None,
        cpu=f"{rng.choice((100, 250, 900))}m",  # few, so that many changes leave the spec as it is
        spec={"affinity": anti} if rng.random() < 0.2 else None,
        status={"phase": rng.choice(("Running", "Running", "Failed"))},
        annotations={ASKS: "70"} if rng.random() < 0.2 else None,
    )


def test_the_workload_of_a_statefulset_is_the_statefulset_whoever_made_it() -> None:
    pod = build.pod("db-0", on="a", of=build.owner("StatefulSet", "db"))
    made_by_operator = {"ownerReferences": [build.owner("Database", "db")]}
    state = build.state(pod, build.thing("StatefulSet", "db", metadata=made_by_operator))
    assert (found := state.workload(pod)) is not None
    assert found.text == "StatefulSet default/db"
    assert [key for key, _ in state.siblings(found)] == [("default", "db-0")]


def test_an_owner_reference_reaches_no_other_namespace() -> None:
    pod = build.pod("x", on="a", namespace="mine", of=build.owner("StatefulSet", "db", "theirs"))
    state = build.state(pod, build.thing("StatefulSet", "db", "theirs"))
    assert (found := state.workload(pod)) is not None
    assert (found.namespace, found.object) == ("mine", None)
