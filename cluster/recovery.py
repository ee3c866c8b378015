"""What a reflector does after a list or a watch has ended: go on, list again, and how long to wait first.
Pure.

Two rules keep the number of requests bounded whatever the server does. Every end of a request is followed
by a wait, and the waits grow until a watch has lived for `healthy_seconds`: one that opens, says
something and dies does not count as recovered.
"""

import enum
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from cluster import errors
from cluster.pace import Pace

STUCK_AFTER: Final = 3
"""Watches in a row that the server refused for no known reason before the position itself is given up; and how many
times `silence_seconds` open watches may bring nothing at all before it is. After a restore of etcd our version lies
in the future of the server, which does not say so: it accepts the watch and keeps back every event and bookmark up to
that version. Whoever waits for it has missed them for good, deletions included.
"""

BREAKS: Final = 2
"""Streaming lists in a row that broke off until pages are tried. One may well be a restart of the server."""

LONGEST_ASKED: Final = 10
"""Times the longest wait of our own that a server may ask us to stay away; a day of blindness it may not ask for."""

PACE: Final = Pace(base=0.5, top=30.0, jitter=0.3)
"""Half a second is how long a cut connection may go unnoticed by a person; 30 s is one default interval of passes."""
DENIED: Final = Pace(base=1.0, top=300.0, jitter=0.3)
"""After 401 and 403: somebody has to change something first, and a flood of refusals hides other problems. But an
apiserver that has just started knows no rights for a moment and denies everybody, so the first waits are short.
"""
MOMENT: Final = 4
"""Denials in a row until they are no longer taken for such a moment: about seven seconds."""


class Phase(enum.StrEnum):
    """What the request was."""

    PAGES = "list"
    STREAM = "stream"
    WATCH = "watch"


class Cause(enum.StrEnum):
    """Why the collection is listed."""

    FIRST = "first"
    GONE = "gone"
    STUCK = "stuck"


