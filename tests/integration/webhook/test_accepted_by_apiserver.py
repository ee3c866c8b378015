"""Whatever a pod looks like: if the API server takes it, it takes it with our patch as well.

Each pod is created as a dry run first. What comes back has the defaults and the priority that the webhook
sees, so deciding on it is deciding on what a real request brings; the patched pod is then created, dry too.
"""

import copy
import json
from collections.abc import Iterator
from typing import Any

import jsonpatch
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from testbed.api import JSON_PATCH, Api, ApiError
from tests.unit.webhook import building, cases, pods
from tests.unit.webhook.pods import AZURE, OWNER, lists, nullable, some
from webhook import mutate
from webhook.reasons import Note, Result
from webhook.snapshot import of_objects
from webhook.view import View

Json = dict[str, Any]

# Unlike those of the unit tests, these pods are ones that the API server accepts, if only just.
KEYS = [*pods.OURS, "app", "example.com/a.b_c-d", "a" * 63, "x" * 200 + ".io/y"]
LABEL_VALUES = ["", "web", "batch", "enabled", "x" * 63, "a.b_c-d"]
ANNOTATION_VALUES = [*pods.WORDS, "", "50", "ä~/\n", "x" * 1000]
NODE_KEYS = [building.CAPACITY, AZURE, "karpenter.sh/capacity-type", "zone", pods.HOST]
values = st.sampled_from(["spot", "on-demand", "a", "w-1"])
rules = st.one_of(
    st.fixed_dictionaries(
        {
            "key": st.sampled_from(NODE_KEYS),
            "operator": st.sampled_from(["In", "NotIn"]),
            "values": st.lists(values, min_size=1, max_size=3),
        }
    ),
    st.fixed_dictionaries(
        {"key": st.sampled_from(NODE_KEYS), "operator": st.sampled_from(["Exists", "DoesNotExist"])}
    ),
    st.fixed_dictionaries({"key": st.just("cores"), "operator": st.just("Gt"), "values": st.just(["3"])}),
)
fields = st.fixed_dictionaries(
    {"key": st.just("metadata.name"), "operator": st.sampled_from(["In", "NotIn"]), "values": st.just(["w-1"])}
)
terms = some(matchExpressions=lists(rules), matchFields=lists(fields, 1))
weighted = st.fixed_dictionaries({"weight": st.integers(1, 100), "preference": terms})
required = st.fixed_dictionaries({"nodeSelectorTerms": st.lists(terms, min_size=1, max_size=3)})
node_affinity = some(
    requiredDuringSchedulingIgnoredDuringExecution=nullable(required),
    preferredDuringSchedulingIgnoredDuringExecution=lists(weighted),
)
spread = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": pods.HOST}
affinity = some(
    nodeAffinity=nullable(node_affinity),
    podAntiAffinity=st.just({"requiredDuringSchedulingIgnoredDuringExecution": [spread]}),
)
tolerations = st.sampled_from(
    [
        {"key": AZURE, "operator": "Equal", "value": "spot", "effect": "NoSchedule"},
        {"key": AZURE, "operator": "Exists"},
        {"key": "other", "effect": "NoExecute", "tolerationSeconds": 5},
        {"operator": "Exists"},
    ]
)
labels = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(LABEL_VALUES), max_size=5)
intents = st.fixed_dictionaries(
    {},
    optional={
        f"{building.PREFIX}tier": st.sampled_from(["critical", "standard", "batch"]),
        f"{building.PREFIX}spot": st.sampled_from(["prefer", "require", "avoid", "ignore"]),
    },
)
strange = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(ANNOTATION_VALUES), max_size=3)
annotations = st.builds(lambda one, other: one | other, strange, intents)
owner = {
    "apiVersion": "apps/v1",
    "kind": "ReplicaSet",
    "name": "web-6f7",
    "uid": OWNER,
    "controller": True,
}
generated = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries(
            {"generateName": st.just("web-6f7-")},
            optional={
                "labels": nullable(labels),
                "annotations": nullable(annotations),
                "ownerReferences": nullable(st.just([owner])),
            },
        ),
        "spec": st.fixed_dictionaries(
            {"containers": st.just([{"name": "main", "image": "app:1"}])},
            optional={
                "affinity": nullable(affinity),
                "tolerations": lists(tolerations),
                "nodeSelector": nullable(st.dictionaries(st.sampled_from(NODE_KEYS), values, max_size=1)),
                "priorityClassName": st.sampled_from(["", "system-node-critical"]),
            },
        ),
    }
)


@pytest.fixture
def classes(kube: Api, namespace: str) -> Iterator[dict[str, str]]:
    """PriorityClasses of the test's own, one of which never pre-empts."""
    made = {"critical": f"{namespace}-critical", "batch": f"{namespace}-batch"}
    for name, value, policy in ((made["critical"], 1000, None), (made["batch"], -100, "Never")):
        body = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
        kube.create("priorityclasses", body | {"value": value, "preemptionPolicy": policy})
    yield made
    for name in made.values():
        kube.delete("priorityclasses", name)


