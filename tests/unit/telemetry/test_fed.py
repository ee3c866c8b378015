"""No metric rots: each one that is declared is fed by the product."""

import re
from pathlib import Path

import pytest

from telemetry.metrics import Metric

ROOT = Path(__file__).parents[3]
PRODUCT = ("cluster", "descheduler", "serving", "webhook", "extender", "certs", "telemetry")
DECLARED = ROOT / "telemetry" / "metrics.py"


@pytest.fixture(scope="module")
def used() -> set[str]:
    files = [path for part in PRODUCT for path in (ROOT / part).rglob("*.py") if path != DECLARED]
    return {name for path in files for name in re.findall(r"\bMetric\.([A-Z_]+)\b", path.read_text())}


@pytest.mark.parametrize("metric", list(Metric), ids=lambda metric: metric.name)
def test_some_code_feeds_it(metric: Metric, used: set[str]) -> None:
    assert metric.name in used
