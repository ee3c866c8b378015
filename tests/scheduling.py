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


def shared(root: Path) -> frozenset[str]:
    """Folders whose tests share something that costs seconds to make."""
    found = (it for it in (root / "tests").rglob("conftest.py") if PACKAGE_FIXTURE in it.read_text())
    return frozenset(it.parent.relative_to(root).as_posix() for it in found)


def scope(nodeid: str, folders: Iterable[str]) -> str:
    """The folder of a test if that is shared, else its file."""
    file = PurePosixPath(nodeid.partition("::")[0])
    above = [str(it) for it in file.parents if str(it) in folders]
    return above[-1] if above else str(file)


def in_turns(scopes: Collection[str], folders: Collection[str]) -> list[str]:
    """End-to-end tests keep the processors busy and integration tests wait, so they take turns; among these, folders
    that share a control plane take longest and come first. Unit tests, where they run with the others, fill the gaps
    at the end.
    """
    busy = [it for it in scopes if it.startswith("tests/e2e/")]
    waiting = [it for it in scopes if it.startswith("tests/integration/")]
    waiting.sort(key=lambda it: it not in folders)
    turns = [it for pair in itertools.zip_longest(busy, waiting) for it in pair if it is not None]
    return turns + [it for it in scopes if it not in {*busy, *waiting}]


class ByControlPlane(LoadScopeScheduling):  # type: ignore[misc]
    """Hands tests out by scope, in turns."""

    folders: frozenset[str] = shared(ROOT)
    workqueue: OrderedDict[str, dict[str, bool]]

    def _split_scope(self, nodeid: str) -> str:
        return scope(nodeid, self.folders)

    def _assign_work_unit(self, node: Any) -> None:
        if not any(self.assigned_work.values()):  # the first of all: the queue is as tests were found
            ordered = in_turns(self.workqueue, self.folders)
            self.workqueue = OrderedDict((it, self.workqueue[it]) for it in ordered)
        super()._assign_work_unit(node)
