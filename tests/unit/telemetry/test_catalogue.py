"""The catalogue is closed, consistent and documented."""

import re
from pathlib import Path

import pytest

from telemetry import catalogue, metrics
from telemetry.catalogue import EVERYWHERE, FIELDS, Log

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("event", list(Log), ids=lambda event: event.name)
def test_every_line_uses_documented_fields_and_a_constant_message(event: Log) -> None:
    entry = event.value
    assert set(entry.fields) <= set(FIELDS)
    assert not set(entry.fields) & EVERYWHERE, "what every line may carry need not be named again"
    assert len(set(entry.fields)) == len(entry.fields)
    assert re.fullmatch(r"[a-z][a-zA-Z ,]+", entry.message), "a message holds no value and no placeholder"
    assert entry.meaning.endswith(".")


def test_every_field_is_used() -> None:
    used = {name for event in Log for name in event.value.fields} | EVERYWHERE
    assert used == set(FIELDS)


def test_messages_are_unique() -> None:
    messages = [event.value.message for event in Log]
    assert len(set(messages)) == len(messages)


PROMISED = {
    Log.STARTING: {"settings"},
    Log.PASS_FINISHED: {"moves", "refusals", "seconds"},
    Log.MIGRATION_STARTED: {"strategy", "sourceNode", "targetNode"},
    Log.HINT_PUBLISHED: {"preferredNode", "avoidNode"},
    Log.REPLACEMENT_READY: {"newPod", "targetNode"},
}


@pytest.mark.parametrize(("event", "fields"), PROMISED.items(), ids=lambda value: getattr(value, "name", ""))
def test_promised_fields(event: Log, fields: set[str]) -> None:
    assert fields <= set(event.value.fields)


@pytest.mark.parametrize(
    ("page", "rendered"),
    [("docs/logs.md", catalogue.markdown), ("docs/metrics.md", metrics.markdown)],
    ids=["logs", "metrics"],
)
def test_pages_are_up_to_date(page: str, rendered: "object") -> None:
    assert callable(rendered)
    assert (ROOT / page).read_text(encoding="utf-8") == rendered(), "run `python -m telemetry docs`"
