"""`kubectl-spotshift`, `python -m console`: loads the program, which takes a moment, and runs it."""

import sys
from collections.abc import Sequence

from console import loading


def plugin() -> None:
    """What `kubectl-spotshift` runs."""
    _run(sys.argv[1:])


def complete() -> None:
    """What `kubectl_complete-spotshift` runs: kubectl's own completion asks it."""
    _run(["__complete", *sys.argv[1:]])


def _run(arguments: Sequence[str]) -> None:
    with loading.ended_by_an_interrupt():
        from console import program
    sys.exit(program.main(arguments))


if __name__ == "__main__":
    plugin()
