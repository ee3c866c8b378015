"""Time windows in which voluntary moves are allowed or denied.

A window is what the clock on the wall of its time zone shows: `22:00` to `06:00` stays that on the days when
summer time begins or ends. An hour that is skipped has no instants; an hour that happens twice counts twice.
"""

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from typing import Annotated, Final
from zoneinfo import ZoneInfo

import msgspec

TIME_FORMAT: Final = "a time of day from 00:00 to 24:00 such as '06:30'"
ZONE_FORMAT: Final = "an IANA time zone such as Europe/Berlin"
_TIME = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])|24:00")
_DAY_MINUTES: Final = 24 * 60
_WEEK_MINUTES: Final = 7 * _DAY_MINUTES
_WHOLE_WEEK: Final = (1 << _WEEK_MINUTES) - 1
_REFERENCE: Final = datetime(2026, 1, 1, tzinfo=UTC)  # any year does: zones change their offsets in all of them
_HORIZON_DAYS: Final = 15  # a weekly window that summer time skips comes back the week after
_OFFSET_STEP: Final = timedelta(hours=3)  # no zone changes its offset twice within three hours


class Kind(StrEnum):
    """What a window says about the time inside it."""

    ALLOW = "allow"
    DENY = "deny"


class Day(StrEnum):
    """Day of the week, in ISO order."""

    MONDAY = "Mon"
    TUESDAY = "Tue"
    WEDNESDAY = "Wed"
    THURSDAY = "Thu"
    FRIDAY = "Fri"
    SATURDAY = "Sat"
    SUNDAY = "Sun"


WEEK: Final = tuple(Day)


def is_time(text: str) -> bool:
    """Whether the text is a time of day with two digits each; 24:00 is the end of the day."""
    return _TIME.fullmatch(text) is not None


def is_zone(name: str) -> bool:
    """Whether the time zone database knows the name."""
    try:
        ZoneInfo(name)
    except (KeyError, OSError, ValueError):  # unknown, a folder of the database, or a path out of it
        return False
    return True


TimeOfDay = Annotated[str, msgspec.Meta(extra={"check": is_time, "accepted": TIME_FORMAT})]
ZoneName = Annotated[str, msgspec.Meta(extra={"check": is_zone, "accepted": ZONE_FORMAT})]
Days = Annotated[tuple[Day, ...], msgspec.Meta(min_length=1)]


