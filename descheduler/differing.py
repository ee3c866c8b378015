"""Whether an object that was heard of again says anything new.   Pure.

The heartbeat of a kubelet makes a new version and nothing else, and five thousand of them do so seventeen times a
second.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

META: Final = ("labels", "annotations", "deletion_timestamp", "owner_references", "generation")
"""Metadata of a known object that a plan may depend on."""


def differ(old: Any, new: Any) -> bool:
    """Whether anything that is read has changed."""
    fields = (name for name in type(new).__struct_fields__ if name != "metadata")
    return _differ_in(old, new, fields) or _differ_in(old.metadata, new.metadata, META)


def _differ_in(old: Any, new: Any, fields: Iterable[str]) -> bool:
    for name in fields:
        before, after = getattr(old, name), getattr(new, name)
        if before is not after and before != after:
            return True
    return False
