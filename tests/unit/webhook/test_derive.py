"""Objects of a cluster to the parts of a view."""

from typing import Any

import pytest

from policy import capacity, keys
from tests.unit.webhook import building, pods
from webhook import derive, snapshot
from webhook.objects import AnyObject, Meta, Node, NodeSpec, NodeTaint
from webhook.pod import OwnerReference, Toleration
from webhook.spot import tolerates
from webhook.view import Metadata, Taint, View, workload_of

OURS = keys.under()


def node(name: str = "n", *taints: NodeTaint, **labels: str) -> Node:
    spelled = {key.replace("__", "/"): value for key, value in labels.items()}
    return Node(metadata=Meta(name=name, labels=spelled), spec=NodeSpec(taints=taints))


def labelled(*labels: dict[str, str]) -> list[Node]:
    return [Node(metadata=Meta(name=f"n-{index}", labels=it)) for index, it in enumerate(labels)]


def test_only_our_keys_are_kept() -> None:
    of = Meta(
        name="n", labels={"app": "web", OURS.rescheduling: "enabled"}, annotations={OURS.spot: "avoid", "x": "y"}
    )
    assert derive.metadata(of, OURS) == Metadata({OURS.rescheduling: "enabled"}, {OURS.spot: "avoid"})
    assert derive.metadata(Meta(name="n"), OURS) == Metadata({}, {})


def test_a_workload_keeps_its_controller_only() -> None:
    owners = (OwnerReference("Odd", "x", "u-x"), OwnerReference("Deployment", "web", "u-d", True))
    seen = AnyObject(
        kind="ReplicaSet", metadata=Meta(name="web-6f7", namespace="shop", uid="u", owner_references=owners)
    )
    found = derive.workload(seen, OURS)
    assert found.owner == owners[1]
    assert (found.uid, found.kind, found.namespace, found.name) == ("u", "ReplicaSet", "shop", "web-6f7")


def test_capacity_counts_nodes_by_the_label_that_decides() -> None:
    nodes = labelled(
        {building.CAPACITY: "spot", "karpenter.sh/capacity-type": "on-demand"},
        {"karpenter.sh/capacity-type": "reserved"},
        {"karpenter.sh/capacity-type": "odd"},
        {},
    )
    found = derive.capacity_in_use(nodes, capacity.LABELS)
    assert [(it.key, it.spot_nodes, it.on_demand_nodes) for it in found] == [
        (building.CAPACITY, 1, 0),
        ("karpenter.sh/capacity-type", 0, 1),
    ]


def test_a_label_without_a_value_for_spot_says_nothing_about_spot() -> None:
    table = (capacity.CapacityLabel("paid", (), ("yearly",)), capacity.CapacityLabel("bad", ("not a label",)))
    assert derive.capacity_in_use(labelled({"paid": "yearly"}, {"bad": "not a label"}), table) == ()


def test_the_first_row_of_a_key_counts() -> None:
    table = (capacity.CapacityLabel("k", ("a",)), capacity.CapacityLabel("k", ("b",)))
    (found,) = derive.capacity_in_use(labelled({"k": "a"}), table)
    assert found.is_spot == ({"key": "k", "operator": "In", "values": ["a"]},)


def test_spot_taints_are_those_of_the_table() -> None:
    azure = NodeTaint(key=pods.AZURE, value="spot", effect="NoSchedule")
    cast = [NodeTaint(key="scheduling.cast.ai/spot", value=value, effect="NoSchedule") for value in ("a", "b")]
    other = NodeTaint(key="dedicated", value="gpu", effect="NoSchedule")
    no_execute = NodeTaint(key=pods.AZURE, value="spot", effect="NoExecute")
    found = derive.spot_taints([node("a", azure, *cast, other), node("b", azure, no_execute)], capacity.TAINTS)
    assert found == (Taint(pods.AZURE, "spot", "NoSchedule"), Taint("scheduling.cast.ai/spot", "*", "NoSchedule"))


def test_hostnames_only_where_they_differ() -> None:
    found = derive.hostnames(
        [node("a", kubernetes__x="b"), *labelled({keys.HOSTNAME: "n-0"}, {keys.HOSTNAME: "ip-10-0-0-1"})]
    )
    assert found == {"n-1": "ip-10-0-0-1"}


