"""How long a pod that we ask to stop may take for it.   Pure."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from cluster.objects import Pod
from policy import durations
from policy.settings import Settings

SHORTEST: Final = timedelta(seconds=1)
"""What the API server makes of a grace period below zero."""


def of(pod: Pod, settings: Settings) -> timedelta:
    """What an eviction or a deletion of ours sends: the time of the settings, else the pod's own."""
    chosen = settings.migrations.grace_period_seconds
    return own(pod) if chosen is None else timedelta(seconds=chosen)


def own(pod: Pod) -> timedelta:
    """What the pod asks for. Anybody may write any number there: one that is too long for times to be reckoned with
    is as good as a century.
    """
    asked = pod.spec.termination_grace_period_seconds
    return durations.of_seconds(asked) if asked >= 0 else SHORTEST
