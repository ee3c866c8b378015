"""How a command ends, as scripts see it."""

from enum import IntEnum


class Ending(IntEnum):
    """Exit codes. `--help` of every command lists them."""

    DONE = 0
    """Done, or printed."""
    FAILED = 1
    """It could not be done, or what was looked for is not well; standard error says why."""
    USAGE = 2
    """The command line is not accepted."""
    INCOMPLETE = 3
    """Printed, but not everything was known, or the settings are wrong; what was assumed is printed with it."""
    TIMED_OUT = 4
    """Asked for, but it did not come to its end within --timeout."""
    LEFT = 5
    """A node is drained, but pods are left on it whose owners keep them there; they are printed."""
    INTERRUPTED = 130
    """Ctrl-C."""
