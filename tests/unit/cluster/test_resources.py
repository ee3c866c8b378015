"""A resource is an address: the paths the API server knows."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster import resources
from cluster.resources import Resource

ALL = [value for value in vars(resources).values() if isinstance(value, Resource)]


@pytest.mark.parametrize(
    ("resource", "args", "path"),
    [
        pytest.param(resources.PODS, (), "/api/v1/pods", id="core-everywhere"),
        pytest.param(resources.PODS, ("a",), "/api/v1/namespaces/a/pods", id="core-namespace"),
        pytest.param(
            resources.PODS, ("a", "b", "eviction"), "/api/v1/namespaces/a/pods/b/eviction", id="subresource"
        ),
        pytest.param(resources.NODES, (None, "n"), "/api/v1/nodes/n", id="global"),
        pytest.param(
            resources.DEPLOYMENTS, ("a", "d", "scale"), "/apis/apps/v1/namespaces/a/deployments/d/scale", id="group"
        ),
        pytest.param(resources.NAMESPACES, (None, "a"), "/api/v1/namespaces/a", id="namespace-itself"),
        pytest.param(resources.NODEMETRICS, (), "/apis/metrics.k8s.io/v1beta1/nodes", id="metrics"),
        pytest.param(resources.PODS, ("a", "../x?y#z"), "/api/v1/namespaces/a/pods/..%2Fx%3Fy%23z", id="encoded"),
        pytest.param(resources.PODS, ("a", ".."), "/api/v1/namespaces/a/pods/%2E%2E", id="no-way-up"),
    ],
)
def test_path(resource: Resource, args: tuple[str | None, ...], path: str) -> None:
    assert resource.path(*args) == path


@pytest.mark.parametrize(
    ("resource", "args", "told"),
    [
        pytest.param(resources.NODES, ("a",), "outside namespaces", id="namespace-on-global"),
        pytest.param(resources.PODS, (None, "b"), "needs a namespace", id="name-without-namespace"),
        pytest.param(resources.PODS, ("a", None, "status"), "needs a name", id="subresource-without-name"),
    ],
)
def test_impossible_paths_are_refused(resource: Resource, args: tuple[str | None, ...], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        resource.path(*args)


@given(name=st.text(min_size=1, max_size=30).filter(lambda text: not re.search("[\ud800-\udfff]", text)))
def test_a_name_stays_one_segment(name: str) -> None:
    path = resources.PODS.path("a", name)
    assert path.count("/") == 6
    assert re.fullmatch(r"[\w./%~-]+", path)


def test_addresses_are_distinct() -> None:
    assert len({resource.path() for resource in ALL}) == len(ALL) >= 26
    assert resources.PODS.api_version == "v1"
    assert resources.PODMIGRATIONS.api_version == "spotshift.dev/v1alpha1"
