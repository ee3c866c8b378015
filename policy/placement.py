"""What a pod should get: its intent, where each part of it came from, and what could not be understood.

Decides only; the webhook turns an intent into a patch, the descheduler into proposals.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol, TypeVar

from policy import values
from policy.keys import Keys
from policy.reasons import Malformed
from policy.settings import Placement, Settings
from policy.values import Rescheduling, Spot, Tier

T = TypeVar("T")
Parser = Callable[[str, str], T | Malformed]


class Metadata(Protocol):
    """What we read of a pod, a workload or a namespace."""

    @property
    def labels(self) -> Mapping[str, str]:
        """Labels."""
        ...

    @property
    def annotations(self) -> Mapping[str, str]:
        """Annotations."""
        ...


class Level(StrEnum):
    """Who said it."""

    POD = "pod"
    WORKLOAD = "workload"
    NAMESPACE = "namespace"
    SETTINGS = "settings"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a part of an intent came from: who said it, in which key or setting."""

    level: Level
    key: str
    misread: Malformed | None = None
    """The value, where one that means nothing decided: only `rescheduling` knows such."""


@dataclass(frozen=True, slots=True)
class Misread:
    """A value that means nothing, and on whom it stands."""

    level: Level
    what: Malformed

    def __str__(self) -> str:
        """The sentence, for a warning."""
        return str(self.what)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A pod and what stands above it; a pod without a workload has None there."""

    namespace_name: str
    pod: Metadata
    workload: Metadata | None = None
    namespace: Metadata | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """What a pod should get."""

    spot: Spot
    tier: Tier
    rescheduling: Rescheduling
    spot_percentage: int | None
    min_on_demand: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """An intent that can be explained."""

    intent: Intent
    origins: Mapping[str, Origin]
    """By field name of the intent."""
    warnings: tuple[Misread, ...]


# The default intent of a tier, where nobody says `spot`; `standard` takes the settings' default.
SPOT_OF_TIER: Final = {Tier.CRITICAL: Spot.AVOID, Tier.BATCH: Spot.PREFER}

# Precedence. The first column that has a well-formed value decides; a malformed one is told and passed over.
#
#   field            pod         workload    namespace   settings
#   tier             annotation  annotation  annotation  placement.tier
#   spot             annotation  annotation  annotation  default of the tier, else placement.spot
#   rescheduling     either      either      either      placement.rescheduling
#   spot-percentage  annotation  annotation  annotation  placement.spotPercentage
#   min-on-demand    annotation  annotation  annotation  placement.minOnDemand
#
# `spot` said by anyone beats the default of a tier, even of a nearer one: saying is stronger than implying.
# `either` is label or annotation; where both stand on one object and disagree, that means disabled.
# A malformed `rescheduling` is not passed over: who wrote it meant something about evictions, most likely no, so it
# means disabled until it can be read.
# A share or a minimum that is said where spot is not `prefer` mixes nothing, and is told.
# In an excluded namespace the settings column is spot `ignore`, rescheduling `disabled`, and no mix.
# `critical` in a namespace that may not use it counts as malformed.


def decide(subject: Subject, *, keys: Keys, settings: Settings) -> Decision:
    """The intent for one pod, by the table above."""
    warnings: list[Misread] = []
    levels = _levels(subject)
    defaults = settings.placement
    excluded = subject.namespace_name in settings.excluded_namespaces
    parse_tier = _tier_parser(subject.namespace_name, defaults)
    tier, tier_origin = _nearest(levels, keys.tier, parse_tier, warnings) or (
        defaults.tier,
        Origin(Level.SETTINGS, "placement.tier"),
    )
    spot, spot_origin = _nearest(levels, keys.spot, values.spot, warnings) or _default_spot(
        tier, tier_origin, defaults, excluded=excluded
    )
    moving, moving_origin = _rescheduling(levels, keys.rescheduling, warnings) or _default_rescheduling(
        defaults, excluded=excluded
    )
    share, share_origin = _nearest(levels, keys.spot_percentage, values.spot_percentage, warnings) or (
        None if excluded else defaults.spot_percentage,
        Origin(Level.SETTINGS, "placement.spotPercentage"),
    )
    least, least_origin = _nearest(levels, keys.min_on_demand, values.min_on_demand, warnings) or (
        None if excluded else defaults.min_on_demand,
        Origin(Level.SETTINGS, "placement.minOnDemand"),
    )
    warnings += _unmixed(spot, {share_origin: share, least_origin: least})
    return Decision(
        intent=Intent(spot=spot, tier=tier, rescheduling=moving, spot_percentage=share, min_on_demand=least),
        origins={
            "spot": spot_origin,
            "tier": tier_origin,
            "rescheduling": moving_origin,
            "spot_percentage": share_origin,
            "min_on_demand": least_origin,
        },
        warnings=tuple(warnings),
    )


def may_be_critical(namespace: str, patterns: Sequence[str]) -> bool:
    """Whether a namespace is among those that may use `critical`; a trailing `*` matches any ending."""
    return any(
        namespace.startswith(pattern[:-1]) if pattern.endswith("*") else namespace == pattern for pattern in patterns
    )


def _levels(subject: Subject) -> list[tuple[Level, Metadata]]:
    found = [
        (Level.POD, subject.pod),
        (Level.WORKLOAD, subject.workload),
        (Level.NAMESPACE, subject.namespace),
    ]
    return [(level, metadata) for level, metadata in found if metadata is not None]


def _nearest(
    levels: Sequence[tuple[Level, Metadata]], key: str, parse: Parser[T], warnings: list[Misread]
) -> tuple[T, Origin] | None:
    for level, metadata in levels:
        text = metadata.annotations.get(key)
        parsed = None if text is None else parse(key, text)
        if isinstance(parsed, Malformed):
            warnings.append(Misread(level, parsed))
        elif parsed is not None:
            return parsed, Origin(level, key)
    return None


def _rescheduling(
    levels: Sequence[tuple[Level, Metadata]], key: str, warnings: list[Misread]
) -> tuple[Rescheduling, Origin] | None:
    for level, metadata in levels:
        texts = [text for text in (metadata.labels.get(key), metadata.annotations.get(key)) if text is not None]
        parsed = [values.rescheduling(key, text) for text in texts]
        unread = [it for it in parsed if isinstance(it, Malformed)]
        warnings.extend(Misread(level, it) for it in unread)
        said = {it for it in parsed if not isinstance(it, Malformed)}
        if len(said) > 1:
            both = "enabled and disabled as label and annotation"
            conflict = Malformed(key, both, "the same value in both; until then it is disabled")
            warnings.append(Misread(level, conflict))
        if Rescheduling.DISABLED in said:
            return Rescheduling.DISABLED, Origin(level, key)
        if unread:
            return Rescheduling.DISABLED, Origin(level, key, unread[0])
        if said:
            return Rescheduling.ENABLED, Origin(level, key)
    return None


def _tier_parser(namespace: str, defaults: Placement) -> Parser[Tier]:
    def parse(key: str, text: str) -> Tier | Malformed:
        parsed = values.tier(key, text)
        if parsed is Tier.CRITICAL and not may_be_critical(namespace, defaults.critical_namespaces):
            accepted = f"'standard' or 'batch': namespace {namespace} is not among placement.criticalNamespaces"
            return Malformed(key, text, accepted)
        return parsed

    return parse


def _default_spot(tier: Tier, tier_origin: Origin, defaults: Placement, *, excluded: bool) -> tuple[Spot, Origin]:
    if excluded:
        return Spot.IGNORE, Origin(Level.SETTINGS, "excludedNamespaces")
    implied = SPOT_OF_TIER.get(tier)
    if implied is not None:
        return implied, tier_origin
    return defaults.spot, Origin(Level.SETTINGS, "placement.spot")


def _unmixed(spot: Spot, said: Mapping[Origin, int | None]) -> Iterator[Misread]:
    """A mix that somebody asked for where all pods go to the same side. One of the settings is not meant for them."""
    for origin, value in said.items():
        if spot is not Spot.PREFER and value is not None and origin.level is not Level.SETTINGS:
            what = Malformed(origin.key, str(value), f"it with spot 'prefer', for here spot is '{spot}'")
            yield Misread(origin.level, what)


def _default_rescheduling(defaults: Placement, *, excluded: bool) -> tuple[Rescheduling, Origin]:
    if excluded:
        return Rescheduling.DISABLED, Origin(Level.SETTINGS, "excludedNamespaces")
    return defaults.rescheduling, Origin(Level.SETTINGS, "placement.rescheduling")
