"""Affinity and anti-affinity between pods, both ways, before and after moves are booked."""

from typing import Any

import pytest

from descheduler.fit import FitCode, Fitter
from descheduler.picture import Picture
from tests.unit.descheduler import build

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
WEB, DB = {"app": "web"}, {"app": "db"}


def term(key: str = ZONE, labels: Any = WEB, **more: Any) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": labels}, **more}


def near(*terms: Any) -> dict[str, Any]:
    return {"affinity": {"podAffinity": {REQUIRED: list(terms)}}}


def far(*terms: Any) -> dict[str, Any]:
    return {"affinity": {"podAntiAffinity": {REQUIRED: list(terms)}}}


def codes(fitter: Fitter, pod: Any, name: str) -> list[FitCode]:
    found = [it.code for it in fitter.misfits(pod, name)]
    assert fitter.fits(pod, name) is (not found)
    return found


NODES = (build.node("a1", zone="a"), build.node("a2", zone="a"), build.node("b1", zone="b"), build.node("none"))
SPACES = (build.thing("Namespace", "other", "", metadata={"labels": {"team": "blue"}}),)


@pytest.mark.parametrize(
    ("spec", "there", "refused"),
    [
        pytest.param(near(term()), build.pod("y", on="a1", labels=WEB), {"b1", "none"}, id="zone-of-the-other"),
        pytest.param(
            near(term(HOST)), build.pod("y", on="a1", labels=WEB), {"a2", "b1", "none"}, id="node-of-the-other"
        ),
        pytest.param(near(term()), build.pod("y", on="a1", labels=DB), {"a1", "a2", "b1", "none"}, id="nobody"),
        pytest.param(
            near(term()),
            build.pod("y", on="a1", labels=WEB, namespace="other"),
            {"a1", "a2", "b1", "none"},
            id="other-namespace-does-not-count",
        ),
        pytest.param(
            near(term(namespaces=["other"])),
            build.pod("y", on="a1", labels=WEB, namespace="other"),
            {"b1", "none"},
            id="named-namespace",
        ),
        pytest.param(
            near(term(namespaceSelector={"matchLabels": {"team": "blue"}})),
            build.pod("y", on="a1", labels=WEB, namespace="other"),
            {"b1", "none"},
            id="selected-namespace",
        ),
        pytest.param(
            near(term(namespaceSelector={"matchLabels": {"team": "red"}})),
            build.pod("y", on="a1", labels=WEB, namespace="other"),
            {"a1", "a2", "b1", "none"},
            id="namespace-not-selected",
        ),
        pytest.param(
            near(term(namespaceSelector={})),
            build.pod("y", on="a1", labels=WEB, namespace="other"),
            {"b1", "none"},
            id="every-namespace",
        ),
        pytest.param(
            near(term(), term(HOST, DB)),
            build.pod("y", on="a1", labels=WEB),
            {"a1", "a2", "b1", "none"},
            id="all-terms-must-be-about-one-pod",
        ),
        pytest.param(
            near(term(), term(HOST)),
            build.pod("y", on="a1", labels=WEB),
            {"a2", "b1", "none"},
            id="all-terms-must-hold",
        ),
        pytest.param(
            near({"topologyKey": ZONE}),
            build.pod("y", on="a1", labels=WEB),
            {"a1", "a2", "b1", "none"},
            id="no-selector",
        ),
    ],
)
def test_affinity(spec: dict[str, Any], there: Any, refused: set[str]) -> None:
    pod = build.pod("x", labels={"app": "seeker"}, spec=spec)
    fitter = Fitter(Picture(build.state(*NODES, *SPACES, there, pod)))
    found = {name: codes(fitter, pod, name) for name in ("a1", "a2", "b1", "none")}
    assert found == {name: [FitCode.POD_AFFINITY] if name in refused else [] for name in found}


@pytest.mark.parametrize(
    ("labels", "there", "refused"),
    [
        pytest.param(WEB, [], {"none"}, id="the-first-may-go-wherever-there-are-zones"),
        pytest.param(DB, [], {"a1", "b1", "none"}, id="not-one-of-its-own-group"),
        pytest.param(WEB, [build.pod("y", on="a1", labels=WEB)], {"b1", "none"}, id="not-the-first"),
        pytest.param(
            WEB, [build.pod("y", on="none", labels=WEB)], {"none"}, id="one-outside-of-zones-does-not-count"
        ),
    ],
)
def test_the_first_of_a_group(labels: dict[str, str], there: list[Any], refused: set[str]) -> None:
    pod = build.pod("x", labels=labels, spec=near(term()))
    fitter = Fitter(Picture(build.state(*NODES, *there, pod)))
    found = {name: codes(fitter, pod, name) for name in ("a1", "b1", "none")}
    assert {name for name, why in found.items() if why} == refused


