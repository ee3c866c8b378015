"""Strategies of installed packages, found through the entry-point group `spotshift.strategies`.

Only those that the settings list are loaded: installing a package must not switch it on. What goes wrong in one of
them leaves that one out, with the reason; all others go on, for interruptions and drains must not wait for it.
"""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from importlib import metadata
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from cluster.objects import Pod
from descheduler.picture import Picture
from descheduler.proposal import Aim, Proposal, Urgency
from descheduler.reasons import Code, Reason
from descheduler.state import ClusterState

GROUP: Final = "spotshift.strategies"
SHAPE: Final = ("NAME", "WEIGHT", "Args", "propose")
TIERS: Final = frozenset({True, False, None})
T = TypeVar("T")


class Unusable(Exception):
    """A listed strategy is not installed, is not a strategy, or proposes what nobody can do."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A strategy that has no part, or no further part, in a plan."""

    strategy: str
    why: str

    def __str__(self) -> str:
        """As people see it."""
        return f"{self.strategy}: {self.why}"


# ---- finding it


@functools.cache
def load(name: str) -> Any:
    """The module of a strategy, or the `LeftOut` that says why there is none. Looked up once: reading the metadata of
    every installed package takes a while, and what is installed does not change while we run.
    """
    try:
        return _load(name)
    except Exception as error:  # noqa: BLE001 - code of others runs when it is imported
        return LeftOut(name, _told(error))


def arguments(strategy: Any, args: Mapping[str, Any]) -> Any:
    """The arguments of the settings in the strategy's own type, which says what it accepts; or a `LeftOut`."""
    try:
        return msgspec.convert(dict(args), strategy.Args)
    except Exception as wrong:  # noqa: BLE001 - the type is of others
        return LeftOut(strategy.NAME, f"strategies.thirdParty.{strategy.NAME}.args: {_told(wrong)}")


def _load(name: str) -> Any:
    found = metadata.entry_points(group=GROUP)
    point = next((it for it in found if it.name == name), None)
    if point is None:
        known = ", ".join(sorted(it.name for it in found)) or "none"
        raise Unusable(f"strategies.thirdParty lists {name!r}, which no installed package offers; offered: {known}")
    module = point.load()
    missing = [part for part in SHAPE if not hasattr(module, part)]
    if missing:
        raise Unusable(f"strategy {name!r} ({point.value}) lacks {', '.join(missing)}")
    if name != module.NAME:
        raise Unusable(f"strategy {name!r} ({point.value}) calls itself {module.NAME!r}")
    return module


# ---- asking it


class Asked:
    """One strategy in one plan. Once it has failed it is not asked again, and nothing more of it is wanted."""

    def __init__(self, strategy: Any, args: Any, failed: Callable[[LeftOut], None]) -> None:
        self._strategy, self._args, self._tell = strategy, args, failed
        self.failed = False

    def proposals(self, state: ClusterState, now: datetime) -> Iterator[Proposal]:
        """What it proposes, until something goes wrong."""
        try:
            for proposal in self._strategy.propose(state, self._args, now):
                _check(proposal, state)
                if self.failed:
                    return
                aim = None if proposal.aim is None else _Aim(proposal.aim, self)
                yield replace(proposal, aim=aim)
        except Exception as error:  # noqa: BLE001 - code of others
            self.fail(error)

    def fail(self, error: Exception) -> None:
        """Leave it out from here on."""
        if not self.failed:
            self.failed = True
            self._tell(LeftOut(self._strategy.NAME, f"it failed: {_told(error)}"))

    def ask(self, question: Callable[[], T], otherwise: T) -> T:
        """The answer of an aim of it; the other one if it fails, or has failed before."""
        if not self.failed:
            try:
                return question()
            except Exception as error:  # noqa: BLE001 - code of others
                self.fail(error)
        return otherwise


@dataclass(frozen=True, slots=True)
class _Aim:
    """An aim of such a strategy. If it fails the pod stays: what is not known to help is not done."""

    aim: Aim
    asked: Asked

    def reached(self, picture: Picture) -> bool:
        """Whatever it was, once its strategy has failed nothing is wanted for it."""
        return self.asked.ask(lambda: bool(self.aim.reached(picture)), otherwise=True)

    def ceiling(self) -> float:
        """No node serves an aim that failed."""
        return self.asked.ask(lambda: float(self.aim.ceiling()), otherwise=0.0)

    def alike(self) -> Hashable:
        """Like no other if it cannot be compared."""
        return self.asked.ask(self._alike, otherwise=None)

    def objection(self, picture: Picture, pod: Pod, node: str) -> Reason | None:
        """That of the aim; to every node if it failed."""
        failed: Reason | None = Reason(Code.NO_IMPROVEMENT, "the strategy failed to say which nodes would help")
        return self.asked.ask(lambda: self._objection(picture, pod, node), otherwise=failed)

    def _alike(self) -> Hashable:
        found = self.aim.alike()
        hash(found)
        return found

    def _objection(self, picture: Picture, pod: Pod, node: str) -> Reason | None:
        found = self.aim.objection(picture, pod, node)
        if found is not None and not isinstance(found, Reason):
            raise Unusable("an objection is not a Reason")
        return found


def _check(proposal: Any, state: ClusterState) -> None:
    """The planner relies on what it is told."""
    if type(proposal) is not Proposal:
        raise Unusable("what it proposes is not a Proposal")
    if type(proposal.urgency) is not Urgency or not TIERS.issuperset(proposal.tiers):
        raise Unusable("a proposal has an urgency or tiers that do not exist")
    if proposal.deadline is not None and proposal.deadline.tzinfo is None:
        raise Unusable("a deadline has no time zone")
    known = state.pods.get(proposal.pod.metadata.key)
    if known is None or not known.node_name or known.node_name != proposal.pod.node_name:
        raise Unusable("it proposes a pod that is on no node")


def _told(error: Exception) -> str:
    """One sentence; of an error that is not about us the place and not the words, which differ from pass to pass."""
    if isinstance(error, Unusable | ImportError | msgspec.ValidationError):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{place}"
