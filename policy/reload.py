"""Notices that the settings file changed, and keeps the last good version.

Asked by its owner as often as that likes: no clock, no thread, no logging. A ConfigMap mount swaps a symbolic
link from one complete folder to the next, so what a link newly leads to is complete and taken at once. Any other
file may still be half written, also a new one (some editors remove the old file, make a new one and then fill it),
and half a document can be a valid one: it is taken when two polls in a row have seen the same file with the same
bytes. The same goes for a file that is gone, which it may be only for a moment.

Another `labelPrefix` is not taken: moves under way have marked pods and workloads under the one in force, and would
neither find nor remove these.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from policy import settings_load
from policy.documents import LIMIT_BYTES
from policy.mistakes import InvalidSettings, Mistake
from policy.settings import Settings


@dataclass(frozen=True, slots=True)
class Unchanged:
    """Nothing new, or not yet settled."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A new good version; it is now the one in force."""

    settings: Settings


@dataclass(frozen=True, slots=True)
class Rejected:
    """A new bad version, told once; the one before stays in force."""

    mistakes: tuple[Mistake, ...]


Outcome = Unchanged | Loaded | Rejected


@dataclass(frozen=True, slots=True)
class _Seen:
    """One look at the file: which file it was, and what it held; None if it could not be read."""

    identity: tuple[str, int, int]
    content: bytes | None
    problem: str = ""


class SettingsFile:
    """The settings file at a path, and what is known of it."""

    def __init__(self, path: Path) -> None:
        """Nothing is read before the first `poll`."""
        self._path = path
        self._settings: Settings | None = None
        self._mistakes: tuple[Mistake, ...] = ()
        self._judged: _Seen | None = None
        self._last: _Seen | None = None

    @property
    def settings(self) -> Settings | None:
        """The last good version; None before there was one."""
        return self._settings

    @property
    def mistakes(self) -> tuple[Mistake, ...]:
        """What is wrong with the file as it was last judged; empty while it is the version in force."""
        return self._mistakes

    def poll(self) -> Outcome:
        """Look once."""
        seen = _look(self._path)
        previous, self._last = self._last, seen
        if seen is None:
            return Unchanged()
        if not self._is_new(seen) or not (self._judged is None or _is_settled(seen, previous)):
            return Unchanged()
        self._judged = seen
        return self._judge(seen)

    def _is_new(self, seen: _Seen) -> bool:
        judged = self._judged
        return judged is None or (seen.content, seen.problem) != (judged.content, judged.problem)

    def _judge(self, seen: _Seen) -> Outcome:
        try:
            self._settings = _succeeding(self._settings, _parse(self._path, seen))
        except InvalidSettings as refusal:
            self._mistakes = refusal.mistakes
            return Rejected(refusal.mistakes)
        self._mistakes = ()
        return Loaded(self._settings)


def _is_settled(seen: _Seen, previous: _Seen | None) -> bool:
    if previous is None:
        return False
    readable = seen.content is not None and previous.content is not None
    swapped = readable and seen.identity[0] != previous.identity[0]
    return swapped or seen == previous


def _look(path: Path) -> _Seen | None:
    """What the file holds; None if it changed while it was read."""
    try:
        with path.open("rb") as file:
            before = os.fstat(file.fileno())
            content = file.read(LIMIT_BYTES + 1)
            after = os.fstat(file.fileno())
    except OSError as error:
        return _Seen(("", 0, 0), None, error.strerror or type(error).__name__)
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        return None
    return _Seen((str(path.resolve()), after.st_dev, after.st_ino), content)


def _succeeding(old: Settings | None, new: Settings) -> Settings:
    """The new version, unless it cannot follow the old one while a process runs."""
    if old is None or new.label_prefix == old.label_prefix:
        return new
    hint = "another one takes a restart of all programs, at a time without open moves"
    raise InvalidSettings([Mistake("labelPrefix", repr(new.label_prefix), repr(old.label_prefix), hint)])


def _parse(path: Path, seen: _Seen) -> Settings:
    if seen.content is None:
        raise InvalidSettings([Mistake("", f"{seen.problem}: {path}", "a file that can be read")])
    try:
        text = seen.content.decode()
    except UnicodeDecodeError as error:
        where = f"byte {error.start} of {path}"
        raise InvalidSettings([Mistake("", where, "YAML text in UTF-8")]) from error
    return settings_load.load(text)
