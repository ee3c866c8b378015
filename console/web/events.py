"""What one browser is sent: everything once, and then what has changed, as server-sent events.   Pure.

`summary`, `moves`, `planned` and `refusals` are pieces of HTML that replace those on the page; `nodes` and `samples`
are data that the scripts of the page draw.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import Any, Final

import msgspec

from console.web.picture import Picture, Sample

PARTS: Final = ("summary", "moves", "planned", "refusals")
BATCH: Final = 200
"""Nodes in one event: a browser then draws the first of a thousand while the others are on their way."""

Render = Callable[[str, Picture], str]
"""The HTML of a part."""
_ENCODER: Final = msgspec.json.Encoder()


class Sender:
    """What was sent to one browser, so that it is not sent again."""

    def __init__(self, render: Render) -> None:
        self._render = render
        self._parts: dict[str, str] = {}
        self._nodes: Mapping[str, Any] | None = None

    def first(self, picture: Picture, samples: tuple[Sample, ...]) -> Iterator[bytes]:
        """Everything."""
        yield from self._html(picture)
        yield from self._changed(picture)
        yield event("samples", _ENCODER.encode({"anew": True, "samples": [asdict(it) for it in samples]}))

    def next(self, picture: Picture) -> Iterator[bytes]:
        """What is new in this picture."""
        yield from self._html(picture)
        yield from self._changed(picture)
        yield event("samples", _ENCODER.encode({"anew": False, "samples": [asdict(picture.sample)]}))

    def _html(self, picture: Picture) -> Iterator[bytes]:
        for name in PARTS:
            text = self._render(name, picture)
            if self._parts.get(name) != text:
                self._parts[name] = text
                yield event(name, text.encode())

    def _changed(self, picture: Picture) -> Iterator[bytes]:
        known = self._nodes
        changed = [it for name, it in picture.nodes.items() if known is None or known.get(name) is not it]
        if known is None or known.keys() - picture.nodes.keys():
            yield event("nodes", _ENCODER.encode({"all": list(picture.nodes), "nodes": []}))
        for at in range(0, len(changed), BATCH):
            yield event("nodes", _ENCODER.encode({"nodes": changed[at : at + BATCH]}))
        self._nodes = picture.nodes


def event(name: str, data: bytes) -> bytes:
    """One event. A line break inside of the data is a new line of data."""
    lines = b"".join(b"data: " + line + b"\n" for line in data.replace(b"\r", b"").split(b"\n"))
    return b"event: " + name.encode() + b"\n" + lines + b"\n"


def comment() -> bytes:
    """Nothing, so that whoever is in between does not take the connection for dead."""
    return b": here\n\n"
