"""Durations as Go and Kubernetes write them: `30s`, `1h30m`, `500ms`.

Accepts what Go's `time.ParseDuration` accepts and refuses what it refuses. Values are `timedelta`, so what
is finer than a microsecond is cut off; `nanoseconds` is exact.
"""

import re
from datetime import timedelta
from typing import Final

from policy.reasons import Malformed

FORMAT: Final = "a duration such as 30s, 5m or 1h30m"

_UNITS: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,  # U+00B5, micro sign
    "μs": 1_000,  # U+03BC, the Greek letter; Go accepts both
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_LONGEST_NS: Final = 2**63 - 1
_CENTURY: Final = 100 * 365 * 24 * 3600
LONGEST_TEXT: Final = 200
"""Characters; the longest duration Go can hold is far shorter, and annotations are written by strangers."""
# Every part begins with a digit: if a number could be empty, `ms` could be read two ways and time would double
# with each of them.
_PART = re.compile(r"(?=\.?[0-9])([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)")
_WHOLE = re.compile(rf"([+-]?)((?:{_PART.pattern})+)")


def nanoseconds(text: str) -> int | Malformed:
    """Exact length, negative lengths included."""
    if text in {"0", "+0", "-0"}:
        return 0
    found = _WHOLE.fullmatch(text) if len(text) <= LONGEST_TEXT else None
    if found is None:
        return _refused(text)
    total = 0
    for whole, fraction, unit in _PART.findall(found[2]):
        if not (whole or fraction):
            return _refused(text)
        length = _part(whole, fraction, _UNITS[unit])
        if length is None:
            return _refused(text)
        total += length
    signed = -total if found[1] == "-" else total
    return signed if -_LONGEST_NS - 1 <= signed <= _LONGEST_NS else _refused(text)


def parse(text: str, *, negative: bool = False) -> timedelta | Malformed:
    """Length of time; a negative one only where the caller has a use for it."""
    length = nanoseconds(text)
    if isinstance(length, Malformed):
        return length
    if length < 0 and not negative:
        return Malformed("", text, f"{FORMAT}, not negative")
    return timedelta(microseconds=length // 1_000 if length >= 0 else -(-length // 1_000))


def of_seconds(count: int) -> timedelta:
    """A number of seconds that somebody gave, at most a century either way: 64 bits hold more than a `timedelta`, and
    an hour that is added to the last year of a `datetime` is an error.
    """
    return timedelta(seconds=max(-_CENTURY, min(count, _CENTURY)))


def text_of(length: timedelta) -> str:
    """The shortest text that `parse` reads back to the same value, largest units first."""
    micros = length // timedelta(microseconds=1)
    sign, rest = ("-", -micros) if micros < 0 else ("", micros)
    parts = []
    for unit, size in (("h", 3_600_000_000), ("m", 60_000_000), ("s", 1_000_000), ("ms", 1_000), ("us", 1)):
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}{unit}")
    return sign + "".join(parts) if parts else "0s"


def _part(whole: str, fraction: str, unit: int) -> int | None:
    """One number with its unit; None if it is longer than Go can hold."""
    digits = whole.lstrip("0")
    if len(digits) > 19:
        return None
    length = int(digits or "0") * unit
    kept = _kept(fraction)
    if kept:
        # Go multiplies in floating point; exact integers would differ from it by a nanosecond now and then.
        length += int(float(int(kept)) * (float(unit) / 10.0 ** len(kept)))
    return length if length <= _LONGEST_NS + 1 else None


def _kept(fraction: str) -> str:
    """The digits Go looks at: as many as fit 63 bits."""
    head = fraction[:19]
    return head if int(head or "0") <= _LONGEST_NS + 1 else head[:18]


def _refused(text: str) -> Malformed:
    return Malformed("", text, FORMAT)