@dataclass(frozen=True, slots=True)
class Tuning:
    """Durations in seconds."""

    watch_seconds: int = 300
    """What the server is asked to end a watch after, spread by `jitter`, so that its replicas share the load."""
    silence_seconds: float = 90.0
    """A watch without a byte for so long is dead. The server sends a bookmark about every 60 s."""
    list_seconds: int = 300
    """What a streaming list may take in all."""
    list_silence_seconds: float = 30.0
    """A streaming list without a byte for so long is not coming."""
    healthy_seconds: float = 10.0
    """A watch that lived so long has recovered."""
    pace: Pace = PACE
    denied: Pace = DENIED
    jitter: float = 0.2


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one request ended."""

    phase: Phase
    lived: float
    """Seconds from sending to the end."""
    progressed: bool = False
    """Whether it brought anything: a page, an event, a bookmark."""
    error: errors.ApiError | None = None
    """None: complete, or ended by the server as asked."""
    opened: bool = False
    """Whether the server accepted it: silence before that says nothing about the position."""


@dataclass(frozen=True, slots=True)
class Course:
    """Where the reflector stands."""

    listing: Cause | None = Cause.FIRST
    """Why a list is due; None while watching."""
    failures: int = 0
    fruitless: int = 0
    """Watches in a row that the server refused."""
    silent: float = 0.0
    """Seconds that open watches in a row lived without a word, however they ended: between us and the server there
    may be somebody who cuts what is silent long before we do.
    """
    denials: int = 0
    """In a row, whatever else went wrong between them."""
    streaming: bool = True
    """Whether streaming lists are tried."""
    stalls: int = 0
    """Streaming lists in a row that did not come to their end."""
    breaks: int = 0
    """Streaming lists in a row that the server or the connection broke off."""

    @property
    def denied(self) -> bool:
        """Whether rights are missing for longer than a server needs to learn of them."""
        return self.denials >= MOMENT

    @property
    def phase(self) -> Phase:
        """What to ask for next."""
        if self.listing is None:
            return Phase.WATCH
        return Phase.STREAM if self.streaming and self.breaks < BREAKS else Phase.PAGES

    @property
    def listed(self) -> "Course":
        """The course after a complete list. Whoever broke off streams may have been on its way down, so the next list
        is streamed again; if that breaks off as well, once is enough.
        """
        breaks = 0 if self.phase is Phase.STREAM else min(self.breaks, BREAKS - 1)
        return replace(self, listing=None, fruitless=0, silent=0.0, stalls=0, denials=0, breaks=breaks)


@dataclass(frozen=True, slots=True)
class Next:
    """The new course and the wait before it."""

    course: Course
    delay: float


def after(course: Course, outcome: Outcome, *, tuning: Tuning, rng: Random) -> Next:
    """The one rule."""
    if outcome.error is None and outcome.phase is not Phase.WATCH:
        # Only a watch that lives proves recovery: a list that succeeds between two 410 must not reset
        # anything.
        return Next(course.listed, 0.0)
    healthy = outcome.phase is Phase.WATCH and outcome.lived >= tuning.healthy_seconds
    failures = 0 if healthy else course.failures
    course = replace(course, silent=_silent(course, outcome))
    relisted = _relisted(course, outcome, tuning)
    if outcome.error is None and healthy and relisted.listing is None:
        return Next(replace(course, failures=0, fruitless=0, denials=0), rng.uniform(0, tuning.pace.base))
    # A watch that brings something but does not live keeps the level; what costs a list never does.
    keeps = outcome.phase is Phase.WATCH and outcome.progressed and not isinstance(outcome.error, errors.Gone)
    counted = failures if keeps and relisted.listing is None else failures + 1
    if isinstance(outcome.error, _DENIED):
        denied = replace(relisted, failures=counted, denials=course.denials + 1)
        return Next(denied, tuning.denied.delay(course.denials, rng))
    moved = replace(relisted, failures=counted, denials=0 if outcome.progressed else course.denials)
    return Next(moved, _delay(outcome.error, failures, tuning, rng))


def _delay(error: errors.ApiError | None, failures: int, tuning: Tuning, rng: Random) -> float:
    delay = tuning.pace.delay(failures, rng)
    if error is not None and error.retry_after is not None:
        asked = min(error.retry_after, LONGEST_ASKED * tuning.pace.top)
        return max(delay, asked * rng.uniform(1, 1 + tuning.jitter))
    return delay


def _silent(course: Course, outcome: Outcome) -> float:
    if outcome.phase is not Phase.WATCH or not outcome.opened:
        return course.silent
    return 0.0 if outcome.progressed else course.silent + outcome.lived


def _relisted(course: Course, outcome: Outcome, tuning: Tuning) -> Course:
    """The course after a failure, but for the count of failures."""
    error = outcome.error
    if outcome.phase is Phase.STREAM:
        return _unstreamed(course, error)
    if outcome.phase is Phase.PAGES:
        return course
    if isinstance(error, errors.Gone):
        return replace(course, listing=Cause.GONE, fruitless=0)
    if course.silent >= STUCK_AFTER * tuning.silence_seconds:
        return replace(course, listing=Cause.STUCK)
    if error is None or isinstance(error, _SAYS_NOTHING):
        return replace(course, fruitless=0) if outcome.progressed else course
    fruitless = course.fruitless + 1
    listing = Cause.STUCK if fruitless >= STUCK_AFTER else None
    return replace(course, listing=listing, fruitless=fruitless)


_DENIED: Final = (errors.Unauthorized, errors.Forbidden)
_SAYS_NOTHING: Final = (errors.Unreachable, errors.Throttled, *_DENIED)
"""Errors that say nothing about the position we asked to go on from; the silence before them may."""


def _unstreamed(course: Course, error: errors.ApiError | None) -> Course:
    """Pages from now on, if the server refuses to stream or twice did not come to the end of it; pages for this list,
    if it twice broke off. A server that is down, or wants to be left alone, says nothing about streams.
    """
    if isinstance(error, errors.Invalid):
        return replace(course, streaming=False)
    if isinstance(error, errors.Unreachable) and error.timed_out:
        return replace(course, stalls=course.stalls + 1, streaming=course.stalls == 0)
    cut = isinstance(error, errors.Unreachable) and error.maybe_applied
    if cut or isinstance(error, errors.ServerError | errors.Malformed):
        return replace(course, breaks=course.breaks + 1)
    return course
