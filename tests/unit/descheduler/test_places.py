"""Which node a pod is sent to: away from the pods of its own workload, whoever claims to be one of them."""

import pytest

from descheduler.fit import Fitter
from descheduler.picture import Picture
from descheduler.places import Places
from tests.unit.descheduler import build
from tests.unit.descheduler.scenes import deployment, nodes


@pytest.mark.parametrize("forged_first", [False, True])
def test_a_pod_of_another_namespace_is_no_sibling(forged_first: bool) -> None:
    """The emptier of the two nodes has a pod of the workload."""
    forged = build.pod("forged", on="n0", namespace="other", of=build.owner("Deployment", "db"))
    world = [*nodes("n0", "n1", "n2"), *deployment("db", ["n0", "n1"], cpu="100m"), build.pod("x", on="n2", cpu="2")]
    state = build.state(*world, forged)
    picture = Picture(state)
    places = Places(picture, Fitter(picture))
    pod = state.pods["default", "db-00"]
    if forged_first:
        places.choose(forged, spot=None)
    picture.take(pod)
    assert places.choose(pod, spot=None) == "n2"


@pytest.mark.parametrize(
    ("spot", "but", "count"), [(None, "", 5), (None, "s0", 4), (True, "s0", 1), (True, "o0", 2), (False, "gone", 3)]
)
def test_nodes_are_counted_as_they_are_named(spot: bool | None, but: str, count: int) -> None:
    closed = build.node("closed", spot=True, unschedulable=True)
    picture = Picture(build.state(*nodes("s0", "s1", spot=True), *nodes("o0", "o1", "o2", spot=False), closed))
    places = Places(picture, Fitter(picture))
    assert places.count(spot=spot, but=but) == count
    assert len([name for name in places.names(spot=spot) if name != but]) == count
