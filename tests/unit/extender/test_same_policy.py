"""What the webhook decided for a pod is what the extender reads from it, whoever said it."""

import itertools
from typing import Any

import jsonpatch
import pytest

from extender import wish
from policy.capacity import CapacityType
from policy.values import Spot
from tests.unit.extender.building import a_view, annotated, owner, parsed
from tests.unit.webhook import building
from webhook import mutate

SAID = (None, "prefer", "require", "avoid", "ignore")
LEVELS = list(itertools.product(SAID, repeat=3))
CRITICAL = {"placement": {"criticalNamespaces": ["shop"]}}
WANTED = {Spot.PREFER: CapacityType.SPOT, Spot.AVOID: CapacityType.ON_DEMAND, Spot.REQUIRE: None, Spot.IGNORE: None}


def said(spot: str | None, tier: str | None = None) -> dict[str, str]:
    given = {"spot": spot, "tier": tier}
    return annotated(**{key: value for key, value in given.items() if value is not None})


@pytest.mark.parametrize("tier", [None, "critical", "batch"], ids=["no tier", "critical", "batch"])
@pytest.mark.parametrize(
    ("pod", "workload", "namespace"),
    LEVELS,
    ids=["-".join(it or "unsaid" for it in found) for found in LEVELS],
)
def test_through_the_pod(pod: str | None, workload: str | None, namespace: str | None, tier: str | None) -> None:
    metadata = {"name": "web-0", "namespace": "shop", "uid": "u", "ownerReferences": [owner()]}
    made: dict[str, Any] = {
        "metadata": {**metadata, "labels": {"app": "web"}, "annotations": {"a": "b", **said(pod)}},
        "spec": {"containers": [{"name": "main", "image": "app:1"}]},
    }
    above = {"name": "web", "namespace": "shop", "uid": "rs-1", "annotations": said(workload, tier)}
    seen = building.view(
        policy=CRITICAL,
        namespace={"annotations": said(namespace)},
        objects=[{"kind": "ReplicaSet", "metadata": above}],
    )
    decision = mutate.decide(building.parsed(made), seen, building.NOW)
    assert decision.placed is not None
    patched = jsonpatch.apply_patch(made, [it.plain() for it in decision.ops])
    assert wish.of(parsed(patched), a_view()).capacity is WANTED[decision.placed.intent.spot]
