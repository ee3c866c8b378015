"""Lines are complete, ordered, honest about refusals, and the same for machines and people."""

import io
import json
import logging
import threading
from datetime import UTC, datetime
from typing import Any

import pytest

from telemetry import logs
from telemetry.catalogue import Log

NOW = datetime(2026, 11, 16, 3, 20, 24, 123456, tzinfo=UTC)


def make(*, strict: bool = True, level: int = logging.DEBUG) -> tuple[logs.Logger, list[dict[str, Any]]]:
    lines: list[dict[str, Any]] = []
    return logs.Logger(lambda line: lines.append(dict(line)), now=lambda: NOW, strict=strict, level=level), lines


def test_a_line_carries_time_level_event_message_and_its_fields() -> None:
    log, lines = make()
    log.bind(component="descheduler", migration="m-1").emit(
        Log.MIGRATION_STARTED, strategy="NodeMaintenance", sourceNode="a", targetNode="b", mode=None
    )
    assert lines == [
        {
            "time": "2026-11-16T03:20:24.123Z",
            "level": "info",
            "event": "MIGRATION_STARTED",
            "message": "migration started",
            "component": "descheduler",
            "migration": "m-1",
            "strategy": "NodeMaintenance",
            "sourceNode": "a",
            "targetNode": "b",
        }
    ]


MISUSES = {
    "unknown field": {"strategie": "x"},
    "field of another event": {"newPod": "x"},
    "whole object": {"strategy": {"metadata": {}}},
    "bytes": {"strategy": b"x"},
}


@pytest.mark.parametrize("fields", MISUSES.values(), ids=MISUSES.keys())
def test_misuse_is_raised_in_tests(fields: dict[str, object]) -> None:
    log, lines = make()
    with pytest.raises(logs.MisuseError):
        log.emit(Log.EVICTED, **fields)
    assert lines == []


@pytest.mark.parametrize("fields", MISUSES.values(), ids=MISUSES.keys())
def test_misuse_is_told_and_survived_in_production(fields: dict[str, object]) -> None:
    log, lines = make(strict=False)
    log.emit(Log.EVICTED, sourceNode="a", **fields)
    assert [line["event"] for line in lines] == ["LOG_REFUSED", "EVICTED"]
    assert lines[1]["sourceNode"] == "a"
    assert not set(fields) & set(lines[1])


def test_misuse_is_raised_even_below_the_level() -> None:
    log, _ = make(level=logging.ERROR)
    with pytest.raises(logs.MisuseError):
        log.emit(Log.EVICTED, nonsense=1)


def test_an_event_outside_the_catalogue_is_refused() -> None:
    log, _ = make()
    unknown: Any = "EVICTED"
    with pytest.raises(logs.MisuseError):
        log.emit(unknown)
    lenient, lines = make(strict=False)
    lenient.emit(unknown)
    assert [line["event"] for line in lines] == ["LOG_REFUSED"]


def test_only_keys_for_every_line_can_be_bound() -> None:
    log, _ = make()
    with pytest.raises(logs.MisuseError):
        log.bind(sourceNode="a")


@pytest.mark.parametrize(("level", "expected"), [("info", [True, False]), ("debug", [True, True])])
def test_what_would_be_written_can_be_asked(level: str, expected: list[bool]) -> None:
    log, lines = make(level=logs.LEVELS[level])
    assert [log.writes(event) for event in (Log.STOPPED, Log.PASS_STARTED)] == expected
    log.emit(Log.PASS_STARTED)
    assert bool(lines) is expected[1]


def test_the_level_filters() -> None:
    log, lines = make(level=logging.WARNING)
    log.emit(Log.EVICTED, sourceNode="a")
    log.emit(Log.TIMED_OUT, step="Evict")
    assert [line["event"] for line in lines] == ["TIMED_OUT"]


def test_settings_and_errors() -> None:
    log, lines = make()
    log.emit(Log.STARTING, version="0.1", settings={"a.b": 1, "password": "Bearer abcdefgh12345"})
    assert lines[0]["settings"] == {"a.b": 1, "password": "[redacted]"}
    try:
        int("boom\nsecret body")
    except ValueError as error:
        log.emit(Log.INTERNAL_ERROR, error=error, traceback=error)
    assert lines[1]["error"] == "ValueError: invalid literal for int() with base 10: 'boom\\nsecret body'"
    assert "test_settings_and_errors" in lines[1]["traceback"]


def test_json_is_one_line_whatever_the_value_holds() -> None:
    stream = io.StringIO()
    log = logs.Logger(logs.stream_sink(stream, "json"), now=lambda: NOW, strict=True)
    log.emit(Log.EVICTED, sourceNode='a\n{"event":"FORGED"}', strategy="\u2028")
    assert stream.getvalue().count("\n") == 1
    assert json.loads(stream.getvalue())["sourceNode"] == 'a\n{"event":"FORGED"}'
    assert stream.getvalue().isascii()


def test_console() -> None:
    stream = io.StringIO()
    log = logs.Logger(logs.stream_sink(stream, "console"), now=lambda: NOW, strict=True)
    log.emit(Log.EVICTED, sourceNode="a b\n", strategy="X")
    assert stream.getvalue() == '2026-11-16T03:20:24.123Z INFO    evicted  sourceNode="a b\\n" strategy=X\n'


class Broken(io.StringIO):
    def write(self, _text: str) -> int:
        raise BrokenPipeError


def test_a_reader_that_went_away_is_no_failure() -> None:
    log = logs.Logger(logs.stream_sink(Broken(), "json"), now=lambda: NOW, strict=True)
    log.emit(Log.EVICTED, sourceNode="a")


def test_lines_of_threads_do_not_mix() -> None:
    stream = io.StringIO()
    log = logs.Logger(logs.stream_sink(stream, "json"), now=lambda: NOW, strict=True)

    def speak() -> None:
        for _ in range(50):
            log.emit(Log.EVICTED, sourceNode="n" * 500)

    threads = [threading.Thread(target=speak) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([json.loads(line) for line in stream.getvalue().splitlines()]) == 200


def test_libraries_speak_through_the_same_lines() -> None:
    log, lines = make()
    handler = logs.LibraryHandler(log)
    library = logging.getLogger("some.library")
    library.addHandler(handler)
    library.propagate = False
    try:
        library.warning("connection to %s lost, header was %s", "host", "Bearer abcdefgh12345")
        library.info("not worth it")
        library.error("broken %d", "format")
    finally:
        library.removeHandler(handler)
    assert [line["detail"] for line in lines] == [
        "connection to host lost, header was [redacted]",
        "broken %d",
    ]
    assert {line["logger"] for line in lines} == {"some.library"}
