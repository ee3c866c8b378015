"""Who leads: the rules of the election, as pure functions over a record, what was observed, and a monotonic
time.

The safety argument, which every rule below serves:

* A holder counts its validity from *before* it sent the write that won or renewed the lease, and only for
  `renew_deadline` seconds.
* A challenger counts from *after* it received the answer that first showed it that content, and for
  `lease_seconds`, which is longer. The write came before the answer, so the holder's time is always up first.
* Every write names the resourceVersion it replaces, so a renewal that a challenger has not seen makes its write
  fail.

No two clocks are ever compared: each process measures durations on its own monotonic clock, and the times
inside the record are only looked at for being different. What the clock cannot give is safety for a process
that is stopped between asking `is_leader` and acting; writes must carry their own precondition for that.
"""

from dataclasses import dataclass, replace
from typing import Any, Final

NEVER: Final = float("-inf")

RELEASED_SECONDS: Final = 1
"""Duration that a holder writes beside an empty name when it hands the lease back. An empty name with any other
duration is somebody's edit, and a holder may still be at work behind it.
"""

SENT_KEPT: Final = 8
"""Own writes remembered until the record shows one of them; only lost answers make it more than one."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Durations in seconds. The defaults cost a standby one small read and a leader half a write per second."""

    lease_seconds: int = 15
    """How long others leave a silent holder alone. Whole seconds, because the record can hold nothing finer."""
    renew_deadline: float = 10.0
    """How long a holder trusts its last renewal. The rest of `lease_seconds` lies between two holders."""
    renew_period: float = 2.0
    """Between two renewals."""
    poll_period: float = 1.0
    """Between two looks of a standby: the larger part of a hand-over, which should take less than two seconds."""
    request_timeout: float = 3.0
    """Longest wait for one answer, so that a server that never answers costs less than the deadline."""
    jitter: float = 0.2
    """Share by which periods are spread."""
    trust_absence: bool = False
    """Whether a lease that does not exist is free at once. Somebody may have deleted it under a living holder, so
    only who knows that there is none, such as a test bed, may say so; others wait one lease the first time ever.
    """
    stop_grace: float = 1.0
    """What the work of a term gets to end itself before the lease is handed back. If it takes longer, it is not."""

    def __post_init__(self) -> None:
        """Refuse durations with which a holder could outlive its lease, or has only one try to renew."""
        if self.lease_seconds <= RELEASED_SECONDS:
            raise ValueError(f"lease_seconds must be more than {RELEASED_SECONDS}")
        if not 0 < self.request_timeout < self.renew_deadline < self.lease_seconds:
            raise ValueError("0 < request_timeout < renew_deadline < lease_seconds must hold")
        if not 0 < self.renew_period * (1 + self.jitter) + self.request_timeout < self.renew_deadline:
            raise ValueError("a second renewal must fit before renew_deadline when the first is not answered")
        if self.poll_period <= 0 or not 0 <= self.jitter < 1:
            raise ValueError("poll_period must be positive and jitter a share below 1")


@dataclass(frozen=True, slots=True)
class Record:
    """What a Lease object says."""

    holder: str
    lease_seconds: int
    acquired: str
    renewed: str
    transitions: int
    version: str = ""
    uid: str = ""

    @property
    def released(self) -> bool:
        """Handed back by its last holder, so free at once."""
        return not self.holder and self.lease_seconds == RELEASED_SECONDS

    def same_content(self, other: "Record | None") -> bool:
        """Labels and annotations may change without a sign of life of the holder; only the spec counts."""
        return other is not None and replace(self, version="") == replace(other, version="")


@dataclass(frozen=True, slots=True)
class View:
    """Everything one elector knows. Times are of its own monotonic clock."""

    known: bool = False
    """Whether `record` may be acted on without looking again."""
    record: Record | None = None
    """None: there is no Lease object."""
    seen_at: float = NEVER
    """After the answer that first showed this content."""
    valid_until: float = NEVER
    """Before this we lead."""
    sent: tuple[str, ...] = ()
    """`renewed` of our own latest writes: how we recognise one whose answer was lost."""
    transitions: int = -1
    """The highest number of changes seen, so that a deleted lease does not start over."""


@dataclass(frozen=True, slots=True)
class Look:
    """Read the lease."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Somebody else holds it, or may; not free before `until`."""

    until: float


@dataclass(frozen=True, slots=True)
class Write:
    """Create or replace the lease with this record."""

    record: Record
    create: bool


Action = Look | Wait | Write


