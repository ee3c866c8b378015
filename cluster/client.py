"""The verbs of the Kubernetes API, typed: get, list, watch, create, patch, apply, evict, scale, delete.

Each verb builds a request value, hands it to the transport and decodes the answer. Nothing is retried here and no
object is cached: retries, caches and back-off belong to the callers, who know what a failure means.
Objects are changed by patches; `replace` is for leases, whose whole content is ours.
"""
# ruff: noqa: A002, PLR0913 - the verbs take what the API takes, under the names Kubernetes people know

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic

from cluster import auth, decode, errors, paging, ratelimit, transport, verbs
from cluster.resources import Resource
from cluster.stream import WatchStream
from cluster.workload import Scale
from telemetry.meter import Meter

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    T = TypeVar("T", default=dict[str, Any])
else:
    from typing import TypeVar

    T = TypeVar("T")

TIMEOUT_SECONDS = 30.0
"""Connect and read, per call: half of what the API server itself gives a request."""
PAGE_SIZE = 500
"""Objects per page, as kubectl asks for: about 3 MB of pods."""
WATCH_SECONDS = 300
"""The server ends a watch after this time, so that a stuck one cannot last."""


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """A whole collection at one resourceVersion."""

    items: tuple[T, ...]
    resource_version: str
    left_out: tuple[errors.Unreadable, ...] = ()
    """Objects that are there but could not be decoded."""


