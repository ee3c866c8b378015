"""A dump becomes a state, or is refused with the place; whatever is in the file, nothing else happens."""

import json
import random
from typing import Any

import pytest

from descheduler import dump
from descheduler.dump import File, Refused
from descheduler.gathered import Gathered
from policy.settings import Settings
from tests.unit.descheduler import build

Json = dict[str, Any]
NODE: Json = {"kind": "Node", "metadata": build.meta("a"), "status": {"allocatable": {"cpu": "4", "pods": "10"}}}
POD: Json = {
    "kind": "Pod",
    "metadata": build.meta("web-1", "shop"),
    "spec": {"nodeName": "a", "containers": [{"name": "main", "resources": {"requests": {"cpu": "500m"}}}]},
}
BASE: tuple[Json, ...] = (
    NODE,
    POD,
    {"kind": "Namespace", "metadata": build.meta("shop")},
    {"kind": "PriorityClass", "metadata": build.meta("system-node-critical"), "value": 1},
    {"kind": "PodDisruptionBudget", "metadata": build.meta("web", "shop")},
)


def listed(*items: Json, kind: str = "List") -> str:
    return json.dumps({"kind": kind, "apiVersion": "v1", "items": list(items)}, indent=4)


def read(*texts: str | bytes, none: tuple[str, ...] = ()) -> Gathered:
    files = [File(f"f{i}", it.encode() if isinstance(it, str) else it) for i, it in enumerate(texts)]
    return dump.read(files, Settings(), none=none)


SHAPES = {
    "one list": (listed(*BASE),),
    "two files": (listed(*BASE[:2]), listed(*BASE[2:])),
    "two lists in one file": (listed(*BASE[:2]) + "\n" + listed(*BASE[2:]) + "\n",),
    "objects one after the other": ("\n".join(map(json.dumps, BASE)),),
    "objects without a gap": ("".join(map(json.dumps, BASE)),),
    "a byte order mark": (b"\xef\xbb\xbf" + listed(*BASE).encode(),),
    "lists of one kind without kinds": (
        listed({**NODE, "kind": ""}, kind="NodeList"),
        listed({**POD, "kind": ""}, kind="PodList"),
        listed(*BASE[2:]),
    ),
    "the same twice": (listed(*BASE), listed(*BASE)),
    "kinds nobody asks for": (listed(*BASE, {"kind": "ConfigMap", "metadata": {"name": 3}}, {"kind": "Gateway"}),),
    "numbers beyond any": (listed(*BASE, {**POD, "spec": {**POD["spec"], "priority": 10**400}}),),
    "nulls where nothing is": (listed(*BASE, {**NODE, "spec": {"taints": None}}),),
}


@pytest.mark.parametrize("texts", SHAPES.values(), ids=SHAPES.keys())
def test_shapes_of_a_dump(texts: tuple[str, ...]) -> None:
    found = read(*texts)
    assert found.gaps == ()
    assert found.objects == len(BASE)
    assert set(found.state.pods) == {("shop", "web-1")}
    assert found.state.nodes["a"].cpu == 500
    assert found.state.nodes["a"].node is not None
    assert len(found.state.budgets["shop"]) == 1


def test_the_last_of_two_counts() -> None:
    moved = {**POD, "spec": {**POD["spec"], "nodeName": "b"}}
    state = read(listed(*BASE), listed(moved)).state
    assert (state.nodes["a"].cpu, state.nodes["b"].cpu) == (0, 500)


