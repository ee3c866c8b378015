"""What a leader says of its last pass, written and read."""

from datetime import UTC, datetime

import pytest

from descheduler import last_pass
from descheduler.last_pass import KEY, LastPass

AT = datetime(2026, 6, 1, 12, tzinfo=UTC)


def test_what_is_written_is_read() -> None:
    found = LastPass(AT, 0.25, 3, 4, "observe", "emergency stop", "example.com")
    assert last_pass.read(last_pass.notes(found)) == found


def test_nothing_before_the_first_pass() -> None:
    assert last_pass.notes(None) == {}


BAD = {"nothing": {}, "not json": {KEY: "{"}, "no time": {KEY: '{"moves":1}'}, "another type": {KEY: '"x"'}}


@pytest.mark.parametrize("annotations", BAD.values(), ids=BAD.keys())
def test_what_cannot_be_read_is_not_known(annotations: dict[str, str]) -> None:
    assert last_pass.read(annotations) is None
