"""Topology spread: every part of a constraint, and the counts as moves are booked."""

from typing import Any

import pytest

from descheduler.fit import FitCode, Fitter
from descheduler.picture import Picture
from tests.unit.descheduler import build

ZONE = "topology.kubernetes.io/zone"
WEB = {"app": "web"}
BUSY = ({"key": "busy", "effect": "NoSchedule"},)


def constraint(skew: int = 1, key: str = ZONE, **more: Any) -> dict[str, Any]:
    base = {"labelSelector": {"matchLabels": WEB}, "whenUnsatisfiable": "DoNotSchedule"}
    return {"maxSkew": skew, "topologyKey": key, **base, **more}


def web(name: str, on: str, labels: Any = WEB, **more: Any) -> Any:
    return build.pod(name, on=on, labels=labels, **more)


def codes(fitter: Fitter, pod: Any, name: str) -> list[FitCode]:
    found = [it.code for it in fitter.misfits(pod, name)]
    assert fitter.fits(pod, name) is (not found)
    return found


NODES = (
    build.node("a", zone="a", labels={"pool": "x"}),
    build.node("b", zone="b", labels={"pool": "x"}),
    build.node("c", zone="c", labels={"pool": "y"}, taints=BUSY),
)
ONE_EACH = (web("p1", "a"), web("p2", "b"), web("p3", "c"))
AT_A = (web("p1", "a"), web("p2", "b"))


@pytest.mark.parametrize(
    ("constraints", "there", "labels", "fits_a"),
    [
        pytest.param([constraint()], ONE_EACH, WEB, True, id="even"),
        pytest.param([constraint()], (*ONE_EACH, web("p4", "a")), WEB, False, id="one-ahead-already"),
        pytest.param([constraint(2)], (*ONE_EACH, web("p4", "a")), WEB, True, id="skew-of-two"),
        pytest.param([constraint()], AT_A, WEB, False, id="an-empty-zone-counts"),
        pytest.param([constraint(nodeTaintsPolicy="Honor")], AT_A, WEB, True, id="tainted-nodes-left-out"),
        pytest.param([constraint()], AT_A, {"app": "db"}, True, id="the-pod-itself-is-not-counted"),
        pytest.param([constraint()], (web("p1", "a", {"app": "db"}),), WEB, True, id="others-are-not-counted"),
        pytest.param([constraint()], (web("p1", "a", namespace="other"),), WEB, True, id="other-namespace"),
        pytest.param(
            [constraint()],
            (web("p1", "a", metadata={"deletionTimestamp": build.LONG_AGO}),),
            WEB,
            True,
            id="terminating-pods-are-not-counted",
        ),
        pytest.param([constraint(minDomains=3)], ONE_EACH, WEB, True, id="enough-domains"),
        pytest.param([constraint(minDomains=4)], ONE_EACH, WEB, False, id="too-few-domains-count-as-empty"),
        pytest.param([constraint(whenUnsatisfiable="ScheduleAnyway")], AT_A, WEB, True, id="a-wish-does-not-filter"),
        pytest.param([constraint(labelSelector=None)], AT_A, WEB, True, id="no-selector-selects-nobody"),
        pytest.param([constraint(labelSelector={})], AT_A, WEB, True, id="empty-selector-counts-only-the-pod"),
        pytest.param([constraint(labelSelector={}, minDomains=9)], AT_A, WEB, True, id="empty-selector-few-domains"),
        pytest.param([constraint(key="rack")], (), WEB, False, id="node-without-the-key"),
        pytest.param([constraint(), constraint(key="rack")], (), WEB, False, id="every-constraint-must-hold"),
        pytest.param(
            [constraint(matchLabelKeys=["rev"])],
            (web("p1", "a", {**WEB, "rev": "1"}),),
            {**WEB, "rev": "2"},
            True,
            id="match-label-keys-other-revision",
        ),
        pytest.param(
            [constraint(matchLabelKeys=["rev"])],
            (web("p1", "a", {**WEB, "rev": "1"}),),
            {**WEB, "rev": "1"},
            False,
            id="match-label-keys-same-revision",
        ),
        pytest.param(
            [constraint(matchLabelKeys=["rev"])], (web("p1", "a"),), WEB, False, id="match-label-keys-pod-has-none"
        ),
    ],
)
def test_spread(constraints: list[Any], there: tuple[Any, ...], labels: Any, fits_a: bool) -> None:
    pod = build.pod("x", labels=labels, spec={"topologySpreadConstraints": constraints})
    fitter = Fitter(Picture(build.state(*NODES, *there, pod)))
    assert set(codes(fitter, pod, "a")) == (set() if fits_a else {FitCode.TOPOLOGY_SPREAD})


@pytest.mark.parametrize(
    ("policy", "fits_a"),
    [pytest.param("Honor", True, id="only-nodes-it-may-use"), pytest.param("Ignore", False, id="all-nodes")],
)
def test_nodes_that_the_selector_leaves_out(policy: str, fits_a: bool) -> None:
    spec = {"nodeSelector": {"pool": "x"}, "topologySpreadConstraints": [constraint(nodeAffinityPolicy=policy)]}
    pod = build.pod("x", labels=WEB, spec=spec)
    fitter = Fitter(Picture(build.state(*NODES, *AT_A, pod)))
    assert codes(fitter, pod, "a") == ([] if fits_a else [FitCode.TOPOLOGY_SPREAD])


def test_counts_follow_the_picture() -> None:
    spec = {"topologySpreadConstraints": [constraint()], "tolerations": [{"operator": "Exists"}]}
    one, two, three = (web(name, name, spec=spec) for name in ("a", "b", "c"))
    picture = Picture(build.state(*NODES, one, two, three))
    fitter = Fitter(picture)
    picture.take(one)
    assert codes(fitter, one, "b") == [FitCode.TOPOLOGY_SPREAD]
    assert codes(fitter, one, "a") == []
    picture.put(one, "a")
    assert codes(fitter, two, "b") == []
    picture.unput(one, "a")
    picture.untake(one)
    assert codes(fitter, two, "b") == []


def test_a_replacement_counts_though_its_pod_is_terminating() -> None:
    spec = {"topologySpreadConstraints": [constraint()]}
    leaving = web("x", "a", spec=spec, metadata={"deletionTimestamp": build.LONG_AGO})
    other = build.pod("y", labels=WEB, spec=spec)
    picture = Picture(build.state(*NODES, leaving, other))
    fitter = Fitter(picture)
    assert codes(fitter, other, "b") == []
    picture.take(leaving)
    picture.put(leaving, "b")
    assert codes(fitter, other, "b") == [FitCode.TOPOLOGY_SPREAD]
