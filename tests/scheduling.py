"""Which tests are run by one worker: those that share a control plane, so that it is started once.

Without it a worker that has nothing left takes half of the tests of another, and starts their control plane again.
"""

from collections.abc import Iterable
from pathlib import Path, PurePosixPath

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


class ByControlPlane(LoadScopeScheduling):  # type: ignore[misc]
    """In the order in which tests are found: what takes long comes first, unit tests fill the gaps at the end."""

    folders: frozenset[str] = shared(ROOT)

    def _split_scope(self, nodeid: str) -> str:
        return scope(nodeid, self.folders)
