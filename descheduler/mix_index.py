"""Which objects ask for a mix of spot and on-demand, or for no spot at all, so that a pass need not look through all
workloads.

Kept by the one writer of the state. The annotations may stand on a pod, on what controls it, on what stands above
that, or on the namespace.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from descheduler.node_state import Key
from policy.keys import Keys
from policy.placement import SPOT_OF_TIER
from policy.values import Spot

K = TypeVar("K", str, Key)


class Asked:
    """For reading: keys of pods, UIDs of controllers, names of namespaces."""

    __slots__ = ("controllers", "namespaces", "pods")

    def __init__(self) -> None:
        self.pods: set[Key] = set()
        self.controllers: set[str] = set()
        self.namespaces: set[str] = set()


class MixIndex:
    """Who asks for what, as far as annotations tell; what holds in the end, the intent of each pod says."""

    def __init__(self, keys: Keys) -> None:
        self._mixing = keys.spot_percentage, keys.min_on_demand
        implied = tuple((keys.tier, tier.value) for tier, spot in SPOT_OF_TIER.items() if spot is Spot.AVOID)
        self._avoiding = (keys.spot, Spot.AVOID.value), *implied
        self.mixed = Asked()
        self.avoiding = Asked()

    def pod(self, key: Key, annotations: Mapping[str, str] | None) -> None:
        """What a pod says now; None: it is gone."""
        self._note(self.mixed.pods, self.avoiding.pods, key, annotations)

    def controller(self, uid: str, annotations: Mapping[str, str] | None) -> None:
        """What a Deployment, ReplicaSet, StatefulSet, DaemonSet or Job says now; None: it is gone."""
        self._note(self.mixed.controllers, self.avoiding.controllers, uid, annotations)

    def namespace(self, name: str, annotations: Mapping[str, str] | None) -> None:
        """What a namespace says now; None: it is gone."""
        self._note(self.mixed.namespaces, self.avoiding.namespaces, name, annotations)

    def _note(self, mixed: set[K], avoiding: set[K], key: K, annotations: Mapping[str, str] | None) -> None:
        said = annotations or {}
        _keep(mixed, key, asks=any(it in said for it in self._mixing))
        _keep(avoiding, key, asks=any(said.get(it) == value for it, value in self._avoiding))


def _keep(known: set[K], key: K, *, asks: bool) -> None:
    if asks:
        known.add(key)
    elif known:
        known.discard(key)
