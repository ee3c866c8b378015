"""Values that mean nothing, and the object on which each is told."""

from typing import Any

import pytest

from cluster.eventlog import Severity
from descheduler import misread
from policy import keys
from tests.unit.descheduler import build
from tests.unit.descheduler.guarding import OURS, Given, deployment, namespace, pod, replica_set

KEY, SPOT = OURS.rescheduling, OURS.spot
CAST = keys.CAST_REMOVAL_DISABLED


def told(*also: Any, pod: Any) -> list[tuple[str, str, str]]:
    """Kind and name of the object, and the note without its prefix."""
    found = list(misread.find(Given(pod=pod, also=also).context()))
    assert {it.topic.reason for it in found} <= {"InvalidValue"}
    assert {it.topic.severity for it in found} <= {Severity.WARNING}
    return sorted((it.subject.kind, it.subject.name, it.note.replace(OURS.prefix, "")) for it in found)


OPT = "rescheduling: 'off' is not accepted, use 'enabled' or 'disabled'; until then it is disabled"
WHERE = "spot: 'no' is not accepted, use 'prefer', 'require', 'avoid' or 'ignore'"
OFF, AWAY = {KEY: "off"}, {SPOT: "no"}
ELSEWHERE = [build.owner("Rollout", "other", "shop")]
CRITICAL = "'standard' or 'batch': namespace shop is not among placement.criticalNamespaces"

PLACES: dict[str, tuple[tuple[Any, ...], list[tuple[str, str, str]]]] = {
    "nothing": ((pod(),), []),
    "understood": ((pod(labels={KEY: "disabled"}, annotations={SPOT: "avoid", CAST: "false"}),), []),
    "a label of a pod": ((pod(labels=OFF),), [("Pod", "web-1", OPT)]),
    "the same as annotation, too": ((pod(labels=OFF, annotations=OFF),), [("Pod", "web-1", OPT)]),
    "two keys of a pod": ((pod(labels=OFF, annotations=AWAY),), [("Pod", "web-1", OPT), ("Pod", "web-1", WHERE)]),
    "a pod of no workload": ((pod(of=None, annotations=AWAY),), [("Pod", "web-1", WHERE)]),
    "a pod that ends": ((pod(labels=OFF, metadata={"deletionTimestamp": build.LONG_AGO}),), []),
    "a template": (
        (pod(labels=OFF), pod("web-2", labels=OFF)),
        [("Deployment", "web", f"on its pods, {OPT}")],
    ),
    "different ones on two pods": (
        (pod(annotations=AWAY), pod("web-2", labels=OFF)),
        [("Pod", "web-1", WHERE), ("Pod", "web-2", OPT)],
    ),
    "a workload": ((pod(), deployment(metadata={"annotations": AWAY})), [("Deployment", "web", WHERE)]),
    "a workload, which handed it down": (
        (pod(), deployment(metadata={"annotations": AWAY}), replica_set(annotations=AWAY)),
        [("Deployment", "web", WHERE)],
    ),
    "a ReplicaSet below a kind that is not watched": (
        (pod(), replica_set(annotations=AWAY, ownerReferences=ELSEWHERE)),
        [("ReplicaSet", "web-5f", WHERE)],
    ),
    "a workload, behind a pod that says what is meant": (
        (pod(annotations={SPOT: "avoid"}), deployment(metadata={"annotations": AWAY})),
        [("Deployment", "web", WHERE)],
    ),
    "a workload that mixes what it avoids": (
        (pod(), deployment(metadata={"annotations": {SPOT: "avoid", OURS.spot_percentage: "50"}})),
        [
            (
                "Deployment",
                "web",
                "spot-percentage: '50' is not accepted, use it with spot 'prefer', for here spot is 'avoid'",
            )
        ],
    ),
    "a namespace": ((pod(), namespace(labels=OFF)), [("Namespace", "shop", OPT)]),
    "critical where it may not be": (
        (pod(), namespace(annotations={OURS.tier: "critical"})),
        [
            (
                "Namespace",
                "shop",
                f"tier: 'critical' is not accepted, use {CRITICAL}",
            )
        ],
    ),
    "a node": ((pod(), build.node("a", annotations=OFF)), [("Node", "a", OPT)]),
    "a key of another project on a node": (
        (pod(), build.node("a", annotations={CAST: "yes"})),
        [("Node", "a", f"{CAST}: 'yes' is not accepted, use 'true' or 'false'")],
    ),
}


@pytest.mark.parametrize(("objects", "expected"), PLACES.values(), ids=PLACES.keys())
def test_it_is_told_on_the_object_that_carries_it(
    objects: tuple[Any, ...], expected: list[tuple[str, str, str]]
) -> None:
    one, *more = objects
    assert told(*more, pod=one) == expected


FOREIGN: dict[str, tuple[dict[str, str], dict[str, str], list[str]]] = {
    "safe-to-evict": ({keys.SAFE_TO_EVICT: "False"}, {}, [keys.SAFE_TO_EVICT]),
    "do-not-disrupt": ({keys.DO_NOT_DISRUPT: "-1h"}, {}, [keys.DO_NOT_DISRUPT]),
    "eviction-cost": ({keys.KOORDINATOR_EVICTION_COST: "1e3"}, {}, [keys.KOORDINATOR_EVICTION_COST]),
    "pod-deletion-cost": ({keys.POD_DELETION_COST: "+1"}, {}, [keys.POD_DELETION_COST]),
    "removal-disabled": ({CAST: "yes"}, {}, [CAST]),
    "restrict-scale-down": ({}, {keys.OCEAN_RESTRICT_SCALE_DOWN: "1"}, [keys.OCEAN_RESTRICT_SCALE_DOWN]),
    "restrict-scale-down as annotation": ({keys.OCEAN_RESTRICT_SCALE_DOWN: "1"}, {}, []),
    "several": ({CAST: "x", keys.SAFE_TO_EVICT: "x"}, {}, [CAST, keys.SAFE_TO_EVICT]),
}


@pytest.mark.parametrize(("annotations", "labels", "wrong"), FOREIGN.values(), ids=FOREIGN.keys())
def test_keys_of_other_projects_on_a_pod(
    annotations: dict[str, str], labels: dict[str, str], wrong: list[str]
) -> None:
    found = told(pod=pod(annotations=annotations, labels=labels))
    assert [note.partition(":")[0] for _, _, note in found] == sorted(wrong)


def test_what_stands_around_a_pod() -> None:
    made = pod(labels=OFF)
    also = (
        deployment(metadata={"annotations": AWAY}),
        namespace(labels=OFF),
        build.node("a", annotations=OFF),
        build.node("b", annotations=OFF),
    )
    found = list(misread.around(made, Given(pod=made, also=also).context()))
    assert [it.place for it in found] == ["Pod shop/web-1", "Deployment shop/web", "Namespace shop", "Node a"]
    assert str(found[1].what).endswith(WHERE)


def test_the_event_of_a_namespace_lies_in_it() -> None:
    (said,) = misread.find(Given(pod=pod(), also=(namespace(labels=OFF),)).context())
    assert (said.subject.namespace, said.subject.uid) == ("shop", build.meta("shop")["uid"])
