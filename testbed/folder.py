"""The folder of one test bed: who may use it, what it remembers, and how it is removed.

A marker file says that the folder is ours. Nothing is ever deleted from a folder without it.
"""

import errno
import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

MARKER = "testbed.lock"
MARK = "This folder belongs to a spotshift test bed; `testbed down` removes it.\n"

OVER = "Somebody takes it down.\n"
"""Stands below that while `down` is at work."""


class Refused(Exception):
    """The folder cannot be used as asked; the message says why and what to do."""


@contextmanager
def claimed(home: Path) -> Iterator[None]:
    """Let one `up` or `down` at a time work in a folder; the kernel ends the claim with the process."""
    try:
        if home.is_dir() and any(home.iterdir()) and not is_ours(home):
            raise Refused(f"{home} is not empty and is not a test bed; choose another --dir")
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        marker = (home / MARKER).open("a+")
    except OSError as unusable:
        raise _unusable(home, unusable) from None
    with marker:
        if not _held(marker, home):
            raise Refused(f"another `up` or `down` is at work in {home}")
        if (home / MARKER).read_text() != MARK:  # one that is written stays whole, whatever happens here
            try:
                (home / MARKER).write_text(MARK)
            except OSError as unusable:  # the disk is full
                erase(home)
                raise _unusable(home, unusable) from None
        yield


def _held(marker: IO[str], home: Path) -> bool:
    """Claim the folder by its marker. `down` may have removed it since it was opened, and another `up` may have made
    a new one: a lock on the old one is a lock on nothing.
    """
    try:
        fcntl.flock(marker, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(marker.fileno()), (home / MARKER).stat())
    except (BlockingIOError, FileNotFoundError):
        return False


def resolved(home: Path) -> Path:
    """Without links, so that everybody calls the folder the same."""
    try:
        return home.resolve()
    except RuntimeError:  # how Python tells of links that lead in a circle
        raise _unusable(home, OSError(errno.ELOOP, os.strerror(errno.ELOOP))) from None


def _unusable(home: Path, why: OSError) -> Refused:
    return Refused(f"{home} cannot be used: {why.strerror}; choose another --dir")


def is_ours(home: Path) -> bool:
    """It says so; or there is nothing else in it than an empty marker, of one who ended while making it."""
    try:
        said = (home / MARKER).read_text()
        return said.startswith(MARK) or (not said and [it.name for it in home.iterdir()] == [MARKER])
    except (OSError, UnicodeDecodeError):
        return False


def say_over(home: Path) -> None:
    """Tell an `up` at work there why it loses its processes. Makes no file where there is none any more."""
    if is_ours(home):
        with suppress(OSError), (home / MARKER).open("r+") as marker:
            marker.write(MARK + OVER)


def is_over(home: Path) -> bool:
    """Whether somebody said so since the folder was claimed."""
    try:
        return (home / MARKER).read_text() == MARK + OVER
    except (OSError, UnicodeDecodeError):
        return False


def empty(home: Path) -> None:
    """Remove everything but the marker; a folder that is not ours is left as it is."""
    if not is_ours(home):
        return
    for path in home.iterdir():
        if path.name == MARKER:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def remove(home: Path) -> None:
    """Remove the folder if it is ours and nobody is starting a control plane in it."""
    if not is_ours(home):
        return
    try:
        marker = (home / MARKER).open("r+")  # makes none where another `down` was quicker
    except FileNotFoundError:
        return
    with marker:
        if _held(marker, home):  # else an `up` at work there has just lost its processes, and cleans up itself
            erase(home)


def erase(home: Path) -> None:
    """Remove a folder that the caller has claimed."""
    empty(home)
    (home / MARKER).unlink()
    with suppress(OSError):  # something is mounted there, or another `up` has just begun in it
        home.rmdir()


def write_state(home: Path, state: dict[str, Any]) -> None:
    staging = home / "state.json.new"
    staging.write_text(json.dumps(state))
    staging.replace(home / "state.json")


def read_state(home: Path) -> dict[str, Any] | None:
    """What was written last; None if nothing was, nothing that can be read, or something by somebody else."""
    if not is_ours(home):
        return None
    try:
        state = json.loads((home / "state.json").read_text())
    except (OSError, ValueError, RecursionError):
        return None
    return state if _is_state(state) else None


def _is_state(state: Any) -> bool:
    """Whether it has the shape that is written."""
    return (
        isinstance(state, dict)
        and isinstance(state.get("ready"), bool)
        and _maps_names_to(int, state.get("ports"))
        and _maps_names_to(str, state.get("binaries"))
    )


def _maps_names_to(kind: type, found: Any) -> bool:
    return isinstance(found, dict) and all(isinstance(it, kind) for it in found.values())