class Window(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One weekly window."""

    type: Kind
    """`allow` or `deny`. Moves need an open allow window if there is any, and no open deny window."""
    days: Days = WEEK
    """Days on which the window begins; every day if not said."""
    start: TimeOfDay = msgspec.field(name="from", default="00:00")
    """Time of day at which it begins."""
    end: TimeOfDay = msgspec.field(name="to", default="24:00")
    """Time of day at which it ends; earlier than `from` means on the next day."""
    time_zone: ZoneName = "UTC"
    """Time zone of both times. UTC, because the zone of a cluster's nodes is not that of its people."""


def has_length(window: Window) -> bool:
    """Whether it lasts at all; equal times could mean a whole day or nothing, so they mean neither."""
    return window.start not in {window.end, "24:00"}


def ever_open(windows: Sequence[Window]) -> bool:
    """Whether any moment of a year is open.

    Within one zone a week on the wall clock repeats for ever. Between zones it shifts when one of them changes
    its offset, so every combination of offsets that a year brings gets its own week.
    """
    zones = sorted({window.time_zone for window in windows})
    seen: set[tuple[int, ...]] = set()
    for hour in range(366 * 24 if len(zones) > 1 else 1):
        at = _REFERENCE + timedelta(hours=hour)
        offsets = tuple(_offset_minutes(_zone(name), at) for name in zones)
        if offsets not in seen:
            seen.add(offsets)
            if _open_minutes(windows, dict(zip(zones, offsets, strict=True))):
                return True
    return False


def is_open(windows: Sequence[Window], now: datetime) -> bool:
    """Whether voluntary moves may start at this instant; always, without windows."""
    allowed = [_contains(window, now) for window in windows if window.type is Kind.ALLOW]
    denied = any(_contains(window, now) for window in windows if window.type is Kind.DENY)
    return not denied and (any(allowed) or not allowed)


def next_change(windows: Sequence[Window], now: datetime) -> datetime | None:
    """The first later instant at which `is_open` answers differently; None if it never does."""
    current = is_open(windows, now)
    instants = {at for window in windows for at in _borders(window, now) if at > now}
    return next((at for at in sorted(instants) if is_open(windows, at) != current), None)


def _contains(window: Window, now: datetime) -> bool:
    local = now.astimezone(_zone(window.time_zone))
    minute = local.hour * 60 + local.minute
    today, yesterday = WEEK[local.weekday()], WEEK[local.weekday() - 1]
    start, end = _minutes(window.start), _minutes(window.end)
    if start < end:
        return today in window.days and start <= minute < end
    return (today in window.days and minute >= start) or (yesterday in window.days and minute < end)


def _open_minutes(windows: Sequence[Window], offsets: Mapping[str, int]) -> int:
    """The open minutes of a week in UTC as bits, with these offsets of the zones."""
    allowed, denied = 0, 0
    for window in windows:
        minutes = _week_minutes(window, offsets[window.time_zone])
        if window.type is Kind.ALLOW:
            allowed |= minutes
        else:
            denied |= minutes
    restricted = any(window.type is Kind.ALLOW for window in windows)
    return (allowed if restricted else _WHOLE_WEEK) & ~denied


def _week_minutes(window: Window, offset: int) -> int:
    start, end = _minutes(window.start), _minutes(window.end)
    length = end - start if start < end else _DAY_MINUTES - start + end
    begins = [WEEK.index(day) * _DAY_MINUTES + start - offset for day in window.days]
    spans = [((1 << length) - 1) << (begin % _WEEK_MINUTES) for begin in begins]
    return functools.reduce(lambda week, span: week | (span & _WHOLE_WEEK) | (span >> _WEEK_MINUTES), spans, 0)


def _offset_minutes(zone: ZoneInfo, at: datetime) -> int:
    return (_offset(zone, at) or timedelta()) // timedelta(minutes=1)


def _borders(window: Window, now: datetime) -> Iterator[datetime]:
    """Every instant, in UTC, at which the answer of this window can change."""
    zone = _zone(window.time_zone)
    first = now.astimezone(zone).date()
    for offset in range(-1, _HORIZON_DAYS + 1):
        for minutes in (_minutes(window.start), _minutes(window.end)):
            yield from _instants(first + timedelta(days=offset), minutes, zone)
    yield from _shifts(zone, now)


def _instants(day: date, minutes: int, zone: ZoneInfo) -> Iterator[datetime]:
    carried, minutes = divmod(minutes, _DAY_MINUTES)
    wall = datetime.combine(day + timedelta(days=carried), time(minutes // 60, minutes % 60), zone)
    yield wall.astimezone(UTC)
    yield wall.replace(fold=1).astimezone(UTC)


def _shifts(zone: ZoneInfo, now: datetime) -> Iterator[datetime]:
    """The instants at which the zone's clocks are put forward or back."""
    low = now.astimezone(UTC).replace(microsecond=0)
    last = low + timedelta(days=_HORIZON_DAYS)
    while low < last:
        high = low + _OFFSET_STEP
        if _offset(zone, low) != _offset(zone, high):
            yield _first_with(zone, low, high)
        low = high


def _first_with(zone: ZoneInfo, low: datetime, high: datetime) -> datetime:
    while high - low > timedelta(seconds=1):
        middle = low + (high - low) // 2
        middle = middle.replace(microsecond=0)
        if _offset(zone, middle) == _offset(zone, high):
            high = middle
        else:
            low = middle
    return high


def _offset(zone: ZoneInfo, at: datetime) -> timedelta | None:
    return at.astimezone(zone).utcoffset()


@functools.cache
def _minutes(text: str) -> int:
    hours, _, minutes = text.partition(":")
    return int(hours) * 60 + int(minutes)


def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)  # the standard library keeps the zones it has read
