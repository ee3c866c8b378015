"""Would these pods fit on spot, together with all that were tried before?   Pure; books in a picture of its own.

The plan asks the same once more when it books. This is for who has to know beforehand: a node is worth emptying only
if all of its pods find a place.
"""

from __future__ import annotations

from collections.abc import Sequence

from cluster.objects import Pod
from descheduler.ledger import Ledger
from descheduler.places import Template, template
from descheduler.state import ClusterState
from policy.settings import Settings


class Trial:
    """Room that was given to one pod is not given to the next."""

    def __init__(self, state: ClusterState, settings: Settings) -> None:
        self._ledger = Ledger(state, settings)
        self._hopeless: set[Template] = set()

    def all(self, pods: Sequence[Pod]) -> bool:
        """Whether all of them fit; then their room is taken. Else nothing has changed."""
        if any(map(self.is_hopeless, pods)):
            return False
        placed: list[tuple[Pod, str]] = []
        for pod in pods:
            target = self._place(pod)
            if target is None:
                for earlier, where in reversed(placed):
                    self._undo(earlier, where)
                self._remember(pod, alone=not placed)
                return False
            placed.append((pod, target))
        return True

    def is_hopeless(self, pod: Pod) -> bool:
        """Whether one like it fitted nowhere. Room only gets less here, so that needs no second look."""
        return template(pod) in self._hopeless

    def _remember(self, pod: Pod, *, alone: bool) -> None:
        """Not with claims, which all differ, nor where it wants to be near others, who may come yet. If others were
        placed just before, whose room has been given back, it is tried once more without them.
        """
        if pod.claims or _wants_company(pod):
            return
        target = None if alone else self._place(pod)
        if target is None:
            self._hopeless.add(template(pod))
        else:
            self._undo(pod, target)

    def _place(self, pod: Pod) -> str | None:
        picture, places = self._ledger.picture, self._ledger.places
        picture.take(pod)
        target = places.choose(pod, spot=True, even=True)
        if target is None:
            picture.untake(pod)
            return None
        picture.put(pod, target)
        places.moved(pod, target)
        return target

    def _undo(self, pod: Pod, target: str) -> None:
        self._ledger.picture.unput(pod, target)
        self._ledger.picture.untake(pod)
        self._ledger.places.unmoved(pod, target)


def _wants_company(pod: Pod) -> bool:
    affinity = pod.spec.affinity
    return affinity is not None and affinity.pod_affinity is not None
