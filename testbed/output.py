"""What is printed on a way that may end before the command does: a closed pipe, a full disk, a terminal that is gone.

Whoever installs or takes down is not to stop half way because nobody reads on. So the rest goes nowhere, and only
at the end it is told what could not be written. A reader who has seen enough, such as `head`, is no failure.
"""

import io
import os
import sys
from collections.abc import Callable
from typing import Any, TextIO


class _Lasting(io.FileIO):
    """A descriptor that takes whatever is written; `failure` says why it goes nowhere."""

    failure: OSError | None = None

    def write(self, data: Any) -> int | None:  # type: ignore[override]
        try:
            return super().write(data)
        except OSError as failure:
            self.failure = failure
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            return len(data)


def lasting(run: Callable[[], int]) -> int:
    """The exit code of a command that does its work whoever reads; 1 if what it printed could not be kept."""
    out = _replaced("stdout")
    _replaced("stderr")
    try:
        code = run()
    except SystemExit as ended:  # usage and help
        code = ended.code if isinstance(ended.code, int) else 1
    if out is None:
        return code
    sys.stdout.flush()
    if out.failure is None or isinstance(out.failure, BrokenPipeError):
        return code
    sys.stderr.write(f"error: standard output: {out.failure.strerror}\n")
    return code or 1


def _replaced(name: str) -> _Lasting | None:
    """None if it was closed from the start."""
    before: TextIO | None = getattr(sys, name)
    if not isinstance(before, io.TextIOWrapper):
        return None
    before.flush()
    lasting = _Lasting(before.fileno(), "w", closefd=False)
    after = io.TextIOWrapper(
        io.BufferedWriter(lasting),
        encoding=before.encoding,
        errors=before.errors,
        line_buffering=before.line_buffering,
        write_through=before.write_through,
    )
    setattr(sys, name, after)
    return lasting
