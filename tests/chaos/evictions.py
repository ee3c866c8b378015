"""No pod is evicted but the very one whose eviction was announced, while its move was open; and a pod that nobody
would replace only when its copy is Ready.   Pure.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from policy import keys
from testbed import objects
from testbed.api import Object
from tests.chaos.records import Moves
from tests.chaos.watching import Request, Seen

LAG_SECONDS: Final = 5.0
"""Until every watch has told what happened before."""
ORIGINAL: Final = keys.under().original_pod
PREFIX: Final = "rescheduled-"
"""What copies are called."""


@dataclass(frozen=True, slots=True)
class Eviction:
    """A pod that the eviction API took."""

    pod: Seen
    alone: bool
    """Nobody replaces it, and no copy of it was Ready."""
    abandoned: bool = False
    """A copy, and its original lives on."""


@dataclass(slots=True)
class Evictions:
    """Looks at each a little later, when all that came before it is known."""

    moves: Moves
    pods: dict[str, Object] = field(default_factory=dict)
    """Those there are, by UID."""
    known: set[str] = field(default_factory=set)
    names: set[tuple[str, str]] = field(default_factory=set)
    """Of the pods that were seen being evicted."""
    _waiting: list[Eviction] = field(default_factory=list)
    _granted: list[Request] = field(default_factory=list)

    def grant(self, request: Request) -> None:
        """An eviction in the audit log: the pod may come and go while a watch is being begun anew."""
        if (request.resource, request.verb, request.code) == ("pods/eviction", "create", 201):
            self._granted.append(request)

    def see(self, seen: Seen) -> Iterator[str]:
        """A version of a pod."""
        if was_evicted(seen.object) and seen.uid not in self.known:
            self.known.add(seen.uid)
            self.names.add((seen.namespace, seen.name))
            self._waiting.append(Eviction(seen, self._alone(seen.object), self._abandoned(seen.object)))
        if seen.gone:
            self.pods.pop(seen.uid, None)
        else:
            self.pods[seen.uid] = seen.object
        yield from ()

    @property
    def unjudged(self) -> int:
        """Evictions that are too young to judge."""
        return len(self._waiting)

    def look(self, now: float) -> Iterator[str]:
        """What was wrong with those that are old enough to judge."""
        ripe = [it for it in self._waiting if it.pod.at < now - LAG_SECONDS]
        self._waiting = [it for it in self._waiting if it.pod.at >= now - LAG_SECONDS]
        for eviction in ripe:
            yield from self._judge(eviction)
        granted = [it for it in self._granted if it.at < now - LAG_SECONDS]
        self._granted = [it for it in self._granted if it.at >= now - LAG_SECONDS]
        for request in granted:
            yield from self._unseen(request)

    def _judge(self, eviction: Eviction) -> Iterator[str]:
        if eviction.abandoned:
            return  # whoever takes leftovers back needs no move for that, and nothing is lost
        pod = eviction.pod
        what = f"pod {pod.namespace}/{pod.name} ({pod.uid})"
        entry = self.moves.announcing(pod.uid, pod.name, pod.version)
        if entry is None:
            yield f"{what} was evicted, and no PodMigration had announced that for this very pod"
            return
        if not entry.open:
            yield f"{what} was evicted when {entry.name} had ended as {entry.phase}"
        if eviction.alone and entry.step != "RemoveCopy":
            yield f"{what} has no controller and was evicted before a copy of it was Ready"

    def _unseen(self, request: Request) -> Iterator[str]:
        """Nobody saw which pod it was, so its name has to do."""
        pod = (request.namespace, request.name)
        if pod in self.names or request.name.startswith(PREFIX) or self.moves.has_announced(*pod):
            return
        yield f"pod {'/'.join(pod)} was evicted unseen, and no PodMigration had announced that for its name"

    def _abandoned(self, pod: Object) -> bool:
        meta = pod["metadata"]
        original = self.pods.get(meta.get("annotations", {}).get(ORIGINAL, ""))
        copied = original is not None and "deletionTimestamp" not in original["metadata"]
        return copied and meta["name"].startswith(PREFIX) and not meta.get("ownerReferences")

    def _alone(self, pod: Object) -> bool:
        if any(it.get("controller") for it in pod["metadata"].get("ownerReferences", ())):
            return False
        uid = pod["metadata"]["uid"]
        copies = [it for it in self.pods.values() if it["metadata"].get("annotations", {}).get(ORIGINAL) == uid]
        return not any(objects.is_ready(it) and "deletionTimestamp" not in it["metadata"] for it in copies)


def was_evicted(pod: Object) -> bool:
    """By the eviction API; only the product uses it here."""
    return any(
        it["type"] == "DisruptionTarget" and it.get("reason") == "EvictionByEvictionAPI"
        for it in pod.get("status", {}).get("conditions", ())
    )
