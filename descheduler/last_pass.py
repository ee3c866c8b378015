"""What a leader says of its last pass on its own Lease, for people who ask how it is doing.   Values only.

A pass that finds nothing to do leaves no other trace in the cluster, and a command cannot reach the metrics of a pod
everywhere. The Lease is written every few seconds anyway.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

import msgspec

from policy.keys import API_GROUP

KEY: Final = f"{API_GROUP}/last-pass"


class LastPass(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One pass in figures."""

    at: datetime
    seconds: float = 0.0
    """What the plan took."""
    moves: int = 0
    refusals: int = 0
    mode: str = ""
    """Of the settings that were in force."""
    stopped: str = ""
    """Why nothing new was begun, if so."""
    label_prefix: str = ""
    """Under which its keys are. The settings may ask for another one by now, which takes a restart."""


def notes(last: LastPass | None) -> Mapping[str, str]:
    """The annotation; none before the first pass."""
    return {} if last is None else {KEY: msgspec.json.encode(last).decode()}


def read(annotations: Mapping[str, str]) -> LastPass | None:
    """What the annotation says; None if there is none that can be read."""
    try:
        return msgspec.json.decode(annotations.get(KEY, ""), type=LastPass)
    except msgspec.DecodeError:
        return None
