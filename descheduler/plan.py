"""The plan of one pass: which pods move where, which stay, and why.   Pure: the same input gives the same plan.

Strategies propose; for each proposal, in the order of weight and deadline, the guards, the budgets, the limits and
the fit of every possible target are asked on the cluster as the moves before it will leave it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby
from typing import Final

from cluster.objects import Pod
from descheduler import guards, memory, search, strategies
from descheduler.guards import Context, jobs
from descheduler.guards.case import Case
from descheduler.ledger import Ledger
from descheduler.migration import modes
from descheduler.migration.modes import Question
from descheduler.node_state import Key, NodeLoad
from descheduler.picture import Picture
from descheduler.preemption import Room, Rooms, Victims
from descheduler.proposal import Aim, Mode, Move, Proposal, Refusal, Urgency
from descheduler.reasons import Code, Reason
from descheduler.search import Search
from descheduler.state import ClusterState
from descheduler.strategies import Active
from descheduler.strategies.third_party import LeftOut
from descheduler.summary import Summary
from descheduler.usage import Usage
from policy import keys
from policy.settings import Settings
from policy.settings_strategies import WhenNothingFits
from policy.values import Tier

_NEVER: Final = datetime.max.replace(tzinfo=UTC)
PASSING: Final = frozenset({Code.LIMIT_NODE, Code.LIMIT_NAMESPACE, Code.LIMIT_WORKLOAD})
"""Reasons that hold only while other moves are under way."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What should happen, what should not, and how full nodes are before and after."""

    moves: tuple[Move, ...]
    refusals: tuple[Refusal, ...]
    nodes: tuple[NodeLoad, ...]
    summary: Summary
    left_out: tuple[LeftOut, ...] = ()
    """Strategies that should have had a part in it, and could not or failed."""


def make(
    state: ClusterState,
    settings: Settings,
    now: datetime,
    usage: Usage | None = None,
    *,
    begun: Sequence[Move] = (),
    tell_all: bool = False,
) -> Plan:
    """The plan for the cluster as it is. `begun`: moves that were decided and that the state does not know yet;
    `tell_all`: with the reason of every pod for which nothing can be done, however many there are.
    """
    planner = _Planner(state, settings, now, begun)
    lineup = strategies.line_up(settings, usage)
    if tell_all:
        lineup = lineup.telling_all()
    for _, group in groupby(lineup.active, key=lambda it: it.weight):
        planner.consider(tuple(group))
    nodes = _loads(state, planner.outcome())
    return Plan(
        tuple(planner.moves),
        planner.refusals,
        nodes,
        Summary.of(planner.moves, planner.refusals, nodes, proposals=planner.proposals, limited=planner.limited),
        (*lineup.left_out, *planner.failed),
    )


@dataclass(frozen=True, slots=True)
class _Desk:
    """What a proposal is looked at with. Set up for the first one: most passes have none."""

    ledger: Ledger
    context: Context
    search: Search
    rooms: Rooms


@dataclass(frozen=True, slots=True)
class _Stuck:
    """A proposal for which there was no target after so many bookings."""

    active: Active
    proposal: Proposal
    booked: int


