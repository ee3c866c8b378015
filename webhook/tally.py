"""Counts pods of workloads with a mix: those that a watch shows, and this replica's own choices that it does not show
yet.

The thread of the watch writes, the event loop reads and records; neither waits for the other. What both touch changes
in one step each (an entry of a dict, an end of a deque), so at worst a count is one step old.
"""

from collections import deque
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from cluster.store import Delta
from policy.keys import Keys
from policy.values import Side
from webhook import derive
from webhook.counts import Choice, Counted, Mixed, Owner
from webhook.watched import Watched

UNSEEN: Final = timedelta(seconds=10)
"""So long a choice counts that no watch has shown: the pod was refused by somebody else, or the watch is behind."""


class Tally:
    """One per process. `decider` is the name by which it knows the pods that it decided itself."""

    def __init__(self, decider: str, ours: Keys, now: Callable[[], datetime]) -> None:
        self._decider = decider
        self._ours = ours
        self._now = now
        self._seen: dict[Owner, Counted] = {}
        self._unseen: dict[tuple[Owner, Side], deque[datetime]] = {}
        self._recent: deque[tuple[datetime, Owner, Side]] = deque()
        """The choices of the last seconds, seen or not, the oldest first. Of the event loop alone."""
        self._followed: dict[tuple[Owner, str], datetime] = {}
        """When a choice followed a move, the oldest first. Of the event loop alone."""

    @property
    def decider(self) -> str:
        """As pods are told."""
        return self._decider

    # ---- the event loop

    def of(self, owner: Owner) -> Counted:
        """How many pods of this owner are on each side, or are about to be."""
        spot, on_demand = self._seen.get(owner, Counted())
        return Counted(spot + self._waiting(owner, Side.SPOT), on_demand + self._waiting(owner, Side.ON_DEMAND))

    def decided(self, choice: Choice) -> None:
        """The pod of a review that was answered with this choice will be created."""
        self._forget()
        if choice.fresh:
            self._unseen.setdefault((choice.owner, choice.side), deque()).append(self._now())
            self._recent.append((self._now(), choice.owner, choice.side))
        if choice.fresh and choice.move:
            self._followed.pop((choice.owner, choice.move), None)  # so that it becomes the newest
            self._followed[choice.owner, choice.move] = self._now()

    def is_followed(self, owner: Owner, move: str) -> bool:
        """Whether a choice of the last seconds follows this move. Later the pod never came, or its move knows it."""
        overdue = self._now() - UNSEEN
        while self._followed and self._followed[first := next(iter(self._followed))] <= overdue:
            del self._followed[first]
        return (owner, move) in self._followed

    def _forget(self) -> None:
        """Drop what waits for nothing any more. Most owners are never asked about again: a Job has one pod."""
        overdue = self._now() - UNSEEN
        while self._recent and self._recent[0][0] <= overdue:
            _, owner, side = self._recent.popleft()
            self._waiting(owner, side)

    def _waiting(self, owner: Owner, side: Side) -> int:
        found = self._unseen.get((owner, side))
        if found is None:
            return 0
        overdue = self._now() - UNSEEN
        while found and found[0] <= overdue:
            _drop_first(found)
        if not found:
            del self._unseen[owner, side]
        return len(found)

    # ---- the thread of the watch

    def apply(self, delta: Delta[Watched]) -> None:
        """One change of one pod."""
        before = None if delta.old is None else derive.mixed(delta.old.metadata, self._ours)
        after = None if delta.new is None else derive.mixed(delta.new.metadata, self._ours)
        if before is not None and before != after:
            self._count(before, -1)
        if after is not None and before != after:
            self._count(after, 1)
        if after is not None and before is None and after.decider == self._decider:
            _drop_first(self._unseen.get((after.owner, after.side), deque()))

    def _count(self, pod: Mixed, change: int) -> None:
        found = self._seen.get(pod.owner, Counted()).plus(pod.side, change)
        if any(found):
            self._seen[pod.owner] = found
        else:
            self._seen.pop(pod.owner, None)


def _drop_first(waiting: deque[datetime]) -> None:
    try:
        waiting.popleft()
    except IndexError:  # the other thread was quicker
        return
