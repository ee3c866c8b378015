"""What every PodMigration said at every version: what was announced before something was done.   Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.chaos.watching import Seen

ENDED: Final = frozenset({"Completed", "Failed", "Cancelled"})
SURGING: Final = frozenset({"SurgeUp", "AwaitAvailable", "SurgeDown", "SurgeBack"})
LATE_SECONDS: Final = 60.0
"""A process that stood still may raise the replicas after its move has ended; so long may it take to be undone."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One version of one migration."""

    version: int
    at: float
    namespace: str
    name: str
    pod: str
    strategy: str
    mode: str
    phase: str
    step: str
    uid: str
    """Of the pod that the intent is about."""
    copies: frozenset[str]
    """Name or UID of the pod that replaces it."""
    workload: str

    @property
    def open(self) -> bool:
        return self.phase not in ENDED


@dataclass(slots=True)
class Moves:
    """All that were ever seen."""

    histories: dict[str, list[Entry]] = field(default_factory=dict)
    """By UID of the migration."""

    def see(self, seen: Seen) -> Iterator[str]:
        """Written down; a move that has ended stays as it ended."""
        history, entry = self.histories.setdefault(seen.uid, []), _entry(seen)
        if history and not history[-1].open and history[-1].phase != entry.phase:
            yield f"{entry.name} had ended as {history[-1].phase} and is {entry.phase} now"
        history.append(entry)

    def announcing(self, uid: str, name: str, before: int) -> Entry | None:
        """The last word, before that version, of the move that had announced the eviction of this very pod; of an
        open one where several have, one after the other.
        """
        past = [[it for it in history if it.version < before] for history in self.histories.values()]
        words = [found[-1] for found in past if any(_announces(it, uid, name) for it in found)]
        return min(words, key=lambda it: not it.open, default=None)

    def surging(self, namespace: str, workload: str, *, before: int, at: float) -> bool:
        """Whether a second pod of the workload had been announced by a move that was open then, or until just now."""
        for history in self.histories.values():
            past = [it for it in history if it.version < before]
            announced = any(
                it.step in SURGING and (it.namespace, it.workload) == (namespace, workload) for it in past
            )
            if announced and (past[-1].open or _ended_at(past) > at - LATE_SECONDS):
                return True
        return False

    def has_announced(self, namespace: str, pod: str) -> bool:
        """Whether any move ever announced the eviction of a pod of that name."""
        return any(
            it.namespace == namespace and ((it.pod == pod and it.step == "Evict") or pod in it.copies)
            for history in self.histories.values()
            for it in history
        )

    def latest(self) -> list[Entry]:
        """The last version of each."""
        return [history[-1] for history in self.histories.values()]


def _ended_at(history: Sequence[Entry]) -> float:
    return next(it.at for it in history if not it.open)


def _announces(entry: Entry, uid: str, name: str) -> bool:
    if entry.step == "RemoveCopy":
        return bool({uid, name} & entry.copies)
    return entry.step == "Evict" and uid == entry.uid


def _entry(seen: Seen) -> Entry:
    spec, status = seen.object["spec"], seen.object.get("status") or {}
    intent, resolved = status.get("intent") or {}, status.get("resolved") or {}
    return Entry(
        version=seen.version,
        at=seen.at,
        namespace=seen.namespace,
        name=seen.name,
        pod=spec["podRef"]["name"],
        strategy=spec.get("strategy", ""),
        mode=resolved.get("mode", ""),
        phase=status.get("phase", ""),
        step=status.get("step", ""),
        uid=intent.get("uid", ""),
        copies=frozenset({(status.get("replacement") or {}).get("uid", ""), intent.get("copy", "")}),
        workload=(resolved.get("workload") or {}).get("name", ""),
    )
