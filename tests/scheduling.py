"""Which tests are run by one worker: those that share a control plane, so that it is started once; and the order.

Without it a worker that has nothing left takes half of the tests of another, and starts their control plane again.
"""

import itertools
from collections import OrderedDict
from collections.abc import Collection, Iterable
from pathlib import Path, PurePosixPath
from typing import Any

from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

ROOT = Path(__file__).parent.parent
PACKAGE_FIXTURE = 'scope="package"'
APART = "pytest.mark.apart"
"""In a file whose tests have nothing in common but the control plane of all: some of them wait for a minute."""
OWN = ("bed.up(", 'scope="module"')
"""In a file that makes something for itself before it tests it."""


def shared(root: Path) -> frozenset[str]:
    """Folders whose tests share something that costs seconds to make."""
    found = (it for it in (root / "tests").rglob("conftest.py") if PACKAGE_FIXTURE in it.read_text())
    return frozenset(it.parent.relative_to(root).as_posix() for it in found)


def apart(root: Path) -> frozenset[str]:
    """Files whose tests any worker may run, one by one."""
    return _holding(root, APART)


def long(root: Path) -> frozenset[str]:
    """Files that take long, because they make a control plane or the like, or hold what waits long."""
    return _holding(root, APART, *OWN)


def _holding(root: Path, *texts: str) -> frozenset[str]:
    """Files of integration tests that hold one of these."""
    found = ((it, it.read_text()) for it in (root / "tests" / "integration").rglob("test_*.py"))
    return frozenset(it.relative_to(root).as_posix() for it, said in found if any(text in said for text in texts))


def scope(nodeid: str, folders: Iterable[str], files: Collection[str] = ()) -> str:
    """The folder of a test if that is shared, the test itself if it is one of these files, else its file."""
    file = PurePosixPath(_file(nodeid))
    if str(file) in files:
        return nodeid
    above = [str(it) for it in file.parents if str(it) in folders]
    return above[-1] if above else str(file)


def in_turns(scopes: Collection[str], folders: Collection[str], files: Collection[str] = ()) -> list[str]:
    """End-to-end tests keep the processors busy and integration tests wait, so they take turns. Among these, folders
    that share a control plane take longest and come first, then `files` that take long: what is short fills the gaps
    at the end. Unit tests, where they run with the others, come last.
    """
    busy = [it for it in scopes if it.startswith("tests/e2e/")]
    waiting = [it for it in scopes if it.startswith("tests/integration/")]
    waiting.sort(key=lambda it: (it not in folders, _file(it) not in files))
    turns = [it for pair in itertools.zip_longest(busy, waiting) for it in pair if it is not None]
    return turns + [it for it in scopes if it not in {*busy, *waiting}]


def _file(nodeid: str) -> str:
    return nodeid.partition("::")[0]


class ByControlPlane(LoadScopeScheduling):  # type: ignore[misc]
    """Hands tests out by scope, in turns."""

    folders: frozenset[str] = shared(ROOT)
    files: frozenset[str] = apart(ROOT)
    first: frozenset[str] = long(ROOT)
    workqueue: OrderedDict[str, dict[str, bool]]

    def _split_scope(self, nodeid: str) -> str:
        return scope(nodeid, self.folders, self.files)

    def _assign_work_unit(self, node: Any) -> None:
        if not any(self.assigned_work.values()):  # the first of all: the queue is as tests were found
            ordered = in_turns(self.workqueue, self.folders, self.first)
            self.workqueue = OrderedDict((it, self.workqueue[it]) for it in ordered)
        super()._assign_work_unit(node)