class Client:
    """One door for many threads. When the API says no, every method raises an `errors.ApiError`.

    A method without a `type` answers with the plain dict.
    """

    def __init__(
        self,
        connection: auth.Connection,
        *,
        timeout: float = TIMEOUT_SECONDS,
        rate_limit: ratelimit.RateLimit | None = ratelimit.DEFAULT,
        user_agent: str = "spotshift",
        on_warning: Callable[[str], None] | None = None,
        meter: Meter | None = None,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        """`meter` gets the duration of each request and the time spent waiting for our own limit."""
        self._transport = transport.Transport(
            connection,
            user_agent=user_agent,
            bucket=ratelimit.Bucket(rate_limit, now=now, sleep=sleep) if rate_limit else None,
            on_warning=on_warning,
            meter=meter,
            now=now,
        )
        self._timeout = timeout
        self._decoders = decode.Decoders()

    def decoder(self, type: type[T] | None = None) -> decode.Decoder[T]:
        """The decoder this client uses for a type; pods decoded by one client share their templates."""
        return self._decoders.of(type)

    def close(self) -> None:
        """Close idle connections; open watches are closed by their own contexts."""
        self._transport.close()

    def get(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        type: type[T] | None = None,
        metadata_only: bool = False,
        timeout: float | None = None,
    ) -> T:
        """One object."""
        accept = verbs.METADATA if metadata_only else verbs.JSON
        request = transport.Request("get", "GET", resource.path(namespace, name, subresource), accept=accept)
        return self._call(request, type=type, timeout=timeout)

    def list(
        self,
        resource: Resource,
        *,
        type: type[T] | None = None,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        page_size: int = PAGE_SIZE,
        metadata_only: bool = False,
        timeout: float | None = None,
    ) -> Listing[T]:
        """The whole collection, read page by page from one snapshot."""
        items: list[T] = []
        left_out: list[errors.Unreadable] = []
        version = ""
        for page in self.pages(
            resource,
            type=type,
            namespace=namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            page_size=page_size,
            metadata_only=metadata_only,
            timeout=timeout,
        ):
            if page.first:
                items.clear()
                left_out.clear()
            items.extend(page.items)
            left_out.extend(page.left_out)
            version = page.resource_version
        return Listing(tuple(items), version, tuple(left_out))

    def pages(
        self,
        resource: Resource,
        *,
        type: type[T] | None = None,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        page_size: int = PAGE_SIZE,
        metadata_only: bool = False,
        timeout: float | None = None,
    ) -> Iterator[decode.Page[T]]:
        """The collection in pages, each decoded while it is read, so that its size costs no memory.

        A page with `first` set begins the collection anew: whoever collects drops what came before it.
        """
        decoder = self.decoder(type)

        def fetch(query: verbs.Query) -> decode.Page[T]:
            request = verbs.page(resource, namespace, query, metadata_only=metadata_only)
            pieces = self._transport.pieces(request, timeout=self._timeout if timeout is None else timeout)
            return decoder.decode_arriving_page(pieces)

        narrowed = verbs.selectors(label_selector, field_selector)
        return paging.pages(fetch, narrowed=narrowed, page_size=page_size)

    @contextlib.contextmanager
    def watch(
        self,
        resource: Resource,
        *,
        resource_version: str,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        send_initial_events: bool = False,
        bookmarks: bool = True,
        timeout_seconds: int = WATCH_SECONDS,
        read_timeout: float | None = None,
        metadata_only: bool = False,
    ) -> Iterator[WatchStream]:
        """Events after `resource_version` as raw lines, for `decoder(type).decode_event`. Never rate-limited.

        `read_timeout` bounds the silence between two reads; by default it lies 15 s after the end of the watch.
        The server sends a bookmark about once a minute, so 90 s finds a dead connection early.
        """
        request = verbs.watch(
            resource,
            namespace,
            resource_version=resource_version,
            narrowed=verbs.selectors(label_selector, field_selector),
            send_initial_events=send_initial_events,
            bookmarks=bookmarks,
            timeout_seconds=timeout_seconds,
            metadata_only=metadata_only,
        )
        silence = timeout_seconds + 15.0 if read_timeout is None else read_timeout
        stream = WatchStream(self._transport.stream(request, timeout=self._timeout, read_timeout=silence))
        try:
            yield stream
        finally:
            stream.release()

    def create(
        self,
        resource: Resource,
        body: verbs.Body,
        *,
        namespace: str | None = None,
        name: str | None = None,
        subresource: str | None = None,
        type: type[T] | None = None,
        dry_run: bool = False,
        field_manager: str | None = None,
        timeout: float | None = None,
    ) -> T:
        """Create an object; with `name` and `subresource`, post to a subresource such as `token`."""
        path = resource.path(namespace, name, subresource)
        request = verbs.write("POST", path, body, dry_run=dry_run, field_manager=field_manager)
        return self._call(request, type=type, timeout=timeout)

    def replace(
        self,
        resource: Resource,
        name: str,
        body: verbs.Body,
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        type: type[T] | None = None,
        dry_run: bool = False,
        field_manager: str | None = None,
        timeout: float | None = None,
    ) -> T:
        """Put a whole object. With its resourceVersion inside, a change in between is a Conflict."""
        path = resource.path(namespace, name, subresource)
        request = verbs.write("PUT", path, body, dry_run=dry_run, field_manager=field_manager)
        return self._call(request, type=type, timeout=timeout)

    def merge_patch(
        self,
        resource: Resource,
        name: str,
        body: verbs.Body,
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        type: type[T] | None = None,
        dry_run: bool = False,
        field_manager: str | None = None,
        timeout: float | None = None,
    ) -> T:
        """Merge fields into an object; None removes one. `metadata.resourceVersion` inside is a precondition."""
        request = verbs.write(
            "PATCH",
            resource.path(namespace, name, subresource),
            body,
            content_type=verbs.MERGE_PATCH,
            dry_run=dry_run,
            field_manager=field_manager,
        )
        return self._call(request, type=type, timeout=timeout)

    def json_patch(
        self,
        resource: Resource,
        name: str,
        operations: Sequence[Mapping[str, Any]],
        *,
        namespace: str | None = None,
        subresource: str | None = None,
        type: type[T] | None = None,
        dry_run: bool = False,
        field_manager: str | None = None,
        timeout: float | None = None,
    ) -> T:
        """Apply RFC 6902 operations; a failed `test` is Invalid."""
        request = verbs.write(
            "PATCH",
            resource.path(namespace, name, subresource),
            operations,
            content_type=verbs.JSON_PATCH,
            dry_run=dry_run,
            field_manager=field_manager,
        )
        return self._call(request, type=type, timeout=timeout)

    def apply(
        self,
        resource: Resource,
        name: str,
        body: verbs.Body,
        *,
        field_manager: str,
        force: bool = False,
        namespace: str | None = None,
        subresource: str | None = None,
        type: type[T] | None = None,
        dry_run: bool = False,
        timeout: float | None = None,
    ) -> T:
        """Server-side apply: create the object or own exactly these fields. Unforced, a foreign owner conflicts."""
        request = verbs.write(
            "PATCH",
            resource.path(namespace, name, subresource),
            body,
            content_type=verbs.APPLY_PATCH,
            dry_run=dry_run,
            field_manager=field_manager,
            force=force,
        )
        return self._call(request, type=type, timeout=timeout)

    def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
        grace_period_seconds: int | None = None,
        propagation_policy: str | None = None,
        dry_run: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Delete an object, if it still has this UID and resourceVersion."""
        request = verbs.delete(
            resource.path(namespace, name),
            uid=uid,
            resource_version=resource_version,
            grace_period_seconds=grace_period_seconds,
            propagation_policy=propagation_policy,
            dry_run=dry_run,
        )
        self._send(request, timeout)

    def evict(
        self,
        namespace: str,
        name: str,
        *,
        uid: str | None,
        resource_version: str | None = None,
        grace_period_seconds: int | None = None,
        dry_run: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Evict this very pod. DisruptionBlocked: a budget has no room. NotFound, Conflict: it is already gone, or
        has changed since that version.
        """
        request = verbs.evict(
            namespace,
            name,
            uid=uid,
            resource_version=resource_version,
            grace_period_seconds=grace_period_seconds,
            dry_run=dry_run,
        )
        self._send(request, timeout)

    def get_scale(self, resource: Resource, name: str, namespace: str, *, timeout: float | None = None) -> Scale:
        """How many replicas are wanted and how many there are."""
        return self.get(resource, name, namespace=namespace, subresource="scale", type=Scale, timeout=timeout)

    def patch_scale(
        self,
        resource: Resource,
        name: str,
        namespace: str,
        replicas: int,
        *,
        field_manager: str,
        resource_version: str | None = None,
        timeout: float | None = None,
    ) -> Scale:
        """Set the number of replicas and become the owner of that number."""
        path = resource.path(namespace, name, "scale")
        request = verbs.scale(path, replicas, field_manager=field_manager, resource_version=resource_version)
        return self._call(request, type=Scale, timeout=timeout)

    def _call(self, request: transport.Request, *, type: type[T] | None, timeout: float | None) -> T:
        return self.decoder(type).decode(self._send(request, timeout))

    def _send(self, request: transport.Request, timeout: float | None) -> bytes:
        return self._transport.send(request, timeout=self._timeout if timeout is None else timeout)