def decide(view: View, *, me: str, timing: Timing, now: float, stamp: str) -> Action:
    """The one rule. `stamp` is the wall-clock time to write, for people only."""
    if not view.known:
        return Look()
    leading = now < view.valid_until
    if view.record is None:
        return _create(view, me if leading or timing.trust_absence else "", timing, stamp)
    if view.record.holder == me and (leading or view.record.renewed in view.sent):
        return Write(_renewed(view.record, timing, stamp), create=False)
    free_at = _free_at(view.record, view.seen_at, timing)
    return _claim(view.record, me, timing, stamp) if now >= free_at else Wait(free_at)


def observed(view: View, record: Record | None, *, me: str, now: float) -> View:
    """After a read: a new content starts a new count, the same content does not."""
    same = view.record is None if record is None else record.same_content(view.record)
    return View(
        known=True,
        record=record,
        seen_at=view.seen_at if same and view.seen_at != NEVER else now,
        valid_until=view.valid_until if record is None or record.holder == me else NEVER,
        sent=view.sent,
        transitions=max(view.transitions, record.transitions if record else -1),
    )


def sending(view: View, record: Record) -> View:
    """Before a write: remember it, and trust nothing until its answer is here."""
    return replace(view, known=False, sent=(*view.sent, record.renewed)[-SENT_KEPT:])


def written(record: Record, *, me: str, timing: Timing, sent_at: float, now: float) -> View:
    """After a write that succeeded: we lead if it names us, counted from before it was sent."""
    return View(
        known=True,
        record=record,
        seen_at=now,
        valid_until=sent_at + timing.renew_deadline if record.holder == me else NEVER,
        sent=(record.renewed,),
        transitions=record.transitions,
    )


def outdated(view: View) -> View:
    """Time has passed: look again before anything else."""
    return replace(view, known=False)


def given_up(view: View) -> View:
    """Stop leading by our own will; what the lease says is another matter."""
    return replace(view, valid_until=NEVER)


def release(record: Record, stamp: str) -> Record:
    """What to write in order to hand the lease back."""
    return replace(record, holder="", lease_seconds=RELEASED_SECONDS, renewed=stamp)


def _free_at(record: Record, seen_at: float, timing: Timing) -> float:
    # A holder that runs with a longer lease than ours promised to renew only within its own.
    return NEVER if record.released else seen_at + max(timing.lease_seconds, record.lease_seconds)


def _create(view: View, holder: str, timing: Timing, stamp: str) -> Write:
    """Without a holder if we do not lead: to see absence twice does not mean that nobody came and went in between.

    An empty record can be waited for like any other, and taking it fails if it is not the one that was waited for.
    """
    return Write(Record(holder, timing.lease_seconds, stamp, stamp, max(0, view.transitions)), create=True)


def _claim(record: Record, me: str, timing: Timing, stamp: str) -> Write:
    claimed = replace(
        record,
        holder=me,
        lease_seconds=timing.lease_seconds,
        acquired=stamp,
        renewed=stamp,
        transitions=record.transitions + 1,
    )
    return Write(claimed, create=False)


def _renewed(record: Record, timing: Timing, stamp: str) -> Record:
    return replace(record, lease_seconds=timing.lease_seconds, renewed=stamp)


def parse(lease: dict[str, Any]) -> Record:
    """A Lease object in JSON; fields that are missing, null or of a wrong type count as empty."""
    spec = _mapping(lease.get("spec"))
    meta = _mapping(lease.get("metadata"))
    return Record(
        holder=_text(spec.get("holderIdentity")),
        lease_seconds=_number(spec.get("leaseDurationSeconds")),
        acquired=_text(spec.get("acquireTime")),
        renewed=_text(spec.get("renewTime")),
        transitions=_number(spec.get("leaseTransitions")),
        version=_text(meta.get("resourceVersion")),
        uid=_text(meta.get("uid")),
    )


def render(record: Record, onto: dict[str, Any]) -> dict[str, Any]:
    """The object to send: what others put into the lease stays, the resourceVersion guards the write."""
    spec = _mapping(onto.get("spec")) | {
        "holderIdentity": record.holder,
        "leaseDurationSeconds": record.lease_seconds,
        "acquireTime": record.acquired or None,
        "renewTime": record.renewed,
        "leaseTransitions": record.transitions,
    }
    meta = dict(_mapping(onto.get("metadata")))
    if record.version:
        meta["resourceVersion"] = record.version
    return {**onto, "metadata": meta, "spec": spec}


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
