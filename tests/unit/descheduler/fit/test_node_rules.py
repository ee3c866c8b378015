"""Selector, required node affinity, taints and cordon: one table, both outcomes."""

from typing import Any

import pytest

from descheduler.fit import FitCode, Fitter
from descheduler.picture import Picture
from tests.unit.descheduler import build

LABELS = {"disk": "ssd", "rack": "7", "odd": "seven"}


def affinity(*terms: Any) -> dict[str, Any]:
    required = {"nodeSelectorTerms": list(terms)}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


def rule(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def labels(*rules: Any) -> dict[str, Any]:
    return {"matchExpressions": list(rules)}


def fields(*rules: Any) -> dict[str, Any]:
    return {"matchFields": list(rules)}


SELECTOR, AFFINITY = FitCode.NODE_SELECTOR, FitCode.NODE_AFFINITY


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, [], id="nothing-asked"),
        pytest.param({"nodeSelector": {"disk": "ssd"}}, [], id="selector-matches"),
        pytest.param({"nodeSelector": {"disk": "hdd"}}, [SELECTOR], id="selector-other-value"),
        pytest.param({"nodeSelector": {"gpu": ""}}, [SELECTOR], id="selector-absent-label-is-not-empty"),
        pytest.param({"nodeSelector": {"disk": "hdd", "gpu": "a"}}, [SELECTOR] * 2, id="selector-every-miss-is-told"),
        pytest.param(affinity(labels(rule("disk", "In", "hdd", "ssd"))), [], id="in"),
        pytest.param(affinity(labels(rule("disk", "In", "hdd"))), [AFFINITY], id="not-in-the-list"),
        pytest.param(affinity(labels(rule("gpu", "In", ""))), [AFFINITY], id="in-absent"),
        pytest.param(affinity(labels(rule("gpu", "NotIn", "a"))), [], id="notin-absent"),
        pytest.param(affinity(labels(rule("disk", "NotIn", "ssd"))), [AFFINITY], id="notin-listed"),
        pytest.param(affinity(labels(rule("disk", "Exists"))), [], id="exists"),
        pytest.param(affinity(labels(rule("gpu", "Exists"))), [AFFINITY], id="exists-absent"),
        pytest.param(affinity(labels(rule("gpu", "DoesNotExist"))), [], id="does-not-exist"),
        pytest.param(affinity(labels(rule("disk", "DoesNotExist"))), [AFFINITY], id="does-not-exist-present"),
        pytest.param(affinity(labels(rule("rack", "Gt", "6"))), [], id="gt"),
        pytest.param(affinity(labels(rule("rack", "Gt", "7"))), [AFFINITY], id="gt-equal"),
        pytest.param(affinity(labels(rule("rack", "Lt", "8"))), [], id="lt"),
        pytest.param(affinity(labels(rule("rack", "Lt", "7"))), [AFFINITY], id="lt-equal"),
        pytest.param(affinity(labels(rule("rack", "Gt", "-1"))), [], id="gt-negative"),
        pytest.param(affinity(labels(rule("odd", "Gt", "0"))), [AFFINITY], id="gt-label-is-no-number"),
        pytest.param(affinity(labels(rule("gpu", "Lt", "9"))), [AFFINITY], id="lt-absent"),
        pytest.param(affinity(labels(rule("rack", "Gt", str(2**63)))), [AFFINITY], id="gt-beyond-64-bits"),
        pytest.param(affinity(labels(rule("rack", "Lt", "9" * 5000))), [AFFINITY], id="lt-thousands-of-digits"),
        pytest.param(affinity(labels(rule("rack", "Gt", "0" * 5000 + "6"))), [], id="gt-thousands-of-zeros"),
        pytest.param(affinity(labels(rule("rack", "Like", "7"))), [AFFINITY], id="unknown-operator"),
        pytest.param(affinity({}), [AFFINITY], id="empty-term-matches-nothing"),
        pytest.param(affinity({}, labels(rule("disk", "Exists"))), [], id="empty-term-beside-one-that-matches"),
        pytest.param(affinity(), [AFFINITY], id="no-terms"),
        pytest.param(
            affinity(labels(rule("disk", "Exists"), rule("gpu", "Exists"))), [AFFINITY], id="expressions-are-anded"
        ),
        pytest.param(
            affinity(labels(rule("gpu", "Exists")), labels(rule("rack", "Exists"))), [], id="terms-are-ored"
        ),
        pytest.param(affinity(fields(rule("metadata.name", "In", "a"))), [], id="field-name"),
        pytest.param(affinity(fields(rule("metadata.name", "In", "b"))), [AFFINITY], id="field-other-name"),
        pytest.param(affinity(fields(rule("metadata.name", "NotIn", "b"))), [], id="field-not-name"),
        pytest.param(affinity(fields(rule("metadata.name", "In", "a", "b"))), [AFFINITY], id="field-takes-one-value"),
        pytest.param(
            affinity({**labels(rule("gpu", "Exists")), **fields(rule("metadata.name", "In", "a"))}),
            [AFFINITY],
            id="fields-and-expressions-are-anded",
        ),
        pytest.param(
            {"nodeSelector": {"disk": "ssd"}, **affinity(labels(rule("gpu", "Exists")))},
            [AFFINITY],
            id="selector-and-affinity-are-anded",
        ),
    ],
)
def test_selector_and_affinity(spec: dict[str, Any], expected: list[FitCode]) -> None:
    pod = build.pod("x", spec=spec)
    fitter = Fitter(Picture(build.state(build.node("a", labels=LABELS), pod)))
    assert [it.code for it in fitter.misfits(pod, "a")] == expected
    assert fitter.fits(pod, "a") is (not expected)


