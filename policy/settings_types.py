"""The bounded types that settings are made of, each with the text that says what it accepts."""

from datetime import timedelta
from typing import Annotated, Final
from urllib.parse import urlsplit

import msgspec

from policy import durations, keys, values

SECOND: Final = timedelta(seconds=1)
DAY: Final = timedelta(days=1)

_URL_SCHEMES: Final = ("http", "https")


class Group(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Settings that belong together; camelCase in the document."""


def _interval(length: timedelta) -> bool:
    return SECOND <= length <= DAY


def _wait(length: timedelta) -> bool:
    return length <= 30 * DAY


def _memory(length: timedelta) -> bool:
    return SECOND <= length <= 365 * DAY


def _is_name(text: str) -> bool:
    return text != "" and values.is_label_value(text)


def _is_class(text: str) -> bool:
    return text == "" or values.is_dns_name(text)


def _is_pattern(text: str) -> bool:
    if not text.endswith("*"):
        return values.is_dns_label(text)
    beginning = text[:-1]
    return beginning == "" or values.is_dns_label(beginning.removesuffix("-"))


def _is_url(text: str) -> bool:
    """Nothing may follow the path, because paths of an API are put there."""
    try:
        parts = urlsplit(text)
        usable = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return text == "" or (parts.scheme in _URL_SCHEMES and usable and not parts.query and not parts.fragment)


Interval = Annotated[
    timedelta, msgspec.Meta(extra={"check": _interval, "accepted": f"{durations.FORMAT}, from 1s to 24h"})
]
Wait = Annotated[timedelta, msgspec.Meta(extra={"check": _wait, "accepted": f"{durations.FORMAT}, from 0s to 720h"})]
Memory = Annotated[
    timedelta, msgspec.Meta(extra={"check": _memory, "accepted": f"{durations.FORMAT}, from 1s to 8760h"})
]
Percent = Annotated[float, msgspec.Meta(ge=0, le=100)]
WholePercent = Annotated[int, msgspec.Meta(ge=0, le=100)]
OverMean = Annotated[float, msgspec.Meta(ge=0, le=1000)]
Weight = Annotated[int, msgspec.Meta(ge=0, le=1000)]
AffinityWeight = Annotated[int, msgspec.Meta(ge=1, le=100)]
Count = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]
Limit = Annotated[int, msgspec.Meta(ge=1, le=10_000)]
Retries = Annotated[int, msgspec.Meta(ge=0, le=20)]
Workers = Annotated[int, msgspec.Meta(ge=1, le=64)]
Grace = Annotated[int, msgspec.Meta(ge=0, le=24 * 3600)]
Factor = Annotated[float, msgspec.Meta(ge=1, le=10)]
Priority = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Name = Annotated[
    str,
    msgspec.Meta(extra={"check": _is_name, "accepted": "a name of letters, digits and - _ ., at most 63"}),
]
ClassName = Annotated[
    str, msgspec.Meta(extra={"check": _is_class, "accepted": "the name of a PriorityClass, or '' for none"})
]
Namespace = Annotated[
    str,
    msgspec.Meta(
        extra={
            "check": values.is_dns_label,
            "accepted": "the name of a namespace: a-z, 0-9 and - inside, at most 63 characters",
        }
    ),
]
NamespacePattern = Annotated[
    str,
    msgspec.Meta(
        extra={
            "check": _is_pattern,
            "accepted": "the name of a namespace, the beginning of one and '*', or '*'",
        }
    ),
]
Prefix = Annotated[str, msgspec.Meta(extra={"check": keys.is_prefix, "accepted": keys.PREFIX_FORMAT})]
Url = Annotated[str, msgspec.Meta(extra={"check": _is_url, "accepted": "an http or https address, or ''"})]
