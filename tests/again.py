"""A second go for the few tests that failed in a parallel run: one after the other, with the machine to themselves.

Several workers and their control planes share two cores, so now and then a bound is missed by a test that holds it
otherwise. Such a test is named in red and has to pass alone; one that fails again, or many that fail at once, fail
the run. What was no test (a skip, a secret in a log, a crash) gets no second go, nor does a run under random
misfortune: an invariant that was broken once is broken.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

FAILED = tuple(Path(it, "v", "cache", "lastfailed") for it in (".pytest_cache", ".pytest_cache/unit"))
"""Where pytest keeps the tests that failed when they ran last: those of the cluster, and unit tests beside them."""
ONCE = ("tests/e2e/test_chaos.py",)
"""What fails there is no missed bound."""
FEW = 5
"""More than that is a broken build, not a busy machine."""


def chosen(failed: Mapping[str, bool]) -> tuple[str, ...]:
    """The tests to run again; none means that the run stays failed. A file without tests could not be imported."""
    tests = tuple(sorted(failed))
    bounds = all("::" in it and not it.startswith(ONCE) for it in tests)
    return tests if len(tests) <= FEW and bounds else ()


def main(arguments: Sequence[str]) -> int:
    """Its exit code is that of the whole run. Arguments go to pytest."""
    failed = (json.loads(it.read_text()) for it in FAILED if it.exists())
    tests = chosen({name: True for found in failed for name in found})
    if not tests:
        sys.stdout.write("\nno second go: too much failed, or something else than a test\n")
        return pytest.ExitCode.TESTS_FAILED
    lines = "\n".join(f"  {it}" for it in tests)
    sys.stdout.write(f"\nfailed beside other tests, and run again alone ({len(tests)}):\n{lines}\n")
    sys.stdout.flush()
    return pytest.main([*arguments, *tests])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
