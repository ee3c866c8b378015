"""The policies that fence the descheduler know our keys by the names and prefixes that the product uses."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from descheduler import removal
from policy import keys

MANIFESTS = Path(__file__).parents[3] / "manifests"
FENCE = MANIFESTS / "base" / "migrations" / "policies.yaml"
COPIES = MANIFESTS / "components" / "recreate" / "policy.yaml"
ASKED = {"maintenance", "maintenance-deadline", "rescheduling", "spot", "tier", "emergency-stop"}
"""What people ask of us: the descheduler must not ask itself."""


def policy(path: Path, name: str) -> dict[str, Any]:
    found = yaml.safe_load_all(path.read_text())
    (made,) = (it for it in found if it["metadata"]["name"] == name and it["kind"] == "ValidatingAdmissionPolicy")
    spec: dict[str, Any] = made["spec"]
    return spec


def variable(name: str) -> str:
    spec = policy(FENCE, "spotshift-descheduler-fence")
    return next(str(it["expression"]) for it in spec["variables"] if it["name"] == name)


def test_the_names_are_those_of_our_keys() -> None:
    named = set(re.findall(r"'([^']*)'", variable("names")))
    ours = {key.removeprefix(keys.DEFAULT_PREFIX) for key in keys.under().all}
    assert named < ours
    assert not named & ASKED
    assert ours > ASKED


def test_the_cleanup_may_take_back_every_key_that_it_takes_back() -> None:
    named = {name for it in ("names", "takenBack") for name in re.findall(r"'([^']*)'", variable(it))}
    assert named == {key.removeprefix(keys.DEFAULT_PREFIX) for key in removal.ours(keys.under())}


FENCES = {
    it["metadata"]["name"]: it["spec"]
    for path in (FENCE, COPIES)
    for it in yaml.safe_load_all(path.read_text())
    if it["kind"] == "ValidatingAdmissionPolicy" and "descheduler" in it["metadata"]["name"]
}


@pytest.mark.parametrize("spec", FENCES.values(), ids=FENCES.keys())
def test_every_fence_of_the_descheduler_holds_for_the_cleanup(spec: dict[str, Any]) -> None:
    """It has the same rights, bound to another account."""
    (condition,) = spec["matchConditions"]
    accounts = set(re.findall(r"'system:serviceaccount:spotshift-system:([^']*)'", condition["expression"]))
    assert accounts == {"spotshift-descheduler", "spotshift-cleanup"}


EXPRESSIONS = {
    "marks": variable("ours"),
    "copies": policy(COPIES, "spotshift-descheduler-copies")["validations"][0]["expression"],
}


@pytest.mark.parametrize("expression", EXPRESSIONS.values(), ids=EXPRESSIONS.keys())
def test_the_prefixes_are_those_that_the_settings_accept(expression: str) -> None:
    assert re.findall(r"k\.startsWith\('([^']*)'\)", expression) == [keys.DEFAULT_PREFIX]
    assert tuple(re.findall(r"!k\.contains\('([^']*)'\)", expression)) == keys.RESERVED
