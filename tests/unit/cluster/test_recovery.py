"""What a reflector does next, as a table, and how many requests it can be made to send."""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from cluster import errors, recovery
from cluster.pace import Pace
from cluster.recovery import Cause, Course, Outcome, Phase, Tuning

TUNING = Tuning(pace=Pace(0.5, 30.0, jitter=0.0), denied=Pace(1.0, 300.0, jitter=0.0), jitter=0.0)
WATCHING = Course(listing=None)
GONE = errors.Gone("too old", status=410)
DOWN = errors.Unreachable("refused", maybe_applied=False)
CUT = errors.Unreachable("cut")
SILENT = errors.Unreachable("no byte", timed_out=True)
BROKEN = errors.ServerError("no", status=500)
DENIED = errors.Forbidden("no", status=403)
INVALID = errors.Invalid("unknown parameter", status=422)


def after(course: Course, outcome: Outcome) -> tuple[Course, float]:
    found = recovery.after(course, outcome, tuning=TUNING, rng=random.Random(1))
    return found.course, found.delay


def watch(lived: float, error: errors.ApiError | None = None, *, progressed: bool = False) -> Outcome:
    return Outcome(Phase.WATCH, lived, progressed, error)


def opened(lived: float, error: errors.ApiError | None = None, *, progressed: bool = False) -> Outcome:
    return Outcome(Phase.WATCH, lived, progressed, error, opened=True)


def failing(failures: int, **changes: Any) -> Course:
    return replace(WATCHING, failures=failures, **changes)


TABLE: dict[str, tuple[Course, Outcome, Course, float]] = {
    "cut at once": (WATCHING, watch(0.1, DOWN), failing(1), 0.5),
    "cut at once, again": (failing(3), watch(0.1, DOWN), failing(4), 4.0),
    "cut after a healthy life": (failing(5), watch(60, DOWN, progressed=True), WATCHING, 0.5),
    "dies at once after some events": (failing(3), watch(0.1, DOWN, progressed=True), failing(3), 4.0),
    "ended at once without a word": (failing(2), watch(0.1), failing(3), 2.0),
    "ended at once after some events": (failing(2), watch(0.1, progressed=True), failing(2), 2.0),
    "held open without a byte": (WATCHING, opened(90, SILENT), failing(1, silent=90), 0.5),
    "held open without a byte for the third time": (
        failing(1, silent=180),
        opened(90, SILENT),
        failing(1, silent=270, listing=Cause.STUCK),
        0.5,
    ),
    "silent, and cut by somebody between": (
        failing(1, silent=240),
        opened(35, CUT),
        failing(1, silent=275, listing=Cause.STUCK),
        0.5,
    ),
    "silent, and ended as asked": (
        failing(1, silent=180),
        opened(90),
        failing(1, silent=270, listing=Cause.STUCK),
        0.5,
    ),
    "a bookmark ends the silence": (failing(1, silent=180), opened(90, SILENT, progressed=True), WATCHING, 0.5),
    "not even accepted": (failing(1, silent=180), watch(90, SILENT), failing(1, silent=180), 0.5),
    "silent before a list": (
        Course(listing=Cause.STUCK, silent=270),
        Outcome(Phase.STREAM, 1, True, opened=True),
        WATCHING,
        0.0,
    ),
    "gone": (WATCHING, watch(60, GONE), failing(1, listing=Cause.GONE), 0.5),
    "gone again and again": (failing(4), watch(0.1, GONE), failing(5, listing=Cause.GONE), 8.0),
    "gone after events costs a list": (
        failing(4),
        watch(1, GONE, progressed=True),
        failing(5, listing=Cause.GONE),
        8.0,
    ),
    "throttled": (WATCHING, watch(0.1, errors.Throttled("", retry_after=7)), failing(1), 7.0),
    "throttled for less than our own wait": (
        failing(4),
        watch(0, errors.Throttled("", retry_after=1)),
        failing(5),
        8.0,
    ),
    "denied": (WATCHING, watch(0.1, DENIED), failing(1, denials=1), 1.0),
    "denied after it was down": (failing(6), watch(0.1, DENIED), failing(7, denials=1), 1.0),
    "denied, then cut, is still denied": (failing(1, denials=1), watch(0.1, DOWN), failing(2, denials=1), 1.0),
    "denied for long": (failing(9, denials=9), watch(0.1, DENIED), failing(10, denials=10), 300.0),
    "denied no more": (failing(3, denials=3), watch(1, DOWN, progressed=True), failing(3), 4.0),
    "listed after a denial": (Course(denials=2), Outcome(Phase.STREAM, 1), WATCHING, 0.0),
    "not known to the server": (WATCHING, watch(0.1, BROKEN), failing(1, fruitless=1), 0.5),
    "still not known": (
        failing(2, fruitless=2),
        watch(0.1, BROKEN),
        failing(3, fruitless=3, listing=Cause.STUCK),
        2.0,
    ),
    "unreachable says nothing about the position": (
        failing(9, fruitless=2),
        watch(0.1, DOWN),
        failing(10, fruitless=2),
        30.0,
    ),
    "pages listed": (Course(failures=4, streaming=False), Outcome(Phase.PAGES, 1), failing(4, streaming=False), 0.0),
    "streamed": (Course(failures=4, stalls=1), Outcome(Phase.STREAM, 1), failing(4), 0.0),
    "list cut": (
        Course(streaming=False),
        Outcome(Phase.PAGES, 1, True, DOWN),
        Course(failures=1, streaming=False),
        0.5,
    ),
    "streaming refused": (
        Course(),
        Outcome(Phase.STREAM, 0.1, False, INVALID),
        Course(failures=1, streaming=False),
        0.5,
    ),
    "streaming stalled once": (Course(), Outcome(Phase.STREAM, 30, False, SILENT), Course(failures=1, stalls=1), 0.5),
    "streaming stalled twice": (
        Course(stalls=1),
        Outcome(Phase.STREAM, 30, False, SILENT),
        Course(failures=1, stalls=2, streaming=False),
        0.5,
    ),
    "streaming while the server is down": (Course(), Outcome(Phase.STREAM, 0, False, DOWN), Course(failures=1), 0.5),
    "streaming while denied": (
        Course(breaks=1),
        Outcome(Phase.STREAM, 0, False, DENIED),
        Course(failures=1, denials=1, breaks=1),
        1.0,
    ),
    "streaming while throttled": (
        Course(breaks=1),
        Outcome(Phase.STREAM, 0, False, errors.Throttled("", retry_after=7)),
        Course(failures=1, breaks=1),
        7.0,
    ),
    "streaming cut": (Course(), Outcome(Phase.STREAM, 1, True, CUT), Course(failures=1, breaks=1), 0.5),
    "streaming cut, then an error": (
        Course(breaks=1),
        Outcome(Phase.STREAM, 0.1, False, BROKEN),
        Course(failures=1, breaks=2),
        0.5,
    ),
    "streaming makes no sense": (
        Course(breaks=1),
        Outcome(Phase.STREAM, 0.1, False, errors.Malformed("html")),
        Course(failures=1, breaks=2),
        0.5,
    ),
    "streamed after a break": (Course(breaks=1), Outcome(Phase.STREAM, 1), WATCHING, 0.0),
    "pages listed instead": (Course(breaks=2), Outcome(Phase.PAGES, 1), failing(0, breaks=1), 0.0),
    "pages cut as well": (Course(breaks=2), Outcome(Phase.PAGES, 1, True, CUT), Course(failures=1, breaks=2), 0.5),
    "streaming expired": (Course(), Outcome(Phase.STREAM, 0, False, GONE), Course(failures=1), 0.5),
}


