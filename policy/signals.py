"""What the signs on a node ask of us, with the deadline where one is known.   Reads only; decides nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

from policy import values
from policy.keys import Keys
from policy.reasons import Malformed
from policy.signal_table import ANY, ROWS, Clock, Kind, Place, SignalRow

DEADLINE_FORMAT: Final = (
    f"a time with its zone from {values.EARLIEST.year} to {values.LATEST.year - 1} such as 2026-07-01T18:00:00Z, "
    "or Unix seconds of at most 11 digits"
)
"""What `instant` reads."""


class Taint(Protocol):
    """What we read of a taint."""

    @property
    def key(self) -> str:
        """Taint key."""
        ...

    @property
    def value(self) -> str:
        """Taint value, empty if it has none."""
        ...

    @property
    def time_added(self) -> datetime | None:
        """When it was added; most controllers do not write it."""
        ...


class Condition(Protocol):
    """What we read of a node condition."""

    @property
    def type(self) -> str:
        """Condition type."""
        ...

    @property
    def status(self) -> str:
        """`True`, `False` or `Unknown`."""
        ...

    @property
    def last_transition_time(self) -> datetime | None:
        """When the status last changed."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSigns:
    """The parts of a node that can carry a signal."""

    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Taint] = ()
    conditions: Sequence[Condition] = ()
    unschedulable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """One sign on a node and what it asks."""

    kind: Kind
    source: str
    """Where it stands, for people: `taint aws-node-termination-handler/spot-itn`."""
    started: datetime | None = None
    notice: timedelta | None = None
    """Time from the start to the loss of the node. Without `started`, count it from when you first saw it."""
    deadline: datetime | None = None
    lead: timedelta | None = None
    """How long before the deadline it begins to ask for more than that nothing new is sent to the node."""

    def at(self, now: datetime) -> Signal:
        """What it asks at this time."""
        early = self.lead is not None and self.deadline is not None and self.deadline - now > self.lead
        return replace(self, kind=Kind.AVOID) if early else self

    @property
    def withdrawable(self) -> bool:
        """Whether the platform may take it back without the node having gone."""
        return self.kind is Kind.REBALANCE


@dataclass(frozen=True, slots=True)
class _Sign:
    key: str
    value: str
    since: datetime | None = None


def read(node: NodeSigns, *, keys: Keys, now: datetime, table: Sequence[SignalRow] = ROWS) -> tuple[Signal, ...]:
    """Every signal of the node as it is now, our own label first, then in the order of the table."""
    return tuple(it.at(now) for it in standing(node, keys=keys, table=table))


def standing(node: NodeSigns, *, keys: Keys, table: Sequence[SignalRow] = ROWS) -> tuple[Signal, ...]:
    """The same whatever the time: it holds until the node changes. Ask each what it asks at a time."""
    own = SignalRow(Kind.MAINTENANCE, Place.LABEL, keys.maintenance, "true")
    ours = tuple(_timed(_signal(own, sign), node, keys) for sign in _matching(own, node))
    return ours + tuple(_signal(row, sign) for row in table for sign in _matching(row, node))


def mistakes(node: NodeSigns, *, keys: Keys) -> tuple[Malformed, ...]:
    """A maintenance label with another value than `true`, a deadline that is no time: their author must hear that
    nothing will come of them.
    """
    value, limit = node.labels.get(keys.maintenance), node.annotations.get(keys.maintenance_deadline)
    parsed = True if value is None else values.maintenance(keys.maintenance, value)
    found: tuple[Malformed, ...] = (parsed,) if isinstance(parsed, Malformed) else ()
    if limit is not None and instant(limit) is None:
        found += (Malformed(keys.maintenance_deadline, limit, DEADLINE_FORMAT),)
    return found


def instant(text: str) -> datetime | None:
    """Unix seconds or RFC 3339; None for anything else, since a signal counts without its time too. The first and the
    last years that can be written are no times: nobody could count from them.
    """
    try:
        if text.isascii() and text.isdigit() and len(text) <= 11:
            return datetime.fromtimestamp(int(text), UTC)
        parsed = datetime.fromisoformat(text)
    except (ValueError, OverflowError, OSError):
        return None
    return values.plausible(parsed)


def _timed(signal: Signal, node: NodeSigns, keys: Keys) -> Signal:
    """A label has no time of its own: annotations beside it say since when it is there and until when it may last."""
    since = instant(node.annotations.get(keys.maintenance_since, ""))
    return replace(signal, started=since, deadline=instant(node.annotations.get(keys.maintenance_deadline, "")))


def _matching(row: SignalRow, node: NodeSigns) -> Iterator[_Sign]:
    for sign in _signs(row, node):
        named = sign.key.startswith(row.key[:-1]) if row.key.endswith(ANY) else sign.key == row.key
        if named and row.value in {ANY, sign.value}:
            yield sign


def _signs(row: SignalRow, node: NodeSigns) -> Iterator[_Sign]:
    match row.place:
        case Place.TAINT:
            yield from (_Sign(taint.key, taint.value, taint.time_added) for taint in node.taints)
        case Place.CONDITION:
            yield from (_Sign(it.type, it.status, it.last_transition_time) for it in node.conditions)
        case Place.LABEL:
            yield from _entries(row, node.labels)
        case Place.ANNOTATION:
            yield from _entries(row, node.annotations)
        case Place.UNSCHEDULABLE:
            if node.unschedulable:
                yield _Sign("", "true")


def _entries(row: SignalRow, metadata: Mapping[str, str]) -> Iterator[_Sign]:
    """Only a row with a wildcard has to look at every key; nodes carry dozens."""
    if row.key.endswith(ANY):
        yield from (_Sign(key, value) for key, value in metadata.items())
    elif row.key in metadata:
        yield _Sign(row.key, metadata[row.key])


def _signal(row: SignalRow, sign: _Sign) -> Signal:
    started = _started(row, sign)
    notice, lead = _seconds(row.notice_seconds), _seconds(row.lead_seconds)
    deadline = started + notice if started is not None and notice is not None else None
    if row.clock is Clock.VALUE_DEADLINE:
        deadline = instant(sign.value)
    source = "spec.unschedulable" if row.place is Place.UNSCHEDULABLE else f"{row.place} {sign.key}"
    return Signal(kind=row.kind, source=source, started=started, notice=notice, deadline=deadline, lead=lead)


def _started(row: SignalRow, sign: _Sign) -> datetime | None:
    """Only the time that the row names: another one on the same sign says nothing about the loss of the node."""
    match row.clock:
        case Clock.START:
            return values.plausible(sign.since)
        case Clock.VALUE_START:
            return instant(sign.value)
        case Clock.NONE | Clock.VALUE_DEADLINE:
            return None


def _seconds(number: int | None) -> timedelta | None:
    return None if number is None else timedelta(seconds=number)
