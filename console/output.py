"""Standard output that says of itself that it takes no more: a disk that is full is no fault of what was printed.

A reader that has gone is something else: it has seen enough.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any, TextIO, cast


class Refused(Exception):
    """Why nothing can be written."""


class _Output:
    """A stream, and whose fault it is if it fails."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """As the stream does."""
        with _blamed():
            return self._stream.write(text)

    def flush(self) -> None:
        """As the stream does."""
        with _blamed():
            self._stream.flush()


@contextlib.contextmanager
def told(stream: TextIO | None) -> Iterator[None]:
    """For the time of the block. What is written last fails at its end, and not only when the interpreter ends.

    Python has no stream where it was closed, and the next file that is opened would be taken for it.
    """
    if stream is None:
        raise Refused("it is closed")
    watched = cast("TextIO", _Output(stream))
    with contextlib.redirect_stdout(watched):
        try:
            yield
        finally:
            watched.flush()


def discard(stream: TextIO | None) -> None:
    """Let go of what was not written, which would be tried again when the interpreter ends."""
    if stream is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextlib.contextmanager
def _blamed() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as failed:
        raise Refused(failed.strerror or str(failed)) from failed
