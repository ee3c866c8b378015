"""The table of all guards: which holds back which kind of move.   Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from cluster.objects import Pod
from descheduler.guards import circumstances, jobs, owners, wishes
from descheduler.guards.case import Case, Context
from descheduler.proposal import Urgency
from descheduler.reasons import Code, Reason


@dataclass(frozen=True, slots=True)
class Guard:
    """One row."""

    code: Code
    check: Callable[[Case], str | None]
    """The sentence if the guard holds the pod back, None if not."""
    voluntary: bool
    maintenance: bool
    interruption: bool

    @property
    def name(self) -> str:
        """Of the predicate, whose docstring says why it holds."""
        return self.check.__name__

    def holds(self, urgency: Urgency) -> bool:
        """Whether it counts for this kind of move."""
        return bool(getattr(self, urgency.value))


HOLDS: Final = True
_____: Final = False

# An interruption takes the pod anyway; what is left to decide is whether leaving early helps. It does not where
# nothing would come in its place, or where somebody is at it already. A drain is asked for by whoever runs the
# cluster: it goes before thrift and taste, but not before the word of whoever runs the application. A better place
# alone goes before nothing.
#
# fmt: off
GUARDS: Final[tuple[Guard, ...]] = (
    #     code                      predicate                         voluntary
    #                                                                        maintenance
    #                                                                               interruption
    Guard(Code.MIRROR,              owners.mirror,                    HOLDS, HOLDS, HOLDS),
    Guard(Code.DAEMONSET,           owners.daemonset,                 HOLDS, HOLDS, HOLDS),
    Guard(Code.TERMINATING,         circumstances.terminating,        HOLDS, HOLDS, HOLDS),
    Guard(Code.ALREADY_MIGRATING,   circumstances.already_migrating,  HOLDS, HOLDS, HOLDS),
    Guard(Code.ALREADY_MIGRATING,   circumstances.just_moved,         HOLDS, HOLDS, _____),
    Guard(Code.ALREADY_MIGRATING,   wishes.being_evicted,             HOLDS, HOLDS, HOLDS),
    Guard(Code.NO_CONTROLLER,       owners.no_controller,             HOLDS, HOLDS, HOLDS),
    Guard(Code.OPTED_OUT,           wishes.opted_out_by_owner,        HOLDS, HOLDS, _____),
    Guard(Code.OPTED_OUT,           wishes.opted_out_by_node,         HOLDS, _____, _____),
    Guard(Code.OPTED_OUT,           wishes.opted_out_by_settings,     HOLDS, _____, _____),
    Guard(Code.INVALID_VALUE,       wishes.misread_of_owner,          HOLDS, HOLDS, _____),
    Guard(Code.INVALID_VALUE,       wishes.misread_of_node,           HOLDS, _____, _____),
    Guard(Code.EXCLUDED_NAMESPACE,  circumstances.excluded_namespace, HOLDS, _____, _____),
    Guard(Code.SAFE_TO_EVICT_FALSE, wishes.safe_to_evict,             HOLDS, HOLDS, _____),
    Guard(Code.SAFE_TO_EVICT_FALSE, wishes.never_evict,               HOLDS, HOLDS, _____),
    Guard(Code.SAFE_TO_EVICT_FALSE, wishes.prefers_to_stay,           HOLDS, _____, _____),
    Guard(Code.SAFE_TO_EVICT_FALSE, wishes.moved_by_another,          HOLDS, _____, _____),
    Guard(Code.DO_NOT_DISRUPT,      wishes.do_not_disrupt,            HOLDS, HOLDS, _____),
    Guard(Code.JOB,                 jobs.job,                         HOLDS, _____, _____),
    Guard(Code.JOB,                 jobs.job_may_finish,              _____, HOLDS, _____),
    Guard(Code.JOB_WOULD_FAIL,      jobs.job_would_fail,              _____, HOLDS, _____),
    Guard(Code.STATEFULSET_BUSY,    owners.statefulset_moving,        HOLDS, HOLDS, _____),
    Guard(Code.STATEFULSET_BUSY,    owners.statefulset_unready,       HOLDS, _____, _____),
    Guard(Code.NODE_SILENT,         owners.tied_to_silence,           HOLDS, HOLDS, HOLDS),
    Guard(Code.PENDING_REVISION,    owners.pending_revision,          HOLDS, _____, _____),
    Guard(Code.LOCAL_STORAGE,       circumstances.local_storage,      HOLDS, _____, _____),
    Guard(Code.PINNED,              circumstances.pinned,             HOLDS, _____, _____),
    Guard(Code.FOREIGN_SCHEDULER,   circumstances.foreign_scheduler,  HOLDS, _____, _____),
    Guard(Code.RESOURCE_CLAIMS,     circumstances.resource_claims,    HOLDS, _____, _____),
    Guard(Code.PRIORITY_TOO_HIGH,   circumstances.priority_too_high,  HOLDS, _____, _____),
    Guard(Code.TOO_YOUNG,           circumstances.too_young,          HOLDS, _____, _____),
    Guard(Code.NOT_READY,           circumstances.not_ready,          HOLDS, _____, _____),
    Guard(Code.COOLING_DOWN,        circumstances.cooling_down,       HOLDS, _____, _____),
    Guard(Code.COOLING_DOWN,        circumstances.copy_failed,        HOLDS, HOLDS, HOLDS),
    Guard(Code.COOLING_DOWN,        circumstances.copy_serves,        HOLDS, HOLDS, HOLDS),
    Guard(Code.OUTSIDE_WINDOW,      circumstances.outside_window,     HOLDS, _____, _____),
)
# fmt: on

_COLUMNS: Final = {urgency: tuple(it for it in GUARDS if it.holds(urgency)) for urgency in Urgency}


def reasons(pod: Pod, context: Context, urgency: Urgency) -> tuple[Reason, ...]:
    """Everything that holds the pod back from a move of this kind; nothing means that it may be moved."""
    case = Case(pod, context)
    found = ((guard.code, guard.check(case)) for guard in _COLUMNS[urgency])
    return tuple(Reason(code, text) for code, text in found if text is not None)
