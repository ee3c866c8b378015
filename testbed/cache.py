"""The cache: a lock for each thing that is made there, room to make it in, and an end to what killed makers left."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

UNFINISHED = frozenset({".partial", ".tmp"})
"""What stands beside a thing only while it is made."""


class NoCache(Exception):
    """There is nowhere to make it; the message says what to do."""


class Taken(Exception):
    """Somebody else holds the lock."""


@contextmanager
def locked(path: Path, *, on_wait: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold an advisory lock; the kernel drops it with the process, so a killed maker blocks nobody. `on_wait` may
    raise, if there is nothing to wait for.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as unusable:
        why = f"{path.parent} cannot be used: {unusable.strerror}"
        raise NoCache(f"{why}; set XDG_CACHE_HOME to a folder that can be written") from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def room(target: Path) -> Iterator[Path]:
    """A new folder beside `target` to make it in, for one at a time. Who is killed leaves it to the next one, and
    perhaps a child that still writes there: so it is never the same folder.
    """
    with locked(target.with_name(f"{target.name}.lock")):
        place = target.with_name(f"{target.name}.tmp")
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(exist_ok=True)
        try:
            yield Path(tempfile.mkdtemp(dir=place))
        finally:
            shutil.rmtree(place, ignore_errors=True)


def sweep(target: Path) -> None:
    """Remove what killed builds of other keys left, up to a gigabyte each, which nobody may ever build again. Whoever
    still builds one holds its lock.
    """
    family = target.name.rpartition("-")[0]
    for left in sorted(target.parent.glob(f"{family}-*")):
        if left.suffix in UNFINISHED and left.stem != target.name:
            with suppress(Taken, NoCache), locked(left.with_suffix(".lock"), on_wait=_give_up):
                shutil.rmtree(left, ignore_errors=True)


def _give_up() -> None:
    raise Taken
