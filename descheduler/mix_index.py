"""Which objects ask for a mix of spot and on-demand, so that a pass need not look through all workloads.

Kept by the one writer of the state. The annotations may stand on a pod, on what controls it, on what stands above
that, or on the namespace.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from descheduler.node_state import Key
from policy.keys import Keys

K = TypeVar("K", str, Key)


class MixIndex:
    """For reading: keys of pods, UIDs of controllers, names of namespaces."""

    def __init__(self, keys: Keys) -> None:
        self._wanted = keys.spot_percentage, keys.min_on_demand
        self.pods: set[Key] = set()
        self.controllers: set[str] = set()
        self.namespaces: set[str] = set()

    def pod(self, key: Key, annotations: Mapping[str, str] | None) -> None:
        """What a pod says now; None: it is gone."""
        self._note(self.pods, key, annotations)

    def controller(self, uid: str, annotations: Mapping[str, str] | None) -> None:
        """What a Deployment, ReplicaSet, StatefulSet, DaemonSet or Job says now; None: it is gone."""
        self._note(self.controllers, uid, annotations)

    def namespace(self, name: str, annotations: Mapping[str, str] | None) -> None:
        """What a namespace says now; None: it is gone."""
        self._note(self.namespaces, name, annotations)

    def _note(self, known: set[K], key: K, annotations: Mapping[str, str] | None) -> None:
        if annotations and any(it in annotations for it in self._wanted):
            known.add(key)
        elif known:
            known.discard(key)
