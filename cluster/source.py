"""Where a reflector gets its objects: one collection, narrowed or not, to list and to watch."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from cluster import errors
from cluster.client import Client
from cluster.decode import Decoder, Page
from cluster.resources import Resource
from cluster.store import Object

T = TypeVar("T", bound=Object)


class Stream(Protocol):
    """Lines of an open watch; `close` from any thread ends the iteration at once."""

    def __iter__(self) -> Iterator[bytes]: ...
    def close(self) -> None: ...


class Source(Protocol[T]):
    """What a reflector needs. Every method raises ApiError and nothing else."""

    @property
    def name(self) -> str:
        """Plural name of the resource, for logs and metrics."""

    def pages(self) -> Iterator[Page[T]]:
        """The collection at one version, page by page; a page marked `first` makes earlier ones void."""

    def watch(
        self, version: str, *, initial: bool, timeout_seconds: int, read_timeout: float
    ) -> AbstractContextManager[Stream]:
        """Events after `version`; with `initial` the whole collection first, ended by a marked bookmark."""

    def decode(self, line: bytes) -> tuple[str, T | errors.ApiError]:
        """Type and object of one line."""


@dataclass(slots=True)
class ClusterSource(Generic[T]):
    """Source on the real thing."""

    client: Client
    resource: Resource
    type: type[T]
    namespace: str | None = None
    label_selector: str | None = None
    field_selector: str | None = None
    metadata_only: bool = False
    page_size: int = 500
    timeout: float = 30.0
    """Seconds for one page."""
    _decoder: Decoder[T] = field(init=False)

    def __post_init__(self) -> None:
        self._decoder = self.client.decoder(self.type)

    @property
    def name(self) -> str:
        """Plural name."""
        return self.resource.plural

    def pages(self) -> Iterator[Page[T]]:
        """Consistent pages."""
        return self.client.pages(
            self.resource,
            type=self.type,
            namespace=self.namespace,
            label_selector=self.label_selector,
            field_selector=self.field_selector,
            page_size=self.page_size,
            metadata_only=self.metadata_only,
            timeout=self.timeout,
        )

    def watch(
        self, version: str, *, initial: bool, timeout_seconds: int, read_timeout: float
    ) -> AbstractContextManager[Stream]:
        """Open a watch."""
        return self.client.watch(
            self.resource,
            resource_version=version,
            namespace=self.namespace,
            label_selector=self.label_selector,
            field_selector=self.field_selector,
            send_initial_events=initial,
            timeout_seconds=timeout_seconds,
            read_timeout=read_timeout,
            metadata_only=self.metadata_only,
        )

    def decode(self, line: bytes) -> tuple[str, T | errors.ApiError]:
        """Typed."""
        return self._decoder.decode_event(line)
