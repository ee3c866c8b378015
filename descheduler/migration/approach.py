"""Which mode a migration is carried out in, asked when it is taken up and again before every step.   Pure.

A plan may be some seconds old and a user may ask for anything, so neither is simply believed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from cluster.objects import PodMigration
from descheduler import scaling
from descheduler.budgets import Budgets
from descheduler.guards.case import Case
from descheduler.migration import modes
from descheduler.migration.modes import Question
from descheduler.proposal import Mode, Urgency
from descheduler.reasons import Code, Reason

BUDGETS: Final = frozenset({Code.PDB_NO_BUDGET, Code.PDB_MULTIPLE})
"""Whether there is room at the moment of the eviction, the API knows best, and a drain waits for it."""


def decide(migration: PodMigration, case: Case, urgency: Urgency) -> tuple[Mode, tuple[Reason, ...]]:
    """The mode, and what speaks against it."""
    if case.pod.metadata.deletion_timestamp is not None:
        return Mode(scaling.mode_of(migration) or Mode.EVICT), ()
    surging = scaling.open_surges(case.context.state, migration)
    question = Question(urgency, surging=surging, deadline=migration.spec.deadline)
    found = (
        _at_first(migration, case, question)
        if migration.status.resolved is None
        else _again(migration, case, question)
    )
    if isinstance(found, Mode):
        return found, ()
    return Mode(scaling.mode_of(migration) or Mode.EVICT), tuple(it for it in found if it.code not in BUDGETS)


def _at_first(migration: PodMigration, case: Case, question: Question) -> Mode | tuple[Reason, ...]:
    asked = replace(question, budget=Budgets(case.context.state).reasons(case.pod), asked=migration.spec.mode)
    if not migration.spec.strategy:
        return modes.choose(case, asked)
    if migration.spec.mode == Mode.EVICT and question.urgency is Urgency.INTERRUPTION:
        return Mode.EVICT  # so decided when everything was looked at together
    if migration.spec.mode == Mode.SURGE and isinstance(modes.choose(case, asked), Mode):
        return Mode.SURGE
    return modes.choose(case, replace(asked, asked=""))


def _again(migration: PodMigration, case: Case, question: Question) -> Mode | tuple[Reason, ...]:
    mode = scaling.mode_of(migration)
    by_hand = not migration.spec.strategy and migration.spec.mode == mode
    if mode == Mode.EVICT and question.urgency is Urgency.INTERRUPTION:
        return Mode.EVICT  # that it has become the only Ready one, its node does not mind
    if mode != Mode.EVICT or by_hand:
        return modes.choose(case, replace(question, asked=mode))
    found = modes.choose(case, question)
    if found is Mode.SURGE:
        return (Reason(Code.SINGLE_REPLICA, "it has become the only Ready replica, and this move would evict it"),)
    return found
