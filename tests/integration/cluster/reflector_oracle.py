"""What must hold of a reflector whatever happened to it, checked from its log of deltas and from fresh
lists.
"""

from collections.abc import Iterable, Mapping

from cluster.meta import PartialObjectMetadata
from cluster.store import Delta, Key, Kind

Item = PartialObjectMetadata
Identity = tuple[str, str]
"""UID and resourceVersion."""


def replayed(log: Iterable[Delta[Item]]) -> tuple[dict[Key, Identity], list[str]]:
    """Apply the log in order; what it yields, and every way in which it is not a possible history."""
    state: dict[Key, Item] = {}
    problems: list[str] = []
    for index, delta in enumerate(log):
        problems += [f"delta {index} of {delta.key}: {problem}" for problem in _broken(delta, state.get(delta.key))]
        if delta.new is None:
            state.pop(delta.key, None)
        else:
            state[delta.key] = delta.new
    return {key: identity(item) for key, item in state.items()}, problems


def _broken(delta: Delta[Item], known: Item | None) -> Iterable[str]:
    if delta.kind is Kind.ADDED:
        if known is not None:
            yield "added although it was there"
        return
    if known is None:
        yield f"{delta.kind} although it was not there"
        return
    if delta.old is not known:
        yield "old is not what the log had before"
    if delta.kind is Kind.MODIFIED and delta.new is not None:
        if delta.new.metadata.uid != known.metadata.uid:
            yield "modified into another object"
        if int(delta.new.metadata.resource_version) <= int(known.metadata.resource_version):
            yield "went back in time"


def unseen(written: Iterable[str], log: Iterable[Delta[Item]], *, since: int) -> list[str]:
    """Acknowledged versions that never appeared. Only meaningful if nothing was listed again after
    `since`.
    """
    seen = {delta.new.metadata.resource_version for delta in log if delta.new is not None}
    return [version for version in written if int(version) > since and version not in seen]


def identity(item: Item) -> Identity:
    """What makes two observations of an object the same."""
    return item.metadata.uid, item.metadata.resource_version


def identities(objects: Iterable[Mapping[str, object]]) -> dict[Key, Identity]:
    """The same for plain JSON objects."""
    found: dict[Key, Identity] = {}
    for item in objects:
        meta = item["metadata"]
        if isinstance(meta, dict):
            found[meta["namespace"], meta["name"]] = meta["uid"], meta["resourceVersion"]
    return found
