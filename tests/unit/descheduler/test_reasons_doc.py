"""The page of reasons is the one that codes and guards make."""

import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

import msgspec
import pytest

from descheduler import reasons_doc, remedies
from descheduler.fit import FitCode
from descheduler.guards import GUARDS
from descheduler.reasons import Code
from policy import settings_doc
from policy.mistakes import at
from policy.settings import Settings
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


@pytest.mark.parametrize(("closed_set", "told"), [(Code, remedies.OF_CODES), (FitCode, remedies.OF_FITS)])
def test_every_code_says_what_one_can_do(closed_set: type[StrEnum], told: Mapping[StrEnum, str]) -> None:
    assert list(told) == list(closed_set)
    assert all(text.endswith(".") and "|" not in text for text in told.values())


def test_what_one_can_do_names_settings_that_exist() -> None:
    """A word with dots or in camelCase is the path of a setting, or a word of Kubernetes that is listed here."""
    theirs = {
        "maxUnavailable",
        "maxSkew",
        "schedulerName",
        "backoffLimit",
        "spec.mode",
        "spec.replicas",
        "spec.targetNode",
    }
    kinds = {"DisruptionTarget", "ScheduleAnyway", "ReadWriteMany"}
    paths = {at(path, field) for path, kind in settings_doc._groups("", Settings) for field in fields_of(kind)}
    quoted = {
        word.partition(":")[0]
        for text in (*remedies.OF_CODES.values(), *remedies.OF_FITS.values())
        for word in re.findall(r"`([\w.]+(?:: \w+)?)`", text)
        if re.search(r"\.|[a-z][A-Z]", word)
    }
    assert quoted, "settings are named"
    assert quoted - theirs - kinds <= paths


def fields_of(kind: type[msgspec.Struct]) -> list[str]:
    return [field.encode_name for field in msgspec.structs.fields(kind)]


def test_every_code_can_be_counted() -> None:
    assert {code.value for code in Code} <= LABELS["reason"]


def test_every_guard_says_why() -> None:
    assert all((guard.check.__doc__ or "").strip().endswith(".") for guard in GUARDS)
