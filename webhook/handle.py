"""One request from bytes to bytes. Total: it never raises, and no answer of it denies a pod."""

import traceback
from datetime import datetime
from typing import Final

import msgspec

from webhook import mutate, patch, review, selfcheck
from webhook.counts import Choice
from webhook.memory import Known, Memory
from webhook.mutate import Decision
from webhook.reasons import Note, Result, Skip
from webhook.review import BadRequest, Review
from webhook.view import View

JSON: Final = "application/json"
TEXT: Final = "text/plain; charset=utf-8"


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The HTTP answer, and what logs and metrics say about it."""

    status: int
    body: bytes
    content_type: str = JSON
    result: Result
    skips: tuple[Skip, ...] = ()
    notes: tuple[Note, ...] = ()
    choice: Choice | None = None
    """The side of the pod, if its workload asks for a mix."""
    uid: str = ""
    namespace: str = ""
    dry_run: bool = False
    operations: int = 0
    """How many the patch has."""
    warnings: int = 0
    ignored: int = 0
    """Values of ours, on the pod or above it, that are not accepted."""
    error: str = ""
    """Type and place of an error of ours; never its message, which may quote the pod."""


def handle(body: bytes, view: View, now: datetime, memory: Memory | None = None) -> Outcome:
    """Answer one admission review; with a memory, faster where a pod like this one was decided before."""
    known = _recalled(body, view, memory)
    if known is not None:
        return known
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
        return _outcome(parsed, sent, Result.INTERNAL_ERROR, Decision(), error=_where(error))


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
        memory.keep(decision, review.frame(sent, parsed.uid))
    return _outcome(parsed, sent, decision.result, decision)


def _counted(outcome: Outcome, view: View) -> Outcome:
    """The choice of a pod that will be created is known before any watch shows the pod."""
    if outcome.choice is not None and outcome.result is Result.PATCHED and not outcome.dry_run:
        view.counts.decided(outcome.choice)
    return outcome


def _recalled(body: bytes, view: View, memory: Memory | None) -> Outcome | None:
    """The answer of before, under the uid of now."""
    try:
        known = memory.recall(body, view) if memory is not None else None
        return None if known is None else _again(known)
    except Exception:  # noqa: BLE001 - outermost place: then it is decided anew, and what is wrong is told there
        return None


def _again(known: Known) -> Outcome:
    decision = known.remembered.decision
    return _outcome(known, review.framed(known.remembered.frame, known.uid), decision.result, decision)


def _outcome(parsed: Review | Known, sent: bytes, result: Result, decision: Decision, *, error: str = "") -> Outcome:
    return Outcome(
        status=200,
        body=sent,
        result=result,
        skips=decision.skips,
        notes=decision.notes,
        choice=decision.choice,
        uid=parsed.uid,
        namespace=parsed.namespace,
        dry_run=parsed.dry_run,
        operations=len(decision.ops) if result is Result.PATCHED else 0,
        warnings=len(decision.warnings),
        ignored=len(decision.placed.warnings) if decision.placed else 0,
        error=error,
    )


def _failed(status: int, message: str, result: Result, *, error: str = "") -> Outcome:
    return Outcome(status=status, body=message.encode(), content_type=TEXT, result=result, error=error)


def _where(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {frames[-1].name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{place}"
