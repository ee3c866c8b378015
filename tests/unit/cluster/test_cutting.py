"""A list answer read as it arrives holds what it holds when it is read whole, wherever its pieces end."""

import json
import random
from collections.abc import Mapping
from typing import Any

import pytest

from cluster import errors
from cluster.cutting import MISSES, Cutter
from cluster.decode import Decoder
from cluster.meta import Part

PLAIN: Decoder[dict[str, Any]] = Decoder(dict[str, Any])
META = {"resourceVersion": "7", "continue": "next"}


class Numbered(Part, frozen=True):
    """Something that not every object is."""

    metadata: Mapping[str, Any] = {}
    number: int = 0


def item(name: str, **more: object) -> dict[str, object]:
    return {"metadata": {"name": name}, **more}


NESTED = item("b", templates=[item("c"), item("d", inner=[item("e"), item("f")]), item("g")])
QUOTED = item("b", note='},{"metadata":{"name":"x"}}],"items":[{', more='\\"},{"metadata":')

ANSWERS = {
    "none": [],
    "one": [item("a")],
    "several": [item("a", x=1), item("b", y=[{}, {}]), item("c")],
    "items inside of items": [item("a"), NESTED, item("h")],
    "the mark in a text": [item("a"), QUOTED, item("c")],
    "text beyond ASCII": [item("ä\u2028"), item("名"), item("\U0001f9ff")],
    "another key first": [item("a"), {"kind": "Odd", "metadata": {"name": "b"}}, item("c")],
    "nothing inside": [{}, {}, {}],
    "not objects": [1, [item("a"), item("b")], None],
}


def written(items: list[Any], form: str) -> bytes:
    """As the server writes its own types, as it writes custom ones, and as somebody else might."""
    match form:
        case "own":
            document: dict[str, Any] = {"kind": "List", "apiVersion": "v1", "metadata": META, "items": items}
        case "custom":
            document = {"apiVersion": "v1", "items": items, "kind": "List", "metadata": META}
        case _:
            return json.dumps({"metadata": META, "items": items}, indent=1).encode()
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def pieces(body: bytes, rng: random.Random) -> list[bytes]:
    found, at = [], 0
    while at < len(body):
        size = rng.choice((1, 2, 3, 7, 20, 1000))
        found.append(body[at : at + size])
        at += size
    return found


@pytest.mark.parametrize("form", ["own", "custom", "indented"])
@pytest.mark.parametrize("items", ANSWERS.values(), ids=ANSWERS)
def test_the_same_whole_and_in_pieces(items: list[Any], form: str) -> None:
    body = written(items, form)
    for seed in range(50):
        found = PLAIN.decode_arriving_page(pieces(body, random.Random(seed)))
        assert [*found.items, *(["left out"] * len(found.left_out))] == [
            *(it for it in items if isinstance(it, dict)),
            *(["left out"] * sum(not isinstance(it, dict) for it in items)),
        ]
        assert (found.resource_version, found.continue_token) == ("7", "next")


def test_items_are_read_while_the_answer_arrives() -> None:
    body = written([item(str(number)) for number in range(100)], "own")
    taken: list[bytes] = []

    def take(piece: bytes) -> bool:
        taken.append(piece)
        return True

    cutter = Cutter(take)
    cutter.feed(body[: len(body) // 2])
    assert 45 <= len(taken) <= 50
    assert len(cutter.rest) < 200


def test_a_bad_item_is_left_out_and_named_wherever_it_stands() -> None:
    decoder: Decoder[Numbered] = Decoder(Numbered)
    good, bad = item("good", number=1), item("bad", number="one")
    for items in ([bad, good, good], [good, bad, good], [good, good, bad]):
        found = decoder.decode_arriving_page(pieces(written(items, "own"), random.Random(1)))
        assert [it.metadata["name"] for it in found.items] == ["good", "good"]
        assert [it.name for it in found.left_out] == ["bad"]


def test_an_object_made_of_marks_is_not_read_again_and_again() -> None:
    hostile = item("b", templates=[item("t")] * 5000)
    body = written([item("a"), hostile, item("c"), item("d")], "own")
    sizes: list[int] = []

    def take(piece: bytes) -> bool:
        sizes.append(len(piece))
        try:
            json.loads(piece)
        except ValueError:
            return False
        return True

    cutter = Cutter(take)
    for number in range(0, len(body), 1000):
        cutter.feed(body[number : number + 1000])
    assert len(sizes) <= MISSES + 2
    assert len(PLAIN.decode_list_page(body).items) == 4


@pytest.mark.parametrize("end", [0.3, 0.6, 0.99])
def test_an_answer_that_breaks_off_is_malformed(end: float) -> None:
    body = written([item(str(number)) for number in range(20)], "own")
    with pytest.raises(errors.Malformed):
        PLAIN.decode_list_page(body[: int(len(body) * end)])