@pytest.mark.parametrize(
    ("spec", "there", "refused"),
    [
        pytest.param(far(term()), build.pod("y", on="a1", labels=WEB), {"a1", "a2"}, id="whole-zone"),
        pytest.param(far(term(HOST)), build.pod("y", on="a1", labels=WEB), {"a1"}, id="one-node"),
        pytest.param(far(term()), build.pod("y", on="a1", labels=DB), set(), id="nobody-to-avoid"),
        pytest.param(far(term()), build.pod("y", on="none", labels=WEB), set(), id="outside-of-zones"),
        pytest.param(
            far(term(), term(HOST, DB)), build.pod("y", on="a1", labels=DB), {"a1"}, id="each-term-for-itself"
        ),
        pytest.param(
            far(term(namespaces=["other"])), build.pod("y", on="a1", labels=WEB), set(), id="only-in-named-namespace"
        ),
    ],
)
def test_anti_affinity_of_the_pod(spec: dict[str, Any], there: Any, refused: set[str]) -> None:
    pod = build.pod("x", labels={"app": "seeker"}, spec=spec)
    fitter = Fitter(Picture(build.state(*NODES, *SPACES, there, pod)))
    found = {name: codes(fitter, pod, name) for name in ("a1", "a2", "b1", "none")}
    assert found == {name: [FitCode.POD_ANTI_AFFINITY] if name in refused else [] for name in found}


@pytest.mark.parametrize(
    ("terms", "space", "refused"),
    [
        pytest.param([term()], "default", {"a1", "a2"}, id="whole-zone"),
        pytest.param([term(HOST)], "default", {"a1"}, id="one-node"),
        pytest.param([term(labels=DB)], "default", set(), id="others-are-meant"),
        pytest.param([term()], "other", set(), id="pods-of-its-own-namespace-are-meant"),
        pytest.param([term(namespaces=["default"])], "other", {"a1", "a2"}, id="named-namespace"),
        pytest.param([term(namespaceSelector={})], "other", {"a1", "a2"}, id="every-namespace"),
        pytest.param(
            [term(namespaceSelector={"matchLabels": {"team": "blue"}})], "other", set(), id="namespace-not-selected"
        ),
        pytest.param([term(labels=DB), term(HOST)], "default", {"a1"}, id="any-term"),
    ],
)
def test_anti_affinity_of_others(terms: list[Any], space: str, refused: set[str]) -> None:
    pod = build.pod("x", labels=WEB)
    there = build.pod("y", on="a1", namespace=space, spec=far(*terms))
    fitter = Fitter(Picture(build.state(*NODES, *SPACES, there, pod)))
    found = {name: codes(fitter, pod, name) for name in ("a1", "a2", "b1", "none")}
    assert found == {name: [FitCode.REPELLED] if name in refused else [] for name in found}


def test_counts_follow_the_picture() -> None:
    spec = far(term(HOST))
    one, two = (build.pod(name, on=node, labels=WEB, spec=spec) for name, node in (("one", "a1"), ("two", "a2")))
    plain = build.pod("plain", labels=WEB)
    picture = Picture(build.state(*NODES, one, two, plain))
    fitter = Fitter(picture)
    both = [FitCode.POD_ANTI_AFFINITY, FitCode.REPELLED]
    assert codes(fitter, one, "a2") == both
    assert codes(fitter, plain, "a2") == [FitCode.REPELLED]
    picture.take(two)
    assert codes(fitter, one, "a2") == codes(fitter, plain, "a2") == []
    picture.put(two, "b1")
    assert codes(fitter, one, "b1") == both
    assert codes(fitter, plain, "b1") == [FitCode.REPELLED]
    picture.unput(two, "b1")
    picture.untake(two)
    assert codes(fitter, plain, "b1") == []
    assert codes(fitter, one, "a2") == both


def test_a_pod_that_was_taken_does_not_stand_in_its_own_way() -> None:
    pod = build.pod("x", on="a1", labels=WEB, spec=far(term()))
    picture = Picture(build.state(*NODES, pod))
    fitter = Fitter(picture)
    assert codes(fitter, pod, "a2") == [FitCode.POD_ANTI_AFFINITY, FitCode.REPELLED]
    picture.take(pod)
    assert codes(fitter, pod, "a2") == []
