"""Whose number of replicas it is, read from the managed fields of a fresh object.   Pure.

Whoever sets another number becomes its owner; whoever sets the same number again does not, unless by server-side
apply: that makes it an owner beside us. So a number is ours as long as it is the one we wrote and nobody owns it too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from descheduler.migration.actions import Scale

MANAGER: Final = "spotshift-surge"
"""Of the scale subresource alone, so that it owns nothing but numbers."""


def refusal(seen: Mapping[str, Any], action: Scale) -> str | None:
    """Why the number must be left alone; None if it may be set, or has been set as we want it."""
    replicas = seen["spec"]["replicas"]
    ours = owns(seen, MANAGER)
    if replicas == action.after:
        return None if action.owned or ours else f"somebody else set {replicas} replicas"
    if replicas != action.before:
        return f"somebody set {replicas} replicas, expected were {action.before}"
    if action.owned and not ours:
        return f"the number of replicas, {replicas}, was written by {writer(seen) or 'somebody else'} since"
    generation = seen["metadata"]["generation"]
    if action.generation is not None and generation != action.generation:
        return f"its specification was changed: generation {generation}, expected was {action.generation}"
    return None


def is_called_off(seen: Mapping[str, Any], action: Scale) -> bool:
    """Whether a raise comes too late: the label of its move is gone. The generation does not tell: labels leave it as
    it is.
    """
    if action.generation is None:
        return False
    labels = seen["metadata"].get("labels") or {}
    return action.mark is None or labels.get(action.mark[0]) != action.mark[1]


def owns(seen: Mapping[str, Any], manager: str) -> bool:
    """Whether this manager wrote the number last, and nobody has claimed it since."""
    return {it.get("manager") for it in _writers(seen)} == {manager}


def writer(seen: Mapping[str, Any]) -> str:
    """Who owns the number, for people."""
    return ", ".join(sorted({str(it.get("manager", "")) for it in _writers(seen)}))


def _writers(seen: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    entries = seen["metadata"].get("managedFields", ())
    return [it for it in entries if "f:replicas" in it.get("fieldsV1", {}).get("f:spec", {})]
