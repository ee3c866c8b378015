from typing import Any

import pytest

from policy import affinity
from policy.capacity import CapacityType
from policy.values import Spot

CAPACITY = "node.kubernetes.io/capacity"
HOST = "kubernetes.io/hostname"
KEY = "scheduler.alpha.kubernetes.io/spot"
Json = dict[str, Any]


def rule(key: str, *values: str, operator: str = "In") -> Json:
    return {"key": key, "operator": operator, "values": list(values)}


def term(*rules: Json, fields: tuple[Json, ...] = ()) -> Json:
    return {"matchExpressions": list(rules), "matchFields": list(fields)}


def node_affinity(*required: Json, preferred: tuple[Json, ...] = ()) -> Json:
    return {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(required)},
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": it} for it in preferred],
    }


SPOT_TERM, ON_DEMAND_TERM = term(rule(CAPACITY, "spot")), term(rule(CAPACITY, "on-demand"))


@pytest.mark.parametrize(
    ("selector", "given_affinity", "expected"),
    [
        pytest.param({}, {}, None, id="nothing"),
        pytest.param({CAPACITY: "spot"}, {}, CapacityType.SPOT, id="selector"),
        pytest.param({"cloud.google.com/gke-spot": "true"}, {}, CapacityType.SPOT, id="cloud label"),
        pytest.param({}, node_affinity(SPOT_TERM), CapacityType.SPOT, id="term"),
        pytest.param({}, node_affinity(SPOT_TERM, ON_DEMAND_TERM), None, id="either"),
        pytest.param({}, node_affinity(SPOT_TERM, term(rule("zone", "a"))), None, id="an alternative without it"),
        pytest.param(
            {},
            node_affinity(term(rule(CAPACITY, "spot", operator="NotIn"))),
            CapacityType.ON_DEMAND,
            id="not spot",
        ),
        pytest.param(
            {},
            node_affinity(term(rule(CAPACITY, "on-demand", operator="NotIn"))),
            CapacityType.SPOT,
            id="not on-demand",
        ),
        pytest.param({}, node_affinity(term(rule(CAPACITY, "spot", "on-demand"))), None, id="both values"),
        pytest.param({}, node_affinity(term(rule(CAPACITY, operator="Exists"))), None, id="exists"),
        pytest.param({}, node_affinity(term(rule(CAPACITY, "other"))), None, id="unknown value"),
        pytest.param({}, node_affinity(preferred=(SPOT_TERM,)), None, id="only preferred"),
        pytest.param({}, {"requiredDuringSchedulingIgnoredDuringExecution": None}, None, id="null"),
    ],
)
def test_required_capacity(selector: dict[str, str], given_affinity: Json, expected: CapacityType | None) -> None:
    assert affinity.required_capacity(selector, given_affinity) is expected


@pytest.mark.parametrize(
    ("spot", "given_affinity", "told"),
    [
        pytest.param(
            Spot.PREFER,
            node_affinity(SPOT_TERM, preferred=(ON_DEMAND_TERM,)),
            ["requires spot, prefers on-demand"],
            id="requires spot, prefers on-demand",
        ),
        pytest.param(Spot.PREFER, node_affinity(SPOT_TERM, preferred=(SPOT_TERM,)), [], id="agrees"),
        pytest.param(Spot.AVOID, node_affinity(SPOT_TERM), ["avoid"], id="avoid against required spot"),
        pytest.param(
            Spot.REQUIRE, node_affinity(ON_DEMAND_TERM), ["require"], id="require against required on-demand"
        ),
        pytest.param(Spot.PREFER, node_affinity(ON_DEMAND_TERM), [], id="the default intent never complains"),
        pytest.param(Spot.REQUIRE, {}, [], id="no affinity"),
    ],
)
def test_contradictions(spot: Spot, given_affinity: Json, told: list[str]) -> None:
    found = affinity.contradictions(spot, key=KEY, selector={}, node_affinity=given_affinity)
    assert [it.value for it in found] == told


@pytest.mark.parametrize(
    ("selector", "given_affinity", "expected"),
    [
        pytest.param({}, {}, None, id="free"),
        pytest.param({"disk": "ssd"}, {}, None, id="another label"),
        pytest.param({HOST: "w-1"}, {}, f"nodeSelector {HOST}=w-1", id="selector"),
        pytest.param(
            {},
            node_affinity(term(rule(HOST, "w-1"))),
            f"required node affinity {HOST} In [w-1]",
            id="hostname",
        ),
        pytest.param(
            {},
            node_affinity(term(fields=(rule("metadata.name", "w-1"),))),
            "required node affinity metadata.name In [w-1]",
            id="field",
        ),
        pytest.param({}, node_affinity(term(rule(HOST, "w-1", "w-2"))), None, id="two hosts in one rule"),
        pytest.param({}, node_affinity(term(rule(HOST, "w-1")), term(rule(HOST, "w-2"))), None, id="two terms"),
        pytest.param({}, node_affinity(term(rule(HOST, "w-1")), term(rule("zone", "a"))), None, id="an alternative"),
        pytest.param({}, node_affinity(term(rule(HOST, "w-1", operator="NotIn"))), None, id="anywhere but there"),
        pytest.param({}, node_affinity(preferred=(term(rule(HOST, "w-1")),)), None, id="preferred"),
        pytest.param(
            {},
            node_affinity(term(rule(HOST, "w-1")), {}),
            f"required node affinity {HOST} In [w-1]",
            id="an empty term matches nothing",
        ),
    ],
)
def test_pinned(selector: dict[str, str], given_affinity: Json, expected: str | None) -> None:
    assert affinity.pinned(selector, given_affinity) == expected


@pytest.mark.parametrize(
    ("given_affinity", "expected"),
    [
        pytest.param({}, None, id="nothing"),
        pytest.param(node_affinity(preferred=(SPOT_TERM,)), CapacityType.SPOT, id="spot"),
        pytest.param(
            node_affinity(preferred=(term(rule(CAPACITY, "spot", operator="NotIn")),)),
            CapacityType.ON_DEMAND,
            id="not spot",
        ),
        pytest.param(node_affinity(preferred=(SPOT_TERM, SPOT_TERM)), CapacityType.SPOT, id="twice the same"),
        pytest.param(node_affinity(preferred=(SPOT_TERM, ON_DEMAND_TERM)), None, id="both"),
        pytest.param(node_affinity(SPOT_TERM), None, id="required is not preferred"),
        pytest.param(
            node_affinity(preferred=(term(rule(HOST, "w-1")), SPOT_TERM)), CapacityType.SPOT, id="beside another rule"
        ),
    ],
)
def test_preferred_capacity(given_affinity: Json, expected: CapacityType | None) -> None:
    assert affinity.preferred_capacity(given_affinity) == expected
