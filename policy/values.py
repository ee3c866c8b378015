"""What may stand in our keys: one parser per key, returning the value or a reason.

User input never raises here.
"""

import hashlib
import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final, TypeVar

from policy import durations
from policy.reasons import Malformed, shorten

LABEL_VALUE_MAX: Final = 63
DNS_LABEL_MAX: Final = 63
NAME_MAX: Final = 253
_HASH_CHARACTERS: Final = 10  # 40 bits: two long node names of one cluster never meet
EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)
LATEST: Final = datetime(9000, 1, 1, tzinfo=UTC)
INT32_MAX: Final = 2**31 - 1  # what `spec.replicas` and the costs of pods hold

_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
_DNS_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_COUNT = re.compile(r"0|[1-9][0-9]{0,9}")
_COST = re.compile(r"0|-?[1-9][0-9]{0,9}")
_UID = re.compile(r"[A-Za-z0-9-]{1,128}")
_MIGRATION_ID = re.compile(r"migration-([0-9]{13})-([a-z0-9]{1,10})")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?Z")


class Rescheduling(StrEnum):
    """Whether a pod may be moved when nothing forces it."""

    ENABLED = "enabled"
    DISABLED = "disabled"


class Spot(StrEnum):
    """Where a pod should run; `ignore` means that we inject nothing."""

    PREFER = "prefer"
    REQUIRE = "require"
    AVOID = "avoid"
    IGNORE = "ignore"


class Side(StrEnum):
    """Where a pod of a workload with a mix belongs; the words are those of the capacity of nodes."""

    SPOT = "spot"
    ON_DEMAND = "on-demand"


class Tier(StrEnum):
    """How important a pod is."""

    CRITICAL = "critical"
    STANDARD = "standard"
    BATCH = "batch"


class MigrationStatus(StrEnum):
    """State of a move as pods show it."""

    PENDING = "pending"
    IN_PROGRESS = "in-progress"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class SafeToEvict(StrEnum):
    """The Cluster Autoscaler's word on a pod, which we honour."""

    TRUE = "true"
    FALSE = "false"
    ON_COMPLETION = "on-completion"


@dataclass(frozen=True, slots=True)
class MigrationId:
    """Identity of a move: when it was planned, and a suffix that makes it unique within that millisecond."""

    unix_ms: int
    suffix: str

    def __str__(self) -> str:
        """The label value."""
        return f"migration-{self.unix_ms:013d}-{self.suffix}"


E = TypeVar("E", bound=StrEnum)


def maintenance(key: str, value: str) -> bool | Malformed:
    """True, or why the label does not say so: a typo must not drain a node, nor be passed over in silence."""
    return True if value == "true" else Malformed(key, value, "'true', or remove the label")


def emergency_stop(key: str, value: str, where: str) -> str:
    """What an emergency stop is told as, empty where there is none. What cannot be read stops too, and says so: who
    writes `yes`, or `no`, must not find out from what is moved.
    """
    said = flag(key, value) if value else False
    if not said:
        return ""
    stops = "which stops as 'true' does: use 'true' or 'false'"
    doubt = f", with {shorten(value)!r}, {stops}" if isinstance(said, Malformed) else ""
    return f"{key} on {where}{doubt}"


def rescheduling(key: str, value: str) -> Rescheduling | Malformed:
    """Opt in or out; who reads it takes what it cannot read as a no, and says so."""
    parsed = _member(Rescheduling, key, value)
    if isinstance(parsed, Malformed):
        return replace(parsed, accepted=f"{parsed.accepted}; until then it is disabled")
    return parsed


def spot(key: str, value: str) -> Spot | Malformed:
    """Placement intent."""
    return _member(Spot, key, value)


def side(key: str, value: str) -> Side | Malformed:
    """Side of a mix."""
    return _member(Side, key, value)


def tier(key: str, value: str) -> Tier | Malformed:
    """Importance."""
    return _member(Tier, key, value)


def migration_status(key: str, value: str) -> MigrationStatus | Malformed:
    """State of a move."""
    return _member(MigrationStatus, key, value)


def safe_to_evict(key: str, value: str) -> SafeToEvict | Malformed:
    """Foreign: what its own reader passes over, such as `False`, is passed over here as well, and told."""
    return _member(SafeToEvict, key, value)


def flag(key: str, value: str) -> bool | Malformed:
    """Foreign: keys that are `true` or `false`."""
    return value == "true" if value in {"true", "false"} else Malformed(key, value, "'true' or 'false'")


def cost(key: str, value: str) -> int | Malformed:
    """Foreign: what deleting or evicting a pod costs, a 32-bit integer without leading zeros or plus."""
    if _COST.fullmatch(value) is None or not -INT32_MAX - 1 <= int(value) <= INT32_MAX:
        return Malformed(key, value, f"a whole number from {-INT32_MAX - 1} to {INT32_MAX}")
    return int(value)


