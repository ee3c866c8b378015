"""Where a pod should run, and who said so."""

import pytest

from descheduler import explanation, tables
from descheduler.gathered import Gathered
from policy import keys
from policy.settings import Settings
from tests.unit.descheduler import build, scenes

OURS = keys.under()
SETTINGS = Settings(excluded_namespaces=("kube-system",))


def line(pod: dict[str, str], workload: dict[str, str], namespace: dict[str, str], where: str = "shop") -> str:
    """What is printed of a pod whose annotations, and those above it, are these."""
    _, below, made = scenes.deployment("web", ["a"], namespace=where, annotations=pod)
    annotated = build.thing("Deployment", "web", where, metadata={"annotations": workload})
    space = build.thing("Namespace", where, "", metadata={"annotations": namespace})
    state = build.state(build.node("a"), space, annotated, below, made, settings=SETTINGS)
    told = explanation.of_pod(made, Gathered(state, 0), SETTINGS, scenes.NOW)
    return next(it.title for it in tables.of_pod(told) if it.title.startswith("Placement: "))


SAID = {
    "nobody": (({}, {}, {}), "spot prefer, by default (placement.spot of the settings)"),
    "the pod": (({OURS.spot: "avoid"}, {OURS.spot: "require"}, {}), f"spot avoid, by {OURS.spot} on the pod"),
    "the workload": (
        ({}, {OURS.spot: "require"}, {OURS.spot: "avoid"}),
        f"spot require, by {OURS.spot} on Deployment shop/web",
    ),
    "the namespace": (({}, {}, {OURS.spot: "ignore"}), f"spot ignore, by {OURS.spot} on namespace shop"),
    "a tier": (
        ({}, {}, {OURS.tier: "batch"}),
        f"spot prefer, by {OURS.tier} on namespace shop; tier batch, by {OURS.tier} on namespace shop",
    ),
    "a mix": (
        ({}, {OURS.spot_percentage: "70"}, {}),
        (
            "spot prefer, by default (placement.spot of the settings); "
            f"spot-percentage 70, by {OURS.spot_percentage} on Deployment shop/web"
        ),
    ),
    "nobody who can be understood": (
        ({}, {OURS.spot: "on"}, {}),
        "spot prefer, by default (placement.spot of the settings)",
    ),
}


@pytest.mark.parametrize(("said", "wanted"), SAID.values(), ids=SAID.keys())
def test_who_said_where_it_should_run(said: tuple[dict[str, str], ...], wanted: str) -> None:
    pod, workload, namespace = said
    assert line(pod, workload, namespace) == f"Placement: {wanted}"


def test_an_excluded_namespace_is_named() -> None:
    wanted = "Placement: spot ignore, by default (excludedNamespaces of the settings)"
    assert line({}, {}, {}, "kube-system") == wanted


def test_the_reason_is_told_of_every_pod_however_many_have_the_same() -> None:
    """A pass tells it of a hundred; who asks for one pod wants to know of that one."""
    names = [f"n{number:02}" for number in range(12)]
    full = [it for name in names for it in scenes.deployment(f"of-{name}", [name] * 18, cpu="200m")]
    state = build.state(*scenes.nodes(*names), *full)
    for name in ("of-n00-00", "of-n11-17"):
        told = explanation.of_pod(state.pods["default", name], Gathered(state, 0), Settings(), scenes.NOW)["plan"]
        assert told["decision"] == "refuse"
        assert [it["code"] for it in told["reasons"]] == ["NO_IMPROVEMENT"]
