"""How long a pod that we ask to stop may take for it.   Pure."""

from __future__ import annotations

from datetime import timedelta

from cluster.objects import Pod
from policy.settings import Settings


def of(pod: Pod, settings: Settings) -> timedelta:
    """What an eviction or a deletion of ours sends: the time of the settings, else the pod's own."""
    chosen = settings.migrations.grace_period_seconds
    return timedelta(seconds=pod.spec.termination_grace_period_seconds if chosen is None else chosen)
