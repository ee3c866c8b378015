"""The standard output of commands, which may end before they do."""

import os
import sys
from collections.abc import Callable


def printed(write: Callable[[], object], code: int = 0) -> int:
    """The exit code of a command whose last act is `write`: `code` if all of it came through.

    A reader who has seen enough, such as `head`, is no failure; a full disk is one.
    """
    try:
        write()
        if sys.stdout is not None:  # None if it was closed from the start
            sys.stdout.flush()  # what cannot be written is noticed here, not when the interpreter ends
    except BrokenPipeError:
        _leave()
        return 0
    except OSError as failure:
        _leave()
        sys.stderr.write(f"error: standard output: {failure.strerror}\n")
        return 1
    return code


def say(line: str) -> None:
    """One line of a command that changes something and finishes that whoever reads; the rest goes nowhere then."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        _leave()
    except OSError as failure:
        _leave()
        sys.stderr.write(f"error: standard output: {failure.strerror}\n")


def _leave() -> None:
    """What is still kept back goes nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