def moves(*changes: dict[str, Any]) -> View:
    base = pods.move("m", "w-1", "w-2", owner={"kind": "ReplicaSet", "uid": "u-rs"})
    return building.view(objects=[base | change for change in changes])


@pytest.mark.parametrize(
    ("status", "is_open"),
    [
        pytest.param({"phase": "InProgress", "resolved": {}}, True, id="in progress"),
        pytest.param({"phase": "Pending", "resolved": {}}, True, id="resolved before it begins"),
        pytest.param({"resolved": {}, "replacement": {}}, True, id="an empty replacement is none"),
        pytest.param({"phase": "InProgress"}, False, id="not resolved"),
        pytest.param({}, False, id="new"),
        pytest.param({"phase": "Completed", "resolved": {}}, False, id="completed"),
        pytest.param({"phase": "Failed", "resolved": {}}, False, id="failed"),
        pytest.param({"phase": "Cancelled", "resolved": {}}, False, id="cancelled"),
        pytest.param({"phase": "InProgress", "resolved": {}, "replacement": {"name": "x"}}, False, id="claimed"),
    ],
)
def test_which_moves_are_open(status: dict[str, Any], is_open: bool) -> None:
    assert bool(moves({"status": status}).migrations) is is_open


def test_a_long_name_of_a_move_fits_into_a_label() -> None:
    metadata = {"name": "m" * 200, "namespace": "shop", "creationTimestamp": "2026-11-16T04:00:00Z"}
    ((move,),) = moves({"metadata": metadata}).migrations.values()
    assert len(move.id) <= 63


def test_moves_of_one_owner_are_sorted_by_age_then_name() -> None:
    def at(name: str, second: int) -> dict[str, Any]:
        time = f"2026-11-16T04:00:{second:02d}Z"
        return {"metadata": {"name": name, "namespace": "shop", "creationTimestamp": time}}

    (found,) = moves(at("c", 1), at("b", 1), at("a", 2)).migrations.values()
    assert [move.id for move in found] == ["b", "c", "a"]


def test_an_odd_object_is_named() -> None:
    with pytest.raises(snapshot.NotUnderstood, match="PriorityClass without a name"):
        snapshot.of_objects([{"kind": "PriorityClass", "metadata": None}], building.settings())


def test_a_pod_without_a_controller_has_no_workload() -> None:
    found = workload_of(building.view(), "shop", None)
    assert (found.metadata, found.complete) == (None, True)


@pytest.mark.parametrize(
    ("held", "taint", "covered"),
    [
        pytest.param(Toleration("k", "Equal", "v", "NoSchedule"), Taint("k", "v", "NoSchedule"), True, id="exact"),
        pytest.param(Toleration("k", None, "v"), Taint("k", "v", "NoSchedule"), True, id="defaults"),
        pytest.param(Toleration("k", "Equal", "w"), Taint("k", "v", "NoSchedule"), False, id="other value"),
        pytest.param(Toleration("j", "Exists"), Taint("k", "v", "NoSchedule"), False, id="other key"),
        pytest.param(Toleration("k", "Exists"), Taint("k", "v", "NoSchedule"), True, id="exists"),
        pytest.param(
            Toleration("k", "Exists", effect="NoExecute"), Taint("k", "v", "NoSchedule"), False, id="effect"
        ),
        pytest.param(Toleration(None, "Exists"), Taint("k", "v", "NoSchedule"), True, id="everything"),
        pytest.param(Toleration(None, "Equal"), Taint("", "", "NoSchedule"), False, id="no key and Equal"),
        pytest.param(Toleration("k", "Equal"), Taint("k", "", "NoSchedule"), True, id="empty values"),
        pytest.param(Toleration("k", "Equal", "v"), Taint("k", "*", "NoSchedule"), False, id="one of any value"),
        pytest.param(Toleration("k", "Equal", "*"), Taint("k", "*", "NoSchedule"), False, id="a star is a value"),
        pytest.param(Toleration("k", "Gt", "3"), Taint("k", "5", "NoSchedule"), False, id="an operator to come"),
    ],
)
def test_tolerates(held: Toleration, taint: Taint, covered: bool) -> None:
    assert tolerates(held, taint) is covered