class _Planner:
    """The work of one pass."""

    def __init__(self, state: ClusterState, settings: Settings, now: datetime, begun: Sequence[Move] = ()) -> None:
        self._state = state
        self._settings = settings
        self._now = now
        self._begun = [it for it in begun if _is_still_there(it.pod, state)]
        self._desk: _Desk | None = None
        self._planned = {it.pod.metadata.key for it in self._begun}
        self._victims = Victims()
        self._second_look: list[_Stuck] = []
        self._refused: dict[tuple[Key, str], Refusal] = {}
        self._going: dict[str, dict[Key, Pod]] = {}
        """By node: pods that leave without this plan deciding anything more."""
        self.moves: list[Move] = []
        self.failed: list[LeftOut] = []
        self.proposals = 0
        self.limited: Reason | None = None

    def outcome(self) -> Picture | None:
        """The cluster after the plan; None if nothing was proposed."""
        if self._desk is None:
            return None
        self._victims.show(self._desk.ledger, gone=True)
        return self._desk.ledger.picture

    @property
    def refusals(self) -> tuple[Refusal, ...]:
        """In the order of the proposals."""
        return tuple(self._refused.values())

    def consider(self, group: tuple[Active, ...]) -> None:
        """All proposals of strategies of one weight, by deadline."""
        streams = [(active, iter(active.propose(self._state, self._now, self.failed.append))) for active in group]
        heap: list[tuple[datetime, int, Proposal]] = []
        for number, (_, stream) in enumerate(streams):
            _pull(heap, number, stream)
        while heap:
            _, number, proposal = heapq.heappop(heap)
            self.proposals += 1
            active, stream = streams[number]
            if self._consider(active, proposal):
                _pull(heap, number, stream)
        while self._look_again():
            pass

    def _look_again(self) -> bool:
        """Moves that were booked later may have made room, or evened out what was too uneven."""
        before = len(self.moves)
        stuck, self._second_look = self._second_look, []
        for item in stuck:
            if item.booked == self._opened().ledger.booked:
                self._second_look.append(item)
            elif not self._consider(item.active, item.proposal):
                return False
        return len(self.moves) > before

    def _consider(self, active: Active, proposal: Proposal) -> bool:
        """Whether the strategy should be asked for more."""
        desk, pod = self._opened(), proposal.pod
        ledger = desk.ledger
        if pod.metadata.key in self._planned:
            return True
        if self._victims:
            self._victims.show(ledger, gone=self._pushes_out(proposal, desk))
        if proposal.aim is not None and self._reached(proposal.aim, pod.node_name, ledger.picture):
            return True
        if proposal.urgency is Urgency.VOLUNTARY and ledger.limits.exhausted:
            self.limited = ledger.limits.total_reason()
            self._refuse(active, pod, (self.limited,))
            return False
        self._decide(active, proposal, desk)
        return True

    def _decide(self, active: Active, proposal: Proposal, desk: _Desk) -> None:
        pod, urgency, ledger = proposal.pod, proposal.urgency, desk.ledger
        question = Question(urgency, ledger.budgets.reasons(pod), ledger.surging, deadline=proposal.deadline)
        waits = _waits(pod, question, ledger)
        mode = question.budget if waits else modes.choose(Case(pod, desk.context), question)
        unsuited = () if isinstance(mode, Mode) else mode
        reasons = (*guards.reasons(pod, desk.context, urgency), *unsuited, *ledger.limiting(pod, urgency))
        if reasons or not isinstance(mode, Mode):
            self._refuse(active, pod, reasons)
            if all(reason.code in PASSING or (waits and reason in question.budget) for reason in reasons):
                self._leavers(pod.node_name)[pod.metadata.key] = pod
            return
        ledger.picture.take(pod)
        found = desk.search.target(proposal)
        if isinstance(found, str) and mode is Mode.SURGE:
            found = _beside(pod, found, ledger)
        if isinstance(found, str):
            self._book(active, proposal, found, ledger, mode)
        elif (room := self._made_room(proposal, desk)) is not None:
            self._book(active, proposal, room.node, ledger, mode, room.victims)
        else:
            held = _held(Case(pod, desk.context), question, mode, found)
            if self._leaves_anyway(urgency) and not held:
                self._book(active, proposal, None, ledger, Mode.EVICT if mode is Mode.SURGE else mode)
                return
            ledger.picture.untake(pod)
            self._refuse(active, pod, held or (found,))
            self._second_look.append(_Stuck(active, proposal, ledger.booked))

    def _made_room(self, proposal: Proposal, desk: _Desk) -> Room | None:
        """For a critical pod that an interruption drives out: what its priority is for. Nothing else counts on it."""
        if not self._pushes_out(proposal, desk):
            return None
        tiers = search.tiers_of(Case(proposal.pod, desk.context), proposal.urgency)
        room = desk.rooms.find(proposal.pod, tiers)
        if room is not None:
            self._victims.add(room.victims, desk.ledger)
            # Nobody decides about them a second time.
            self._planned.update(it.metadata.key for it in room.victims)
        return room

    def _pushes_out(self, proposal: Proposal, desk: _Desk) -> bool:
        if proposal.urgency is not Urgency.INTERRUPTION or not self._settings.strategies.spot_interruption.preempt:
            return False
        return Case(proposal.pod, desk.context).decision.intent.tier is Tier.CRITICAL

    def _reached(self, aim: Aim, node: str, picture: Picture) -> bool:
        """Whether the aim is reached once those are gone that are leaving already, and those whose turn comes when a
        move under way has ended. Moving smaller pods in their place would only make it more moves.
        """
        gone = picture.departed.get(node, ())
        going = [pod for key, pod in self._leavers(node).items() if key not in gone]
        for pod in going:
            picture.take(pod)
        reached = aim.reached(picture)
        for pod in going:
            picture.untake(pod)
        return reached

    def _leavers(self, node: str) -> dict[Key, Pod]:
        known = self._going.get(node)
        if known is None:
            found = self._state.nodes.get(node)
            pods = found.pods.values() if found is not None else ()
            ending = (pod for pod in pods if pod.metadata.deletion_timestamp is not None)
            known = self._going[node] = {pod.metadata.key: pod for pod in ending}
        return known

    def _refuse(self, active: Active, pod: Pod, reasons: tuple[Reason, ...]) -> None:
        self._refused[pod.metadata.key, active.name] = Refusal(pod, active.name, reasons)

    def _book(
        self,
        active: Active,
        proposal: Proposal,
        target: str | None,
        ledger: Ledger,
        mode: Mode,
        victims: tuple[Pod, ...] = (),
    ) -> None:
        pod = proposal.pod
        ledger.book(pod, target, mode)
        for victim in victims:
            ledger.budgets.book(victim)  # the scheduler asks no budget, but what it takes is gone for the others
        for lost in (pod, *victims):
            jobs.book(lost, self._opened().context)
        self._planned.add(pod.metadata.key)
        self._refused.pop((pod.metadata.key, active.name), None)
        self.moves.append(
            Move(
                pod,
                pod.node_name,
                target,
                active.name,
                active.weight,
                proposal.urgency,
                _with_victims(proposal.why, victims),
                proposal.deadline,
                mode,
                victims,
            )
        )

    def _leaves_anyway(self, urgency: Urgency) -> bool:
        """Whether a pod that fits nowhere is evicted all the same."""
        if urgency is Urgency.MAINTENANCE:
            return self._settings.strategies.node_maintenance.when_nothing_fits is WhenNothingFits.EVICT
        return urgency is Urgency.INTERRUPTION

    def _opened(self) -> _Desk:
        if self._desk is None:
            state, settings, now = self._state, self._settings, self._now
            cooldowns = memory.cooldowns(state.migrations.values(), settings, now)
            context = Context(state, settings, keys.under(settings.label_prefix), now, cooldowns)
            ledger = Ledger(state, settings)
            for move in self._begun:
                pod = state.pods[move.pod.metadata.key]
                if _is_written_down(pod, state):
                    continue  # written down meanwhile, and booked with the others
                ledger.picture.take(pod)
                ledger.book(pod, move.target if move.target in state.nodes else None, move.mode)
                jobs.book(pod, context)
            self._desk = _Desk(ledger, context, Search(ledger, context), Rooms(ledger))
        return self._desk


