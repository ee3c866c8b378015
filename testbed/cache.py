"""The cache: a lock for each thing that is made there, and room to make it in."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


class NoCache(Exception):
    """There is nowhere to make it; the message says what to do."""


@contextmanager
def locked(path: Path, *, on_wait: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold an advisory lock; the kernel drops it with the process, so a killed maker blocks nobody."""
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
