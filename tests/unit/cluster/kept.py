"""A collection in memory that a reflector can list and watch, for tests of what is built on reflectors."""

import json
import queue
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cluster import errors
from cluster.decode import Decoder, Page
from cluster.reflector import INITIAL_END
from cluster.resources import Resource
from tests.unit.cluster.surroundings import until


class Lines:
    """An open watch."""

    def __init__(self) -> None:
        self.words: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.words.get, None)

    def close(self) -> None:
        self.words.put(None)


class Kept:
    """A source that is one collection in memory. It lists in a page or by streaming, and may not exist."""

    def __init__(self, resource: Resource, decoder: Decoder[Any]) -> None:
        self.name = resource.plural
        self.exists = True
        self._decoder = decoder
        self._events: list[bytes] = []
        self._version = 1
        self._open: list[Lines] = []
        self._followed = False

    def say(self, kind: str, name: str, *, namespace: str = "shop", uid: str = "", **rest: Any) -> None:
        self._version += 1
        metadata: dict[str, Any] = {
            "name": name,
            "namespace": namespace,
            "uid": uid or name,
            **rest.pop("metadata", {}),
        }
        metadata["resourceVersion"] = str(self._version)
        line = json.dumps({"type": kind, "object": {"metadata": metadata, **rest}}).encode()
        self._events.append(line)
        for stream in self._open:
            stream.words.put(line)

    def end(self) -> None:
        """Cut every watch; what comes next is a request that may fail. A list is seen before the watch after it is
        open, and one that opens at this very moment would not be cut.
        """
        until(lambda: self._followed, "a watch to cut")
        for stream in self._open:
            stream.close()

    def pages(self) -> Iterator[Page[Any]]:
        if not self.exists:
            raise errors.NotFound("no such resource", status=404)
        there: dict[tuple[str, str], Any] = {}
        for kind, item in map(self.decode, self._events):
            there[item.metadata.key] = None if kind == "DELETED" else item
        yield Page(tuple(filter(None, there.values())), "", str(self._version), first=True)

    @contextmanager
    def watch(self, version: str, *, initial: bool, timeout_seconds: int, read_timeout: float) -> Iterator[Lines]:
        if not self.exists:
            raise errors.NotFound("no such resource", status=404)
        stream = Lines()
        if initial:
            notes = {INITIAL_END: "true"}
            end = {"metadata": {"resourceVersion": str(self._version), "annotations": notes}}
            for line in (*self._events, json.dumps({"type": "BOOKMARK", "object": end}).encode()):
                stream.words.put(line)
        else:  # what happened since the list
            for line in self._events:
                if int(json.loads(line)["object"]["metadata"]["resourceVersion"]) > int(version):
                    stream.words.put(line)
        self._open.append(stream)
        self._followed = self._followed or not initial
        yield stream

    def decode(self, line: bytes) -> tuple[str, Any]:
        return self._decoder.decode_event(line)
