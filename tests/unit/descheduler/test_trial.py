"""Which pods fit on spot together, and what that costs where one of them never does."""

from typing import Any

import pytest

from descheduler.fit import Fitter
from descheduler.trial import Trial
from policy.settings import Settings
from tests.unit.descheduler import build, counting
from tests.unit.descheduler.scenes import deployment, nodes


def near(app: str) -> dict[str, Any]:
    """Only where a pod of this app is."""
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "kubernetes.io/hostname"}
    return {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def trial(*objects: Any) -> tuple[Trial, dict[str, Any]]:
    state = build.state(*objects)
    return Trial(state, Settings()), {name: pod for (_, name), pod in state.pods.items()}


def test_one_that_never_fits_is_looked_for_once_and_not_per_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each node has a small pod that fits and a large one that does not, and the small one is tried first."""
    sources = [f"o{number}" for number in range(30)]
    spot = nodes(*(f"s{number}" for number in range(20)), spot=True, cpu="4")
    small, large = deployment("small", sources, cpu="100m"), deployment("large", sources, cpu="5")
    made, pods = trial(*spot, *nodes(*sources, spot=False, cpu="8"), *small, *large)
    asked = counting.calls(monkeypatch, Fitter, "fits")
    for number in range(len(sources)):
        assert not made.all((pods[f"small-{number:02}"], pods[f"large-{number:02}"]))
    assert sum(pod.metadata.name.startswith("large") for pod, _ in asked) == len(spot)
    assert made.is_hopeless(pods["large-00"])
    assert made.all((pods["small-00"],))


def test_one_that_fits_without_the_others_is_not_given_up() -> None:
    spot, sources = build.node("s0", spot=True, cpu="4"), nodes("o0", "o1", spot=False, cpu="8")
    made, pods = trial(
        spot, *sources, *deployment("small", ["o0", "o1"], cpu="2"), *deployment("large", ["o0", "o1"], cpu="3")
    )
    assert not made.all((pods["small-00"], pods["large-00"]))
    assert made.all((pods["large-01"],))


def test_one_that_waits_for_company_is_not_given_up() -> None:
    spot, sources = build.node("s0", spot=True, cpu="4"), nodes("o0", "o1", spot=False, cpu="8")
    web, side = deployment("web", ["o0", "o1"], cpu="1"), deployment("side", ["o0", "o1"], cpu="1", spec=near("web"))
    made, pods = trial(spot, *sources, *web, *side)
    assert not made.all((pods["side-00"],))
    assert made.all((pods["web-01"], pods["side-01"]))
