"""`python -m testbed`: a control plane of your own on loopback."""

import signal
import sys


def main() -> int:
    """Load the command line, which takes a moment; an interrupt before that has nothing to clean up and ends it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from testbed import command, output

    return output.lasting(command.main)


if __name__ == "__main__":
    sys.exit(main())
