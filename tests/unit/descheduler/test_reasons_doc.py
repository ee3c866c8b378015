"""The page of reasons is the one that codes and guards make."""

from enum import StrEnum
from pathlib import Path

import pytest

from descheduler import reasons_doc
from descheduler.fit import FitCode
from descheduler.guards import GUARDS
from descheduler.reasons import Code
from telemetry.metrics import LABELS

PAGE = Path(__file__).parents[3] / "docs" / "reasons.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == reasons_doc.markdown()


@pytest.mark.parametrize("closed_set", [Code, FitCode])
def test_every_code_says_what_it_means(closed_set: type[StrEnum]) -> None:
    told = reasons_doc.meanings(closed_set)
    assert list(told) == [member.name for member in closed_set]
    assert all(text.endswith(".") for text in told.values())
    assert all(f"| `{member.value}` | {told[member.name]} |" in reasons_doc.markdown() for member in closed_set)


def test_every_code_can_be_counted() -> None:
    assert {code.value for code in Code} <= LABELS["reason"]


def test_every_guard_says_why() -> None:
    assert all((guard.check.__doc__ or "").strip().endswith(".") for guard in GUARDS)
