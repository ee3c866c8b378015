"""What holds for all tests."""

import gc
from typing import Any

import hypothesis
import pytest

from tests import effort
from tests.scheduling import ByControlPlane

# No deadline: how long an example takes says more about the machine than about the code.
hypothesis.settings.register_profile(
    "spotshift",
    deadline=None,
    max_examples=effort.many(50),
    derandomize=effort.EFFORT <= 1,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("spotshift")


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByControlPlane | None:
    """Asked for by `--dist loadscope`."""
    return ByControlPlane(config, log) if config.getvalue("dist") == "loadscope" else None


def pytest_configure() -> None:
    """Thousands of tests are made while they are found, and none is thrown away."""
    gc.disable()


def pytest_collection_finish() -> None:
    """They stay until the end: no collection of garbage has to look at them again."""
    gc.freeze()
    gc.enable()
