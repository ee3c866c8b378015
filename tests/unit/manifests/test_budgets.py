"""Our own budgets never keep a node from being drained, however few replicas somebody runs."""

from pathlib import Path
from typing import Any

import pytest
import yaml

MANIFESTS = Path(__file__).parents[3] / "manifests"
FOLDERS = ("base", "components")


def budgets() -> dict[str, dict[str, Any]]:
    paths = [path for folder in FOLDERS for path in sorted((MANIFESTS / folder).rglob("*.yaml"))]
    documents = [it for path in paths for it in yaml.safe_load_all(path.read_text()) if isinstance(it, dict)]
    return {it["metadata"]["name"]: it["spec"] for it in documents if it.get("kind") == "PodDisruptionBudget"}


def test_every_program_with_replicas_has_one() -> None:
    assert set(budgets()) == {"spotshift-descheduler", "spotshift-webhook", "spotshift-extender"}


@pytest.mark.parametrize("name", budgets())
def test_one_replica_can_always_be_drained(name: str) -> None:
    """With `minAvailable: 1` the only replica could not be evicted, and a drain of its node would wait for ever."""
    spec = budgets()[name]
    assert (spec.get("maxUnavailable"), "minAvailable" in spec) == (1, False)
