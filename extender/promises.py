"""Which replacement was told which target, until the migrator says whose it is.

Pods of one owner are alike, and several of them may be moved at once. The scheduler places one pod after the other,
faster than a watch can tell where the last one went; two replacements that are sent to one node would leave another
target empty. So each target is promised to one pod, and the next pod gets the next. Only the process that made a
promise knows it; another replica makes its own, and the preference that the webhook wrote guides the pod as well.
"""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Final

from extender.view import Move

KEPT_FOR: Final = timedelta(seconds=60)
"""By then the replacement is bound and the migrator has seen it, or it needs no promise."""
REMEMBERED: Final = 4096


class Promises:
    """Owned by the event loop of one worker."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, str], tuple[str, datetime]] = {}
        """UID of the pod and the end of the promise, by move."""

    def target(self, moves: Sequence[Move], *, pod: str, nodes: Collection[str], now: datetime) -> str | None:
        """The target of this pod among the nodes that can take it; the one it was told before, if that still can."""
        reachable = [move for move in moves if move.target in nodes]
        held = [move for move in reachable if self._holder(move, now) == pod]
        free = [move for move in reachable if self._holder(move, now) is None]
        chosen = next(iter((*held, *free)), None)
        if chosen is None:
            return None
        if len(self._made) >= REMEMBERED:
            self._made = {key: made for key, made in self._made.items() if made[1] > now}
        self._made[chosen.key] = (pod, now + KEPT_FOR)
        return chosen.target

    def _holder(self, move: Move, now: datetime) -> str | None:
        pod, until = self._made.get(move.key, ("", now))
        return pod if until > now else None