def taint(effect: str = "NoSchedule", key: str = "team", value: str = "blue") -> dict[str, str]:
    return {"key": key, "value": value, "effect": effect}


def toleration(**parts: Any) -> dict[str, Any]:
    return {"key": "team", "operator": "Equal", "value": "blue", **parts}


@pytest.mark.parametrize(
    ("taints", "tolerations", "tainted"),
    [
        pytest.param([], [], 0, id="no-taints"),
        pytest.param([taint()], [], 1, id="noschedule"),
        pytest.param([taint("NoExecute")], [], 1, id="noexecute"),
        pytest.param([taint("PreferNoSchedule")], [], 0, id="prefer-does-not-filter"),
        pytest.param([taint()], [toleration()], 0, id="equal"),
        pytest.param([taint()], [{"key": "team", "value": "blue"}], 0, id="no-operator-is-equal"),
        pytest.param([taint()], [toleration(value="red")], 1, id="other-value"),
        pytest.param([taint()], [toleration(effect="NoSchedule")], 0, id="same-effect"),
        pytest.param([taint()], [toleration(effect="NoExecute")], 1, id="other-effect"),
        pytest.param([taint()], [{"key": "team", "operator": "Exists"}], 0, id="exists"),
        pytest.param([taint()], [{"key": "crew", "operator": "Exists"}], 1, id="exists-other-key"),
        pytest.param([taint()], [{"operator": "Exists"}], 0, id="exists-without-key-is-everything"),
        pytest.param([taint()], [{"operator": "Exists", "effect": "NoExecute"}], 1, id="everything-of-one-effect"),
        pytest.param([taint(value="5")], [toleration(operator="Gt", value="3")], 1, id="gt-is-switched-off"),
        pytest.param([taint(), taint("NoExecute")], [toleration()], 0, id="one-for-two-effects"),
        pytest.param([taint(), taint(key="gpu")], [toleration()], 1, id="one-of-two-tolerated"),
        pytest.param([taint(), taint(key="gpu")], [], 2, id="every-taint-is-told"),
        pytest.param(
            [taint()], [toleration(tolerationSeconds=3, effect="NoSchedule")], 0, id="seconds-do-not-matter"
        ),
    ],
)
def test_taints(taints: list[dict[str, str]], tolerations: list[dict[str, Any]], tainted: int) -> None:
    pod = build.pod("x", spec={"tolerations": tolerations})
    fitter = Fitter(Picture(build.state(build.node("a", taints=taints), pod)))
    assert [it.code for it in fitter.misfits(pod, "a")] == [FitCode.TAINT] * tainted
    assert fitter.fits(pod, "a") is (tainted == 0)


@pytest.mark.parametrize(
    ("unschedulable", "tolerations", "expected"),
    [
        pytest.param(False, [], [], id="open"),
        pytest.param(True, [], [FitCode.UNSCHEDULABLE], id="cordoned"),
        pytest.param(True, [{"operator": "Exists"}], [], id="tolerates-everything"),
        pytest.param(
            True, [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}], [], id="tolerates-the-cordon"
        ),
        pytest.param(
            True,
            [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoExecute"}],
            [FitCode.UNSCHEDULABLE],
            id="tolerates-another-effect",
        ),
    ],
)
def test_cordon(unschedulable: bool, tolerations: list[dict[str, Any]], expected: list[FitCode]) -> None:
    pod = build.pod("x", spec={"tolerations": tolerations})
    fitter = Fitter(Picture(build.state(build.node("a", unschedulable=unschedulable), pod)))
    assert [it.code for it in fitter.misfits(pod, "a")] == expected
    assert fitter.fits(pod, "a") is (not expected)


def test_a_node_that_only_pods_know_takes_nothing() -> None:
    there, pod = build.pod("y", on="ghost"), build.pod("x")
    fitter = Fitter(Picture(build.state(there, pod)))
    for name in ("ghost", "nowhere"):
        assert [it.code for it in fitter.misfits(pod, name)] == [FitCode.NODE_UNKNOWN]
        assert not fitter.fits(pod, name)


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        pytest.param({"schedulingGates": [{"name": "wait"}]}, FitCode.SCHEDULING_GATES, id="gated"),
        pytest.param({"resourceClaims": [{"name": "gpu"}]}, FitCode.RESOURCE_CLAIMS, id="devices"),
    ],
)
def test_what_stands_against_every_node(spec: dict[str, Any], code: FitCode) -> None:
    pod = build.pod("x", spec=spec)
    fitter = Fitter(Picture(build.state(build.node("a"), pod)))
    assert [it.code for it in fitter.misfits(pod, "a")] == [code]
    assert not fitter.fits(pod, "a")