def view_of(kube: Api, namespace: str, classes: dict[str, str], *, spot: str) -> View:
    """The real namespace and classes, with nodes and moves that no cluster needs to have."""
    placement = {"criticalNamespaces": ["*"], "priorityClasses": classes, "spot": spot}
    moves = [
        move | {"metadata": move["metadata"] | {"namespace": namespace}}
        for move in (
            pods.move("migration-1790000000000-a", "w-1", "w-2", owner=owner),
            pods.move("b", "node-" + "x" * 150 + ".example.com", "node-" + "y" * 150 + ".example.com", owner=owner),
        )
    ]
    found: list[Json] = [{"kind": "Namespace", **kube.get("namespaces", namespace)}, *moves]
    found += [{"kind": "PriorityClass", **it} for it in kube.list("priorityclasses")]
    found += [
        {
            "kind": "Node",
            "metadata": {"name": f"n-{i}", "labels": it["labels"]},
            "spec": {"taints": it.get("taints", [])},
        }
        for i, it in enumerate(pods.TWO_LABELS)
    ]
    return of_objects(found, building.settings({"placement": placement}))


def admitted(kube: Api, pod: Json, namespace: str) -> Json | None:
    """The pod as the webhook would see it; None if the API server does not want it anyhow."""
    try:
        seen = kube.create("pods", copy.deepcopy(pod), namespace, dry_run=True)
    except ApiError as refused:
        if refused.status in {403, 422}:
            return None
        raise
    for made_later in ("name", "uid", "creationTimestamp", "generation", "resourceVersion", "managedFields"):
        seen["metadata"].pop(made_later, None)
    return {"metadata": seen["metadata"], "spec": seen["spec"]}


@pytest.mark.parametrize("spot", ["prefer", "require"])
def test_the_api_server_accepts_every_patched_pod(
    kube: Api, namespace: str, classes: dict[str, str], spot: str
) -> None:
    view = view_of(kube, namespace, classes, spot=spot)
    seen: list[mutate.Decision] = []

    @given(generated)
    @settings(max_examples=90, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
    def check(pod: Json) -> None:
        received = admitted(kube, pod, namespace)
        if received is None:
            return
        decision = mutate.decide(building.parsed(received, namespace=namespace), view, building.NOW)
        patched = jsonpatch.apply_patch(received, [op.plain() for op in decision.ops])
        created = kube.create("pods", patched, namespace, dry_run=True)
        again = mutate.decide(
            building.parsed(json.loads(json.dumps(created)), namespace=namespace), view, building.NOW
        )
        assert again.ops == (), "a reinvocation on the stored form would change it"
        assert created["spec"].get("priority") is not None
        seen.append(decision)

    check()
    assert sum(decision.result is Result.PATCHED for decision in seen) >= 70
    told = {note for decision in seen for note in decision.notes}
    assert {Note.HINTED, Note.CLASS_SET, Note.SPOT_TOLERATED, Note.KEYS_STRIPPED} <= told


LOADED = [(path.stem, cases.load(path)) for path in cases.FILES]
PATCHING = [(name, case) for name, case in LOADED if case["expect"]["patch"]]


def test_the_api_server_applies_our_patches_as_we_do(kube: Api, namespace: str) -> None:
    """Its own JSON patch, on a PodTemplate: the one object that is a pod and may be changed at will."""
    for number, (name, case) in enumerate(PATCHING):
        spec = {"containers": [{"name": "main", "image": "app:1"}], **case["pod"]["spec"]}
        template = {"metadata": case["pod"]["metadata"], "spec": spec}
        body = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": f"case-{number}"}}
        received = kube.create("podtemplates", body | {"template": template}, namespace)["template"]
        decision = mutate.decide(building.parsed(received), cases.view_of(case), building.NOW)
        ops = [op.plain() for op in decision.ops]
        moved = [op | {key: f"/template{op[key]}" for key in ("path", "from") if key in op} for op in ops]
        theirs = kube.patch("podtemplates", f"case-{number}", moved, namespace, kind=JSON_PATCH)["template"]
        assert ops, name
        assert contains(theirs, jsonpatch.apply_patch(received, ops)), name


def contains(theirs: Any, ours: Any) -> bool:
    """Whether all of ours is there; the API server fills in defaults, and leaves out what is null or empty."""
    if isinstance(ours, dict):
        return all(contains((theirs or {}).get(key), value) for key, value in ours.items())
    if isinstance(ours, list):
        theirs = theirs or []
        return len(theirs) == len(ours) and all(map(contains, theirs, ours))
    return bool(theirs == ours) or ours is None or (theirs is None and not ours)
