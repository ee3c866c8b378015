"""What tests read from Markdown: headings, fenced blocks and links."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: the word behind its fence, and its text."""

    kind: str
    text: str
    line: int
    """Of the fence, counted from 1."""

    @property
    def first(self) -> str:
        return self.text.splitlines()[0].partition("#")[0].strip()


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading, and how deep it is."""

    level: int
    text: str

    @property
    def anchor(self) -> str:
        """As GitHub makes it."""
        return re.sub(r"[^\w\- ]", "", self.text.lower()).replace(" ", "-")


@dataclass(frozen=True, slots=True)
class Page:
    """One file, taken apart."""

    headings: tuple[Heading, ...]
    blocks: tuple[Block, ...]
    prose: str
    """Everything outside of blocks."""

    @property
    def links(self) -> list[str]:
        """Where links and images lead, within this repository."""
        bare = re.sub(r"`[^`]*`", "", self.prose)
        found = re.findall(r"\]\(([^)\s]+)\)", bare) + re.findall(r'(?:src|srcset)="([^"]+)"', bare)
        return [it for it in found if not re.match(r"[a-z]+:", it)]


def read(path: Path) -> Page:
    lines = path.read_text(encoding="utf-8").splitlines()
    blocks = tuple(_blocks(lines))
    inside = {at for it in blocks for at in range(it.line, it.line + len(it.text.splitlines()) + 2)}
    outside = [line for at, line in enumerate(lines, start=1) if at not in inside]
    return Page(tuple(_headings(outside)), blocks, "\n".join(outside))


def _blocks(lines: list[str]) -> Iterator[Block]:
    start = 0
    fence = ""
    for at, line in enumerate(lines, start=1):
        found = re.match(r"( *)```(\S*)", line)
        if found is None:
            continue
        if start:
            text = "".join(f"{it.removeprefix(fence)}\n" for it in lines[start : at - 1])
            yield Block(lines[start - 1].strip().removeprefix("```"), text, start)
            start = 0
        else:
            start, fence = at, found[1]
    assert start == 0, f"the block of line {start} is not closed"


def _headings(lines: list[str]) -> Iterator[Heading]:
    for line in lines:
        if found := re.match(r"(#{1,6}) (.+)$", line):
            yield Heading(len(found[1]), found[2].strip())
