"""Which requests a fault rule hits."""

import random
from typing import Any

import pytest

from testbed import faults

REQUESTS = {
    "get a pod": ("GET", "/api/v1/namespaces/default/pods/web", "get", "pods"),
    "list pods of a namespace": ("GET", "/api/v1/namespaces/default/pods?limit=5", "list", "pods"),
    "list pods of all namespaces": ("GET", "/api/v1/pods", "list", "pods"),
    "watch": ("GET", "/api/v1/pods?watch=1&resourceVersion=7", "watch", "pods"),
    "watch spelled true": ("GET", "/apis/apps/v1/deployments?watch=true", "watch", "deployments"),
    "watch as Python spells it": ("GET", "/api/v1/pods?watch=True", "watch", "pods"),
    "watch without a value": ("GET", "/api/v1/pods?watch", "watch", "pods"),
    "finalize a namespace": ("PUT", "/api/v1/namespaces/a/finalize", "update", "namespaces/finalize"),
    "status of a namespace": ("GET", "/api/v1/namespaces/a/status", "get", "namespaces/status"),
    "head": ("HEAD", "/api/v1/namespaces/a", "get", "namespaces"),
    "watch=false is a list": ("GET", "/api/v1/pods?watch=false", "list", "pods"),
    "get a namespace": ("GET", "/api/v1/namespaces/default", "get", "namespaces"),
    "list namespaces": ("GET", "/api/v1/namespaces", "list", "namespaces"),
    "create": ("POST", "/apis/apps/v1/namespaces/default/deployments", "create", "deployments"),
    "evict": ("POST", "/api/v1/namespaces/default/pods/web/eviction", "create", "pods/eviction"),
    "scale": ("PATCH", "/apis/apps/v1/namespaces/a/deployments/web/scale", "patch", "deployments/scale"),
    "replace": ("PUT", "/apis/coordination.k8s.io/v1/namespaces/a/leases/x", "update", "leases"),
    "delete": ("DELETE", "/api/v1/nodes/n", "delete", "nodes"),
    "delete many": ("DELETE", "/api/v1/namespaces/a/pods", "deletecollection", "pods"),
    "not an object": ("GET", "/readyz", "get", ""),
}


@pytest.mark.parametrize(("method", "target", "verb", "resource"), REQUESTS.values(), ids=REQUESTS.keys())
def test_verb_and_resource(method: str, target: str, verb: str, resource: str) -> None:
    assert faults.parse(method, target) == faults.Request(verb, resource, target)


WATCH_PODS = faults.Request("watch", "pods", "/api/v1/pods?watch=1")
GET_NODE = faults.Request("get", "nodes", "/api/v1/nodes/n1")


def test_a_rule_hits_only_what_it_names() -> None:
    rules = faults.Rules()
    rules.add(faults.Cut(), verb="watch", resource="pods", path=r"watch=1$")
    assert rules.choose(GET_NODE) is None
    assert rules.choose(WATCH_PODS) == faults.Cut()


def test_a_rule_can_ask_for_a_body() -> None:
    rules = faults.Rules()
    rules.add(faults.Cut(), body=r'"step":"Evict"')
    one, other = (b'{"status":{"step":"%s"}}' % step for step in (b"Mark", b"Evict"))
    assert rules.choose(faults.parse("PATCH", "/x", one)) is None
    assert rules.choose(faults.parse("PATCH", "/x", other)) == faults.Cut()


def test_a_count_is_spent() -> None:
    rules = faults.Rules()
    rule = rules.add(faults.Answer(500), count=2)
    assert [rules.choose(GET_NODE) for _ in range(3)] == [faults.Answer(500), faults.Answer(500), None]
    assert rule.hits == 2


def test_a_spent_rule_makes_way_for_the_next() -> None:
    rules = faults.Rules()
    rules.add(faults.Answer(500), count=1)
    rules.add(faults.Answer(429))
    assert [rules.choose(GET_NODE) for _ in range(2)] == [faults.Answer(500), faults.Answer(429)]


def test_probability_comes_from_the_seed() -> None:
    def hits(seed: int) -> list[bool]:
        rules = faults.Rules(rng=random.Random(seed))
        rules.add(faults.Cut(), probability=0.3)
        return [rules.choose(GET_NODE) is not None for _ in range(1000)]

    assert hits(1) == hits(1)
    assert 200 < sum(hits(1)) < 400


def test_rules_can_be_taken_back() -> None:
    rules = faults.Rules()
    rule = rules.add(faults.Cut())
    rules.remove(rule)
    assert rules.choose(GET_NODE) is None


IMPOSSIBLE: list[tuple[dict[str, Any], str]] = [
    ({"probability": 2}, "probability: 2 is not between 0 and 1"),
    ({"count": -1}, "count: -1 is not a positive number"),
    ({"verb": "wacth"}, "verb: 'wacth' is not one of get, list, watch"),
]


@pytest.mark.parametrize(("options", "message"), IMPOSSIBLE)
def test_an_impossible_rule_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        faults.Rules().add(faults.Cut(), **options)