def _is_still_there(pod: Pod, state: ClusterState) -> bool:
    """It may have gone, with its node or without, while its move was being written down."""
    known = state.pods.get(pod.metadata.key)
    return known is not None and known.metadata.uid == pod.metadata.uid and bool(known.node_name)


def _is_written_down(pod: Pod, state: ClusterState) -> bool:
    """Whether a migration moves this very pod: that of another one with its name may still be open."""
    moves = state.moving.by_pod.get(pod.metadata.key, ())
    return any(it.spec.pod_ref.uid in {"", pod.metadata.uid} for it in moves)


def _with_victims(why: str, victims: Sequence[Pod]) -> str:
    names = ", ".join(f"{it.metadata.namespace}/{it.metadata.name}" for it in victims)
    return f"{why}; kube-scheduler has to pre-empt {names}" if names else why


def _beside(pod: Pod, target: str, ledger: Ledger) -> str | Reason:
    """The target of a pod that is still there when its replacement comes."""
    ledger.picture.untake(pod)
    misfits = ledger.fitter.misfits(pod, target)
    ledger.picture.take(pod)
    text = "; ".join(it.text for it in misfits)
    return (
        Reason(Code.NO_NODE_FITS, f"beside the pod itself there is no room for another on {target}: {text}")
        if text
        else target
    )


def _held(case: Case, question: Question, mode: Mode, found: Reason) -> tuple[Reason, ...]:
    """Why a pod that has to go, and whose double has no place, cannot be evicted without one either: a move that only
    the API refuses would be given up and begun again in every pass.
    """
    if mode is not Mode.SURGE or question.urgency is not Urgency.INTERRUPTION or not modes.is_crowded(case):
        return ()
    return tuple(Reason(it.code, f"{it.text}, and it cannot be doubled: {found.text}") for it in question.budget)


def _waits(pod: Pod, question: Question, ledger: Ledger) -> bool:
    """Whether the budget of the pod is used up by moves of its own workload: then its turn comes, and it need not be
    doubled for that.
    """
    used_up = question.budget and all(it.code is Code.PDB_NO_BUDGET for it in question.budget)
    return bool(used_up) and question.urgency is Urgency.VOLUNTARY and ledger.limits.moving(pod) > 0


def _pull(heap: list[tuple[datetime, int, Proposal]], number: int, stream: Iterator[Proposal]) -> None:
    proposal = next(stream, None)
    if proposal is not None:
        heapq.heappush(heap, (proposal.deadline or _NEVER, number, proposal))


def _loads(state: ClusterState, picture: Picture | None) -> tuple[NodeLoad, ...]:
    """Of all nodes, by name; only those that a move touches are not as they were."""
    everyone = state.roster.everyone()
    if picture is None:
        return tuple(everyone.levels)
    levels = everyone.levels.copy()
    for name in picture.touched:
        if name in everyone:
            place = everyone.place(name)
            levels[place] = replace(levels[place], after=picture.load(name))
    return tuple(levels)