OWNED = {
    **POD,
    "metadata": build.meta("web-1", "shop", ownerReferences=[build.owner("ReplicaSet", "web-5f", "shop")]),
}
REPLICA_SET = {
    "kind": "ReplicaSet",
    "metadata": build.meta("web-5f", "shop", ownerReferences=[build.owner("Deployment", "web", "shop")]),
}
MOUNTING = {
    **POD,
    "spec": {**POD["spec"], "volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]},
}
CLAIM = {"kind": "PersistentVolumeClaim", "metadata": build.meta("data", "shop"), "spec": {"volumeName": "pv-1"}}

OWN = "each ReplicaSet is a workload of its own"
NO_ROOM = "assumed: no node has room for anything"
UNKNOWN = "replicas and annotations are not known"
NO_TIE = "tie pods to no node"
GAPS = {
    "complete": (BASE, [], ()),
    "no budgets": (BASE[:4], ["poddisruptionbudgets: there are none; assumed: no budget limits evictions"], ()),
    "no budgets, as said": (BASE[:4], [], ("poddisruptionbudgets",)),
    "no node": (
        BASE[1:],
        [f"nodes: there are none; {NO_ROOM}", f"nodes: 1 that hold pods are missing, such as a; {NO_ROOM}"],
        (),
    ),
    "no ReplicaSets": (
        (*BASE, OWNED),
        [f"replicasets: 1 that are referred to are missing, such as shop/web-5f; assumed: {OWN}"],
        (),
    ),
    "no Deployments": (
        (*BASE, OWNED, REPLICA_SET),
        [
            f"deployments: 1 that are referred to are missing, such as shop/web; assumed: {UNKNOWN}",
        ],
        (),
    ),
    "no claims": (
        (*BASE, MOUNTING),
        [f"persistentvolumeclaims: 1 that are referred to are missing, such as shop/data; assumed: claims {NO_TIE}"],
        (),
    ),
    "no volumes": (
        (*BASE, MOUNTING, CLAIM),
        [f"persistentvolumes: 1 that are referred to are missing, such as pv-1; assumed: volumes {NO_TIE}"],
        (),
    ),
}


@pytest.mark.parametrize(("items", "expected", "none"), GAPS.values(), ids=GAPS.keys())
def test_gaps(items: tuple[Json, ...], expected: list[str], none: tuple[str, ...]) -> None:
    assert [str(gap) for gap in read(listed(*items), none=none).gaps] == expected


def with_pod(**change: Any) -> str:
    return listed(NODE, build.merged(POD, change))


REFUSED = {
    "nothing": ("", "f0: the file is empty, use the output of: kubectl get -A -o json nodes,pods,"),
    "blanks": (" \n ", "f0: the file is empty"),
    "not JSON": ("apiVersion: v1\nitems:", "f0: line 1, column 1: not JSON: invalid character"),
    "a mistake on the third line": ('{\n "kind": "List",\n "items": nope}', "f0: line 3, column 15: not JSON: "),
    "truncated": (listed(*BASE)[:200], "f0: line 10, column 14: the file ends in the middle of an object"),
    "a list of lists": ("[[]]", "f0: line 1, column 1: Expected `object`, got `array`, use the output of: kubectl"),
    "a number": ("17", "f0: line 1, column 1: Expected `object`, got `int`"),
    "items that are none": ('{"items": 3}', "f0: line 1, column 1: items: Expected `array | null`, got `int`"),
    "an item that is none": ('{"kind": "List", "items": [{}, 3]}', "f0: items[1]: Expected `object`, got `int`"),
    "a kind that is none": ('{"kind": "List", "items": [{"kind": 3}]}', "f0: items[0]: kind: Expected `str`, got"),
    "the second document": (
        listed(*BASE) + listed({**POD, "spec": 3}),
        "f0: document 2, items[0] (Pod shop/web-1): spec: Expected `object`, got `int`",
    ),
    "trailing rubbish": (listed(*BASE) + " }", "f0: line 73, column 3: not JSON: "),
    "a wrong type": (
        with_pod(spec={"containers": {"name": "main"}}),
        "f0: items[1] (Pod shop/web-1): spec.containers: Expected `array`, got `object`",
    ),
    "a wrong time": (
        with_pod(metadata={"creationTimestamp": "yesterday"}),
        "f0: items[1] (Pod shop/web-1): metadata.creationTimestamp: Invalid RFC3339",
    ),
    "a wrong quantity": (
        with_pod(spec={"containers": [{"name": "m", "resources": {"requests": {"cpu": "many"}}}]}),
        "f0: items[1] (Pod shop/web-1): 'many' is not a Kubernetes quantity such as 100m, 1.5, 128Mi or 2e3",
    ),
    "a wrong quantity of a node": (
        listed({**NODE, "status": {"allocatable": {"cpu": "lots"}}}),
        "f0: items[0] (Node a): 'lots' is not a Kubernetes quantity",
    ),
    "no name": (
        listed({"kind": "Pod", "metadata": {"namespace": "shop"}}),
        "f0: items[0] (Pod): metadata.name: nothing is not accepted, use the object's name",
    ),
    "metadata that is none": (
        listed({"kind": "Pod", "metadata": [1]}),
        "f0: items[0] (Pod): metadata: Expected `object`, got `array`",
    ),
    "nested too deeply": ('{"items": [' + "[" * 100_000, "f0: line 1, column 1: nested too deeply"),
    "an item nested too deeply": (
        '{"kind": "List", "items": [{"kind": "Pod", "spec": ' + '{"a":' * 100_000 + "1" + "}" * 100_000 + "}]}",
        "f0: line 1, column 1: nested too deeply",
    ),
}


@pytest.mark.parametrize(("text", "told"), REFUSED.values(), ids=REFUSED.keys())
def test_refused_with_the_place(text: str, told: str) -> None:
    with pytest.raises(Refused) as refused:
        read(text)
    assert str(refused.value).startswith(told)


@pytest.mark.parametrize("seed", range(4))
def test_damage_is_refused_or_read_and_nothing_else(seed: int) -> None:
    """A thousand dumps with a part replaced, cut or doubled."""
    rng = random.Random(seed)
    whole = listed(*BASE, OWNED, REPLICA_SET, MOUNTING, CLAIM).encode()
    words = (b"", b"null", b"3", b'"x"', b"{", b"]", b"[[[", b"-1e999", b"\xff\xfe", b'{"kind":[]}', b"\x00", b"true")
    outcomes = set()
    for _ in range(1000):
        at = rng.randrange(len(whole))
        damaged = whole[:at] + rng.choice(words) + whole[at + rng.choice((0, 1, 5, 50, 10_000)) :]
        try:
            read(damaged)
            outcomes.add("read")
        except Refused as refused:
            assert str(refused).startswith("f0: ")  # noqa: PT017 - both outcomes are right
            outcomes.add("refused")
    assert outcomes == {"read", "refused"}
