"""Values that nobody means well with, from a seed."""

import random
import string
from typing import Any

TEXTS = (
    "", " ", "\x00", "\n", "a\nb: c", "\t", "true", "True", "TRUE", "false", "null", "None", "0", "-0", "-1", "+1",
    "00", "1e9", "1e999", "-1e999", "NaN", "Infinity", "9" * 400, "9" * 5_000, "0x10", "٣", "½", "1.5",
    "100%", "101", "1_000",
    "prefer", "require", "avoid", "ignore", "enabled", "disabled", "critical", "standard", "batch", "spot",
    "Spot", " spot", "on-demand", "2026-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z",
    "2026-13-45T99:99:99Z", "1h", "-1h", "1" * 30 + "h", "../../etc/passwd", "/", "//", ".", "..", "-", "_",
    "<script>alert(1)</script>", "'; --", '"', "\\", "{{7*7}}", "${x}", "%s%n", "{0}", "$(id)", "`id`",
    "\u202egnp.exe", "\ufeff", "é", "😀" * 70, "a" * 63, "a" * 64, "a" * 253, "a" * 5_000, "A.b-c_d", "a/b/c", "Ⅷ",
    "default/web: x\n: \n",
    "spotshift", "kube-system", "default", "node-1", "system:masters", "99999Ei", "1n", "100m", "-5m", "1Ki ", "E",
)  # fmt: skip
STATUSES = (
    "draining 7/12",
    "draining x/y",
    "drained /",
    f"draining {'9' * 5_000}/1",
    f"draining 1/{'9' * 5_000}",
    "/",
)
"""Nearly what we write ourselves."""
ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63), 10**30, 1.5, 1e308, [], {}, [None], [[]], {"": ""},
    {"a": None}, ["x"], [{}], {"name": "x"},
)  # fmt: skip


def text(rng: random.Random) -> str:
    """One that is known to hurt, or two of them, or noise."""
    kind = rng.random()
    if kind < 0.7:
        return rng.choice(TEXTS)
    if kind < 0.85:
        return rng.choice(TEXTS)[:80] + rng.choice(TEXTS)[:80]
    return "".join(rng.choices(string.printable + "äß€漢\u0000\u2028", k=rng.randrange(1, 40)))


def value(rng: random.Random) -> Any:
    """Text, mostly; else something of another type."""
    return text(rng) if rng.random() < 0.5 else rng.choice(ODD)


def places(document: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where anything stands in a document."""
    inner = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    return [path, *(found for key, more in inner for found in places(more, (*path, key)))]


def spoil(document: Any, rng: random.Random, *, times: int) -> None:
    """Replace a few values by others, deepest first."""
    known = places(document)[1:]
    for path in sorted(rng.sample(known, min(times, len(known))), key=len, reverse=True):
        holder = document
        for key in path[:-1]:
            holder = holder[key]
        holder[path[-1]] = alike(holder[path[-1]], rng)


def alike(known: Any, rng: random.Random) -> Any:
    """Of the same type, mostly: what has another one is refused at the door, and gets no further."""
    match known if rng.random() > 0.15 else None:
        case bool():
            return not known
        case int():
            return rng.choice((0, -1, 1, 2**31, 2**63 - 1, -(2**63), known + 1))
        case str():
            return text(rng)
        case list():
            return rng.choice(([], known * 2, known[:1] * 50))
        case dict():
            return rng.choice(({}, {key: known[key] for key in list(known)[1:]}))
        case _:
            return value(rng)