@pytest.mark.parametrize(("course", "outcome", "expected", "delay"), TABLE.values(), ids=TABLE.keys())
def test_rules(course: Course, outcome: Outcome, expected: Course, delay: float) -> None:
    assert after(course, outcome) == (expected, delay)


def test_a_watch_that_ended_as_asked_is_opened_again_soon() -> None:
    course, delay = after(failing(5, fruitless=1), watch(300, progressed=True))
    assert course == WATCHING
    assert 0 <= delay <= TUNING.pace.base


PHASES = {
    "first": (Course(), Phase.STREAM),
    "without streaming": (Course(streaming=False), Phase.PAGES),
    "watching": (WATCHING, Phase.WATCH),
    "gone": (Course(listing=Cause.GONE), Phase.STREAM),
    "broken off once": (Course(breaks=1), Phase.STREAM),
    "broken off twice": (Course(breaks=2), Phase.PAGES),
}


@pytest.mark.parametrize(("course", "phase"), PHASES.values(), ids=PHASES.keys())
def test_what_to_ask_for_next(course: Course, phase: Phase) -> None:
    assert course.phase is phase


Nasty = Callable[[Phase], Outcome]
NASTY: dict[str, tuple[Nasty, float]] = {
    "down": (lambda phase: Outcome(phase, 0.0, False, DOWN), 30),
    "every watch is gone at once": (
        lambda phase: watch(0.0, GONE) if phase is Phase.WATCH else Outcome(phase, 0.01, True),
        60,
    ),
    "every watch says a word and is gone": (
        lambda phase: watch(0.0, GONE, progressed=True) if phase is Phase.WATCH else Outcome(phase, 0.01, True),
        60,
    ),
    "every watch is refused": (
        lambda phase: watch(0.0, BROKEN) if phase is Phase.WATCH else Outcome(phase, 0.01, True),
        60,
    ),
    "every watch ends at once": (
        lambda phase: watch(0.0) if phase is Phase.WATCH else Outcome(phase, 0.01, True),
        40,
    ),
    "every watch is silent": (
        lambda phase: opened(90.0, SILENT) if phase is Phase.WATCH else Outcome(phase, 0.01, True),
        12,
    ),
    "denied": (lambda phase: Outcome(phase, 0.0, False, DENIED), 12),
    "throttled": (lambda phase: Outcome(phase, 0.0, False, errors.Throttled("", retry_after=1)), 30),
    "streams always break off": (
        lambda phase: {
            Phase.WATCH: watch(0.0, GONE),
            Phase.STREAM: Outcome(phase, 0.01, True, CUT),
            Phase.PAGES: Outcome(phase, 0.01, True),
        }[phase],
        60,
    ),
    "lists never come to an end": (lambda phase: Outcome(phase, 1.0, True, SILENT), 40),
}


@pytest.mark.parametrize(("server", "most"), NASTY.values(), ids=NASTY.keys())
def test_requests_in_ten_minutes_are_bounded_by_the_defaults(server: Nasty, most: float) -> None:
    """The official informer sent hundreds a second to a server that was down or said no."""
    course, now, count, rng = Course(), 0.0, 0, random.Random(5)
    while now < 600:
        outcome = server(course.phase)
        step = recovery.after(course, outcome, tuning=Tuning(), rng=rng)
        course, now, count = step.course, now + outcome.lived + step.delay, count + 1
    assert count <= most