def spot_percentage(key: str, value: str) -> int | Malformed:
    """Share of a workload on spot, in percent."""
    return _count(key, value, at_most=100)


def min_on_demand(key: str, value: str) -> int | Malformed:
    """Replicas that stay on on-demand."""
    return _count(key, value, at_most=INT32_MAX)


def do_not_disrupt(key: str, value: str) -> bool | timedelta | Malformed:
    """Foreign: `true`, or the time after the pod's start during which it must not be disturbed."""
    if value in {"true", "false"}:
        return value == "true"
    parsed = durations.parse(value)
    accepted = f"'true', 'false' or {durations.FORMAT}"
    return Malformed(key, value, accepted) if isinstance(parsed, Malformed) else parsed


def migration_id(key: str, value: str) -> MigrationId | Malformed:
    """Identity of a move."""
    found = _MIGRATION_ID.fullmatch(value)
    if found is None:
        return Malformed(key, value, "migration-<unix milliseconds>-<suffix of 1 to 10 characters a-z 0-9>")
    return MigrationId(int(found[1]), found[2])


def migration_time(key: str, value: str) -> datetime | Malformed:
    """Start of a move; always UTC, so that two readers never disagree."""
    refusal = Malformed(key, value, "an RFC 3339 time in UTC such as 2026-01-31T12:00:00Z")
    if _TIME.fullmatch(value) is None:
        return refusal
    try:
        return datetime.fromisoformat(value)
    except ValueError:  # the 31st of June
        return refusal


def plausible(when: datetime | None) -> datetime | None:
    """A time that somebody else wrote, if it can be reckoned with: a century before the year 1 or after the year 9999
    is an error and not a time. None for any other.
    """
    return when if when is not None and when.tzinfo is not None and EARLIEST <= when < LATEST else None


def format_time(when: datetime) -> str:
    """What `migration_time` reads; whole seconds, as Kubernetes writes times."""
    return when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def original_pod(key: str, value: str) -> str | Malformed:
    """UID of a pod."""
    return _text(key, value, ok=_UID.fullmatch(value) is not None, accepted="the UID of a pod")


def original_pod_name(key: str, value: str) -> str | Malformed:
    """Name of a pod."""
    return _text(key, value, ok=is_dns_name(value), accepted="the name of a pod")


def migration_target(key: str, value: str) -> str | Malformed:
    """Name of a node, in full."""
    return _text(key, value, ok=is_dns_name(value), accepted="the name of a node")


def migrated_from(key: str, value: str) -> str | Malformed:
    """What `label_for_node` wrote; compare it with `label_for_node(name)`, never with a name."""
    ok = value != "" and is_label_value(value)
    return _text(key, value, ok=ok, accepted="the name of a node, shortened to 63 characters")


def migration_reason(key: str, value: str) -> str | Malformed:
    """Name of a strategy."""
    ok = value != "" and is_label_value(value)
    return _text(key, value, ok=ok, accepted="the name of a strategy, at most 63 characters")


def is_label_value(text: str) -> bool:
    """Whether the API server accepts this as the value of a label."""
    return len(text) <= LABEL_VALUE_MAX and _LABEL_VALUE.fullmatch(text) is not None


def is_label_key(text: str) -> bool:
    """Whether the API server accepts this as the key of a label, an annotation or a taint."""
    prefix, slash, name = text.rpartition("/")
    return name != "" and is_label_value(name) and (is_dns_name(prefix) if slash else True)


def is_dns_name(text: str) -> bool:
    """Whether this may be the name of a pod or a node."""
    return len(text) <= NAME_MAX and _DNS_NAME.fullmatch(text) is not None


def is_dns_label(text: str) -> bool:
    """Whether this may be the name of a namespace, which has no dots."""
    return len(text) <= DNS_LABEL_MAX and _DNS_LABEL.fullmatch(text) is not None


def label_for_node(name: str) -> str:
    """A node name as a label value.

    Node names may have 253 characters, label values 63: a longer name keeps its beginning for people and ends
    in a hash of the whole, so that two nodes never share a value.
    """
    if is_label_value(name):
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_HASH_CHARACTERS]
    head = name[: LABEL_VALUE_MAX - _HASH_CHARACTERS - 1].rstrip("-_.")
    return f"{head}-{digest}" if is_label_value(head) and head else digest


def _member(closed_set: type[E], key: str, value: str) -> E | Malformed:
    try:
        return closed_set(value)
    except ValueError:
        return Malformed(key, value, one_of(tuple(closed_set)))


def _count(key: str, value: str, *, at_most: int) -> int | Malformed:
    if _COUNT.fullmatch(value) is None or int(value) > at_most:
        return Malformed(key, value, f"a whole number from 0 to {at_most}")
    return int(value)


def _text(key: str, value: str, *, ok: bool, accepted: str) -> str | Malformed:
    return value if ok else Malformed(key, value, accepted)


def one_of(words: tuple[str, ...]) -> str:
    """'a', 'b' or 'c'."""
    quoted = [f"'{word}'" for word in words]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"
