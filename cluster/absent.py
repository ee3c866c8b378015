"""A source whose resource may not be installed, such as a custom resource before its definition."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Generic, TypeVar

from cluster import errors
from cluster.decode import Page
from cluster.source import Source, Stream
from cluster.store import Object

T = TypeVar("T", bound=Object)


class MayBeAbsent(Generic[T]):
    """Absence is an error to the reflector, which tries again, and none to whoever waits for it."""

    def __init__(self, source: Source[T]) -> None:
        self._source = source
        self.absent = False
        self.on_absent: Callable[[], None] = lambda: None
        self.on_present: Callable[[], None] = lambda: None
        """It is seen again. A watch that goes on after a moment's absence does not tell what was there before."""

    @property
    def name(self) -> str:
        """Plural name."""
        return self._source.name

    def pages(self) -> Iterator[Page[T]]:
        """Consistent pages."""
        with self._noticing():
            for page in self._source.pages():
                self._seen()
                yield page

    @contextmanager
    def watch(self, version: str, *, initial: bool, timeout_seconds: int, read_timeout: float) -> Iterator[Stream]:
        """Open a watch."""
        opening: AbstractContextManager[Stream] = self._source.watch(
            version, initial=initial, timeout_seconds=timeout_seconds, read_timeout=read_timeout
        )
        with self._noticing(), opening as stream:
            self._seen()
            yield stream

    def decode(self, line: bytes) -> tuple[str, T | errors.ApiError]:
        """Type and object of one line."""
        return self._source.decode(line)

    def _seen(self) -> None:
        if self.absent:
            self.absent = False
            self.on_present()

    @contextmanager
    def _noticing(self) -> Iterator[None]:
        try:
            yield
        except errors.NotFound:
            self.absent = True
            self.on_absent()
            raise


def is_absent(source: Source[Any]) -> bool:
    """Whether the server was last seen without the resource."""
    return isinstance(source, MayBeAbsent) and source.absent
