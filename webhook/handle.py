"""One request from bytes to bytes. Total: it never raises, and no answer of it denies a pod."""

import traceback
from datetime import datetime
from typing import Final

import msgspec

from webhook import mutate, patch, review, selfcheck
from webhook.counts import Choice
from webhook.memory import Memory
from webhook.mutate import Decision
from webhook.reasons import Note, Result, Skip
from webhook.review import BadRequest, Review
from webhook.view import View

JSON: Final = "application/json"
TEXT: Final = "text/plain; charset=utf-8"
NOTHING: Final = Decision()
"""Of a request that ended before there was one."""


class Outcome(msgspec.Struct, frozen=True):
    """The HTTP answer, and what logs and metrics say about it."""

    status: int
    body: bytes
    content_type: str
    result: Result
    decision: Decision = NOTHING
    uid: str = ""
    namespace: str = ""
    dry_run: bool = False
    error: str = ""
    """Type and place of an error of ours; never its message, which may quote the pod."""

    @property
    def skips(self) -> tuple[Skip, ...]:
        """Why the pod is left alone."""
        return self.decision.skips

    @property
    def notes(self) -> tuple[Note, ...]:
        """What the rules did."""
        return self.decision.notes

    @property
    def choice(self) -> Choice | None:
        """The side of the pod, if its workload asks for a mix."""
        return self.decision.choice

    @property
    def operations(self) -> int:
        """How many the patch has."""
        return len(self.decision.ops) if self.result is Result.PATCHED else 0

    @property
    def warnings(self) -> int:
        """How many the user is shown."""
        return len(self.decision.warnings)

    @property
    def ignored(self) -> int:
        """Values of ours, on the pod or above it, that are not accepted."""
        placed = self.decision.placed
        return len(placed.warnings) if placed is not None else 0


def handle(body: bytes, view: View, now: datetime, memory: Memory | None = None) -> Outcome:
    """Answer one admission review; with a memory, faster where a pod like this one was decided before."""
    known = None if memory is None else recalled(body, view, memory)
    return known or decided(body, view, now, memory)


def recalled(body: bytes, view: View, memory: Memory) -> Outcome | None:
    """The answer of before, under the uid of now."""
    try:
        known = memory.recall(body, view)
        if known is None:
            return None
        found = known.remembered
        sent = review.framed(found.frame, known.uid)
        return Outcome(200, sent, JSON, found.result, found.decision, known.uid, found.namespace, known.dry_run)
    except Exception:  # noqa: BLE001 - outermost place: then it is decided anew, and what is wrong is told there
        return None


def decided(body: bytes, view: View, now: datetime, memory: Memory | None = None) -> Outcome:
    """The answer, decided anew; a memory is told, if it was asked for this body just before."""
    try:
        parsed = review.parse(body)
    except Exception as error:  # noqa: BLE001 - outermost place; without a uid only the failure policy can allow
        return _failed(500, "internal error", Result.INTERNAL_ERROR, error=_where(error))
    if isinstance(parsed, BadRequest):
        return _failed(parsed.status, parsed.message, Result.BAD_REQUEST)
    try:
        return _counted(_answer(parsed, mutate.decide(parsed, view, now), memory), view)
    except Exception as error:  # noqa: BLE001 - outermost place: an error of ours must not cost anybody a pod
        audit = {"decision": Result.INTERNAL_ERROR.value}
        sent = review.allowed(parsed.uid, audit=audit)
        return _outcome(parsed, sent, Result.INTERNAL_ERROR, NOTHING, error=_where(error))


def _answer(parsed: Review, decision: Decision, memory: Memory | None = None) -> Outcome:
    if decision.choice is not None:
        memory = None  # the next pod like this one may get the other side
    if not decision.ops:
        sent = review.allowed(parsed.uid, warnings=decision.warnings, audit=decision.audit)
        return _decided(parsed, sent, decision, memory)
    if not selfcheck.applies(decision.ops, parsed.body):
        audit = {**decision.audit, "decision": Result.PATCH_UNAPPLICABLE.value}
        sent = review.allowed(parsed.uid, warnings=decision.warnings, audit=audit)
        return _outcome(parsed, sent, Result.PATCH_UNAPPLICABLE, decision)
    encoded = patch.encode(decision.ops)
    sent = review.patched(parsed.uid, encoded, warnings=decision.warnings, audit=decision.audit)
    return _decided(parsed, sent, decision, memory)


def _decided(parsed: Review, sent: bytes, decision: Decision, memory: Memory | None) -> Outcome:
    if memory is not None:
        memory.keep(decision, review.frame(sent, parsed.uid), parsed.namespace)
    return _outcome(parsed, sent, decision.result, decision)


def _counted(outcome: Outcome, view: View) -> Outcome:
    """The choice of a pod that will be created is known before any watch shows the pod."""
    if outcome.choice is not None and outcome.result is Result.PATCHED and not outcome.dry_run:
        view.counts.decided(outcome.choice)
    return outcome


def _outcome(parsed: Review, sent: bytes, result: Result, decision: Decision, *, error: str = "") -> Outcome:
    return Outcome(200, sent, JSON, result, decision, parsed.uid, parsed.namespace, parsed.dry_run, error)


def _failed(status: int, message: str, result: Result, *, error: str = "") -> Outcome:
    return Outcome(status, message.encode(), TEXT, result, error=error)


def _where(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {frames[-1].name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{place}"
