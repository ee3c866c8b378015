"""Read a collection page by page, and start over properly when the server forgets where we were."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from cluster import errors
from cluster.decode import Page

T = TypeVar("T")
Query = list[tuple[str, str]]


def pages(fetch: Callable[[Query], Page[T]], *, narrowed: Query, page_size: int) -> Iterator[Page[T]]:
    """Every page of one consistent snapshot.

    A continue token lives as long as the server keeps its snapshot, some minutes. Once it is gone (410), the pages
    read so far belong to a past that cannot be completed: start over in pages, and if that expires too, ask for
    everything in one answer, which cannot.
    """
    for limit in (page_size, page_size, 0):
        try:
            yield from _snapshot(fetch, narrowed, limit)
        except errors.Gone:
            if not limit:
                raise
        else:
            return


def _snapshot(fetch: Callable[[Query], Page[T]], narrowed: Query, limit: int) -> Iterator[Page[T]]:
    sized = [*narrowed, ("limit", str(limit))] if limit else list(narrowed)
    page = replace(fetch(sized), first=True)
    yield page
    while page.continue_token:
        page = fetch([*sized, ("continue", page.continue_token)])
        yield page
