"""Structured logs: one line per event of the catalogue, as JSON or for a terminal, the same keys everywhere.

Touches the given stream and nothing else. A line that breaks the rules of the catalogue raises where `strict`
is set (in every test); in production it is written without the offending part, and LOG_REFUSED says so,
because a log must never bring down what it describes.
"""

import json
import logging
import threading
import traceback
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final, Literal, TextIO

from telemetry import catalogue, scrub
from telemetry.catalogue import Log

Format = Literal["json", "console"]
Line = Mapping[str, scrub.Plain]
Sink = Callable[[Line], None]

LEVELS: Final = {"info": logging.INFO, "debug": logging.DEBUG}
"""What a program can be asked for: what happens, and what else it looks at."""

_FIRST: Final = ("time", "level", "event", "message")
_ALLOWED: Final = {entry: frozenset(entry.value.fields) | catalogue.EVERYWHERE for entry in Log}


class MisuseError(Exception):
    """A caller broke the catalogue; only raised by strict loggers."""


class Logger:
    """Immutable; `bind` gives a new one. Safe to use from any thread if the sink is."""

    __slots__ = ("_bound", "_level", "_now", "_sink", "_strict")

    def __init__(
        self,
        sink: Sink,
        *,
        now: Callable[[], datetime],
        strict: bool,
        level: int = logging.INFO,
        bound: Mapping[str, scrub.Plain] | None = None,
    ) -> None:
        self._sink = sink
        self._now = now
        self._strict = strict
        self._level = level
        self._bound = dict(bound or {})

    def bind(self, **fields: object) -> "Logger":
        """A logger that puts these keys on all its lines; only keys that make sense on every line."""
        clean = {n: v for n, v in self._clean("bind", fields, catalogue.EVERYWHERE).items() if v is not None}
        return Logger(self._sink, now=self._now, strict=self._strict, level=self._level, bound=self._bound | clean)

    def writes(self, event: Log) -> bool:
        """Whether such a line would be written, for whoever has to work for its fields."""
        return event.value.level >= self._level

    def emit(self, event: Log, **fields: object) -> None:
        """Write one line. The level and the message are the catalogue's; None means absent."""
        allowed = _ALLOWED.get(event)
        if allowed is None:
            self._refuse(f"{event!r} is not in the catalogue")
            return
        if event.value.level < self._level:
            if self._strict:
                self._clean(event.name, fields, allowed)
            return
        self._write(event, self._clean(event.name, fields, allowed))

    def _clean(self, name: str, fields: Mapping[str, object], allowed: frozenset[str]) -> dict[str, scrub.Plain]:
        clean: dict[str, scrub.Plain] = {}
        for key, value in fields.items():
            if key not in allowed:
                self._refuse(f"{name} has no field {key}")
                continue
            try:
                clean[key] = _value(key, value)
            except scrub.RefusedError as refusal:
                self._refuse(f"{name}.{key}: {refusal}")
        return clean

    def _refuse(self, detail: str) -> None:
        if self._strict:
            raise MisuseError(detail)
        self._write(Log.LOG_REFUSED, {"detail": scrub.text(detail)})

    def _write(self, event: Log, fields: Mapping[str, scrub.Plain]) -> None:
        line: dict[str, scrub.Plain] = {
            "time": self._now().astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": logging.getLevelName(event.value.level).lower(),
            "event": event.name,
            "message": event.value.message,
        }
        line |= self._bound
        line |= {key: value for key, value in fields.items() if value is not None}
        self._sink(line)


def _value(key: str, value: object) -> scrub.Plain:
    if key == "settings":
        return scrub.flat(value)
    if isinstance(value, BaseException) and key == "error":
        return scrub.error(value)
    if isinstance(value, BaseException) and key == "traceback":
        return scrub.tail("".join(traceback.format_exception(value)))
    if key == "traceback" and isinstance(value, str):
        return scrub.tail(value)
    return scrub.plain(value)


def stream_sink(stream: TextIO, shape: Format) -> Sink:
    """One write per line under a lock, so lines of threads do not mix. A reader that went away is not our failure."""
    lock = threading.Lock()
    render = render_json if shape == "json" else render_console

    def write(line: Line) -> None:
        rendered = render(line) + "\n"
        with lock:
            try:
                stream.write(rendered)
                stream.flush()
            except (OSError, ValueError):
                return

    return write


def render_json(line: Line) -> str:
    """Compact, one line, plain ASCII: newlines inside values are escaped, so a value cannot forge a line."""
    return json.dumps(line, separators=(",", ":"), ensure_ascii=True, allow_nan=False, default=str)


def render_console(line: Line) -> str:
    """Time, level, message, then key=value pairs in the order they were given."""
    rest = " ".join(f"{key}={_quoted(value)}" for key, value in line.items() if key not in _FIRST)
    head = f"{line['time']} {str(line['level']).upper():<7} {line['message']}"
    return f"{head}  {rest}" if rest else head


def _quoted(value: scrub.Plain) -> str:
    if isinstance(value, str) and value and value.isprintable() and not set(value) & set(' "='):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


class LibraryHandler(logging.Handler):
    """Brings warnings of libraries (urllib3, gunicorn, werkzeug) into the same form; give it to the root logger."""

    def __init__(self, log: Logger, level: int = logging.WARNING) -> None:
        super().__init__(level)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """The message of a library is not constant, so it is a field and not the message."""
        try:
            detail = record.getMessage()
        except (TypeError, ValueError):
            detail = str(record.msg)
        self._log.emit(Log.LIBRARY, logger=record.name, detail=detail)
