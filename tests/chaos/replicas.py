"""The number of replicas is the user's, or one more while a move that announced it doubles a pod.   Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from tests.chaos.records import Moves
from tests.chaos.watching import Seen

LAG_SECONDS: Final = 5.0
REMEMBERED_SECONDS: Final = 60.0
"""How long a number that a user has replaced may still be seen: a doubling that began with it ends with it."""


@dataclass(slots=True)
class Replicas:
    """Told what users want; sees what is there."""

    moves: Moves
    namespace: str
    wanted: dict[str, list[tuple[float, int]]] = field(default_factory=dict)
    """By workload: since when, and how many."""
    _waiting: list[Seen] = field(default_factory=list)

    def want(self, name: str, replicas: int, now: float) -> None:
        self.wanted.setdefault(name, []).append((now, replicas))

    def see(self, seen: Seen) -> Iterator[str]:
        """A version of a Deployment or StatefulSet."""
        if seen.namespace != self.namespace or seen.gone:
            return
        number, allowed = seen.object["spec"]["replicas"], self._allowed(seen)
        if number in allowed:
            return
        doubled = seen.resource == "deployments" and number - 1 in allowed
        if doubled:
            self._waiting.append(seen)
        else:
            yield f"{seen.resource} {seen.name} has {number} replicas, users wanted {sorted(allowed)}"

    @property
    def unjudged(self) -> int:
        """Doublings that are too young to judge."""
        return len(self._waiting)

    def look(self, now: float) -> Iterator[str]:
        """Whether what was doubled had been announced."""
        ripe = [it for it in self._waiting if it.at < now - LAG_SECONDS]
        self._waiting = [it for it in self._waiting if it.at >= now - LAG_SECONDS]
        for seen in ripe:
            if not self.moves.surging(seen.namespace, seen.name, before=seen.version, at=seen.at):
                yield f"{seen.name} got one more replica, and no PodMigration had announced that"

    def _allowed(self, seen: Seen) -> set[int]:
        """Numbers that users want, or wanted until a little while ago."""
        told = self.wanted.get(seen.name, [])
        replaced = [*(at for at, _ in told[1:]), float("inf")]
        return {told[i][1] for i in range(len(told)) if replaced[i] > seen.at - REMEMBERED_SECONDS}
