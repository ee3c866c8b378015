"""Why a pod should run elsewhere: one module per strategy, all of one shape, in one explicit list.

A strategy proposes. It never evicts, never counts against limits and never reads the clock; the plan does the rest.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Protocol

import msgspec

from descheduler.proposal import Proposal
from descheduler.state import ClusterState
from descheduler.strategies import (
    load_balancing,
    node_maintenance,
    resource_optimization,
    spot_interruption,
    spot_mix,
    spot_reclaim,
    third_party,
)
from descheduler.strategies.third_party import Asked, LeftOut
from descheduler.usage import Usage
from policy.settings import Settings
from policy.settings_strategies import ThirdParty


class Strategy(Protocol):
    """The shape of a strategy: a module with these names."""

    @property
    def NAME(self) -> str:  # noqa: N802 - a constant of the module
        """Its name in the settings, in metrics and on migrations."""

    @property
    def WEIGHT(self) -> int:  # noqa: N802 - a constant of the module
        """Order among strategies where the settings do not say."""

    @property
    def Args(self) -> type[Any]:  # noqa: N802 - a class of the module
        """A msgspec Struct with a default for every field."""

    def propose(self, state: ClusterState, args: Any, now: datetime) -> Iterable[Proposal]:
        """Pods that should run elsewhere, the most urgent first. Lazily: a pass may stop asking."""


# In the order in which strategies of the same weight are asked.
REGISTRY: Final[tuple[Strategy, ...]] = (
    spot_interruption,  # the node goes whatever we do
    node_maintenance,  # somebody is waiting for the node
    load_balancing,  # often solves what the next one would find, with fewer moves
    resource_optimization,
    spot_mix,  # decides for workloads with a mix, which the next one leaves alone
    spot_reclaim,
)


@dataclass(frozen=True, slots=True)
class Active:
    """A strategy that takes part in a plan, with what the settings say about it."""

    name: str
    weight: int
    strategy: Strategy
    args: Any
    foreign: bool = False
    """Whether it comes from a package of others."""

    def propose(
        self, state: ClusterState, now: datetime, failed: Callable[[LeftOut], None] = lambda _: None
    ) -> Iterable[Proposal]:
        """Ask it. One of others that fails proposes nothing more, and `failed` is told why."""
        if self.foreign:
            return Asked(self.strategy, self.args, failed).proposals(state, now)
        return self.strategy.propose(state, self.args, now)

    def telling_all(self) -> Active:
        """The same, where it proposes only some of the pods for which nothing can be done."""
        if self.foreign or "told" not in getattr(self.args, "__struct_fields__", ()):
            return self
        return replace(self, args=msgspec.structs.replace(self.args, told=sys.maxsize))


@dataclass(frozen=True, slots=True)
class Lineup:
    """Who takes part in a plan, the heaviest first, and who should but cannot."""

    active: tuple[Active, ...]
    left_out: tuple[LeftOut, ...] = ()

    def telling_all(self) -> Lineup:
        """The same, each of them telling all."""
        return replace(self, active=tuple(it.telling_all() for it in self.active))


def active(settings: Settings, usage: Usage | None = None) -> tuple[Active, ...]:
    """Those that are enabled and can be asked, the heaviest first."""
    return line_up(settings, usage).active


def line_up(settings: Settings, usage: Usage | None = None) -> Lineup:
    """The same, with those that cannot be asked."""
    enabled = frozenset(settings.enabled_strategies)
    weights = _weights(settings)
    own = [
        Active(it.NAME, weights.get(it.NAME, it.WEIGHT), it, it.Args.of(settings, usage))
        for it in REGISTRY
        if it.NAME in enabled
    ]
    listed = sorted(settings.strategies.third_party.items())
    foreign = [_foreign(name, it) for name, it in listed if name in enabled]
    usable = (it for it in foreign if isinstance(it, Active))
    return Lineup(
        tuple(sorted((*own, *usable), key=lambda it: -it.weight)),
        tuple(it for it in foreign if isinstance(it, LeftOut)),
    )


def _foreign(name: str, listed: ThirdParty) -> Active | LeftOut:
    found = third_party.load(name)
    if isinstance(found, LeftOut):
        return found
    args = third_party.arguments(found, listed.args)
    return args if isinstance(args, LeftOut) else Active(name, listed.weight, found, args, foreign=True)


def _weights(settings: Settings) -> dict[str, int]:
    named = settings.strategies
    return {
        spot_interruption.NAME: named.spot_interruption.weight,
        node_maintenance.NAME: named.node_maintenance.weight,
        load_balancing.NAME: named.load_balancing.weight,
        resource_optimization.NAME: named.resource_optimization.weight,
        spot_mix.NAME: named.spot_mix.weight,
        spot_reclaim.NAME: named.spot_reclaim.weight,
    }
