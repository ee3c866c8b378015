"""The emergency stop: one annotation on the ConfigMap of the settings, seen within a second or two.

`kubectl annotate configmap spotshift-settings -n spotshift-system scheduler.alpha.kubernetes.io/emergency-stop=true`
stops every new side effect; moves that are past their eviction run to their end, the others are called off. Until the
ConfigMap was looked for once, nobody knows whether it is set: nothing new is begun, and nothing is called off either.
What it said holds on when it is deleted: somebody who replaces it has not said that all is well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cluster.client import Client
from cluster.objects import PartialObjectMetadata
from cluster.reflector import Reflector
from cluster.resources import CONFIGMAPS
from cluster.runtime import Runtime
from cluster.source import ClusterSource
from cluster.store import Delta
from policy import values

UNKNOWN: Final = "the emergency stop is not known yet"


class Brake:
    """Follows one ConfigMap. One that never existed stops nothing."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        name: str,
        *,
        key: Callable[[], str],
        wake: Callable[[], None],
        runtime: Runtime,
        needed: bool = True,
    ) -> None:
        """`needed`: whether nothing may be begun before it was looked for. Where nobody configures us by a ConfigMap
        there may be none, nor a right to look for it.
        """
        source = ClusterSource(
            client,
            CONFIGMAPS,
            PartialObjectMetadata,
            namespace=namespace,
            field_selector=f"metadata.name={name}",
            metadata_only=True,
        )
        self._where = f"ConfigMap {namespace}/{name}"
        self._name = (namespace, name)
        self._key = key
        self._wake = wake
        self._needed = needed
        self._last: PartialObjectMetadata | None = None
        self._reflector = Reflector(source, self._changed, runtime=runtime, streaming=False, on_sync=wake)

    def start(self) -> None:
        """Begin to follow it."""
        self._reflector.start()

    def stop(self) -> None:
        """Stop following it."""
        self._reflector.stop(0)

    def problem(self) -> str | None:
        """For readiness: why a stop that somebody sets might not be seen."""
        return self._reflector.problem() if self._needed else None

    def why(self) -> str:
        """Why nothing new may be done; empty if it may."""
        return UNKNOWN if self._needed and not self._reflector.synced else self.said()

    def said(self) -> str:
        """Where somebody says stop, as far as is known: a reason to call off what has begun. Empty: nobody does."""
        key = self._key()
        value = self._last.metadata.annotations.get(key, "") if self._last is not None else ""
        said = values.emergency_stop(key, value, self._where)
        if not said:
            return ""
        gone = "" if self._reflector.store.get(self._name) is not None else ", which is gone; it ends with a new one"
        return f"emergency stop: {said}{gone}"

    def _changed(self, delta: Delta[PartialObjectMetadata]) -> None:
        self._last = delta.object
        self._wake()
