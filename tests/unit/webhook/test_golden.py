"""Every file under tests/golden/webhook is one case: what comes in, and what was written down by hand to come out."""

import base64
import json
from pathlib import Path

import jsonpatch
import pytest

from tests.unit.webhook import building, cases
from tests.unit.webhook.cases import Case
from webhook import mutate
from webhook.handle import handle
from webhook.reasons import Note, Result, Skip
from webhook.view import View


@pytest.mark.parametrize(
    "path", cases.FILES, ids=[str(path.relative_to(cases.ROOT).with_suffix("")) for path in cases.FILES]
)
def test_case(path: Path) -> None:
    case = cases.load(path)
    view, expected = cases.view_of(case), case["expect"]
    body = cases.body_of(case, case["pod"])
    outcome = handle(body, view, building.NOW)
    assert outcome.status == 200
    response = json.loads(outcome.body)["response"]
    assert response["allowed"] is True
    patch = json.loads(base64.b64decode(response["patch"])) if "patch" in response else []
    assert patch == expected["patch"]
    assert outcome.result.value == expected["decision"]
    assert response["auditAnnotations"]["decision"] == expected["decision"]
    assert [*outcome.skips, *outcome.notes] == expected["reasons"]
    assert response.get("warnings", []) == expected.get("warnings", [])
    assert_intent(case, view, expected)
    if patch:
        patched = jsonpatch.apply_patch(case["pod"], patch)
        again = handle(cases.body_of(case, patched), view, building.NOW)
        assert again.result is Result.UNCHANGED


def assert_intent(case: Case, view: View, expected: Case) -> None:
    request = {"namespace": (case.get("namespace") or {}).get("name", "shop"), **case.get("request", {})}
    decision = mutate.decide(building.parsed(case["pod"], **request), view, building.NOW)
    assert list(decision.migration_ids) == expected.get("migrations", [])
    for name, (value, level, key) in expected.get("intent", {}).items():
        assert decision.placed is not None
        assert getattr(decision.placed.intent, name) == value
        assert (decision.placed.origins[name].level, decision.placed.origins[name].key) == (level, key)


def test_every_reason_has_a_case() -> None:
    seen = {reason for path in cases.FILES for reason in cases.load(path)["expect"]["reasons"]}
    assert seen == {reason.value for closed_set in (Skip, Note) for reason in closed_set}


def test_every_case_says_why() -> None:
    assert all(cases.load(path)["why"].endswith(".") for path in cases.FILES)
