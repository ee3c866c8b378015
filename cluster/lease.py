"""Leader election on a coordination.k8s.io/v1 Lease: the thread around the rules in `cluster.election`.

`is_leader` reads the clock when it is asked, so a holder that was stopped, swapped out or cut off knows
that its time is up the moment it runs again, whatever this thread has got round to. Requests run on
threads of their own, so an answer that never comes delays neither the end of a term nor a stop. One term
is one run of `lead` on a thread of its own; the next term does not begin before that thread has ended.
"""

import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

from cluster import calls, election, errors, meta
from cluster.election import NEVER, Look, Record, Timing, View, Wait, Write
from cluster.pace import Pace
from cluster.runtime import Runtime
from cluster.term import Callbacks, LeaseApi, Term
from telemetry.catalogue import Log
from telemetry.metrics import Metric

STOP_ANSWER_SECONDS: Final = 0.5
"""What an answer under way gets when the process wants to stop."""


class Elector:
    """One candidate. `identity` must be unique to this process, not only to its pod."""

    def __init__(
        self,
        api: LeaseApi,
        callbacks: Callbacks,
        *,
        identity: str,
        timing: Timing,
        runtime: Runtime,
        notes: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        """`notes` are annotations that a holder writes with each renewal: what a leader says of itself costs no
        request of its own. They must be there at once.
        """
        self._api = api
        self._notes = notes
        self._callbacks = callbacks
        self._me = identity
        self._timing = timing
        self._clock = runtime.clock
        self._wall = runtime.wall
        self._rng = runtime.rng
        self._log = runtime.log.bind(identity=identity)
        self._meter = runtime.meter
        top = 2 * max(timing.renew_period, timing.poll_period)
        self._retry = Pace(timing.poll_period / 2, top, timing.jitter)
        self._changed = threading.Condition()
        self._caller = calls.Caller(self._changed)
        self._view = View()
        self._raw: dict[str, Any] = {}
        self._term: Term | None = None
        self._terms = 0
        self._latest: Term | None = None
        """The term whose work was begun last, also when the term itself is over."""
        self._not_before = NEVER
        self._failures = 0
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="elector", daemon=True)
        self._meter.follow(Metric.LEADER, lambda: float(self.is_leader()))

    # ---- for everybody

    def start(self) -> None:
        """Become a candidate."""
        self._thread.start()

    def stop(self, timeout: float) -> bool:
        """End the term, hand the lease back, and end; False if that did not happen in time."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread.ident is not None:
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def is_leader(self) -> bool:
        """Whether this process leads at this moment, by its own clock."""
        with self._changed:
            return self._term is not None and self._clock() < self._view.valid_until

    def holder(self) -> str:
        """Who held the lease when it was last seen; empty if nobody or unknown."""
        record = self._view.record
        return record.holder if record else ""

    def problem(self) -> str | None:
        """For liveness: work of an ended term that goes on keeps this process from ever leading again."""
        with self._changed:
            stuck = self._term is None and self._work_runs()
        return "the work of the last term has not stopped" if stuck else None

    # ---- the thread

    def _run(self) -> None:
        while not self._stopping:
            self._pause(self._guarded_step())
        self._end_term("stopping")
        self._hand_back()

    def _guarded_step(self) -> float:
        """An elector that died would neither lead nor tell; what it does not understand, it tries again."""
        try:
            return self._step()
        except Exception as error:  # noqa: BLE001 - the outermost place of this thread
            self._log.emit(Log.INTERNAL_ERROR, error=error, traceback=error)
            self._meter.inc(Metric.INTERNAL_ERRORS)
            return self._spread(self._timing.poll_period)

    def _step(self) -> float:
        """At most one read and one write; the seconds until the next step."""
        self._check_lost()
        self._check_work()
        if self._term is None and (self._work_runs() or self._clock() < self._not_before):
            return self._spread(self._timing.poll_period)
        try:
            wait = self._act()
        except errors.NotFound as error:
            self._saw(None)
            return self._failed(error)
        except errors.ApiError as error:
            return self._failed(error)
        self._failures = 0
        return wait

    def _act(self) -> float:
        action = self._decide()
        if isinstance(action, Look):
            self._look()
            action = self._decide()
        if isinstance(action, Write):
            self._write(action)
            return self._spread(self._timing.renew_period)
        with self._changed:
            self._view = election.outdated(self._view)
        until = action.until if isinstance(action, Wait) else NEVER
        return min(self._spread(self._timing.poll_period), max(0.0, until - self._clock()))

    def _decide(self) -> election.Action:
        now = self._clock()
        return election.decide(self._view, me=self._me, timing=self._timing, now=now, stamp=self._stamp())

    def _look(self) -> None:
        try:
            lease = self._call(self._api.get)
        except errors.NotFound:
            self._saw(None)
            return
        self._raw = lease
        self._saw(election.parse(lease))

    def _saw(self, record: Record | None) -> None:
        before = self._view.record
        with self._changed:
            self._view = election.observed(self._view, record, me=self._me, now=self._clock())
        if record and record.holder != self._me and (before is None or before.holder != record.holder):
            self._log.emit(Log.LEADER_OBSERVED, holder=record.holder, transitions=record.transitions)
        self._check_lost()

    def _write(self, action: Write) -> None:
        body = election.render(action.record, {} if action.create else self._raw)
        notes = self._notes() if self._term is not None else {}
        if notes:
            meta = body["metadata"]
            body["metadata"] = {**meta, "annotations": {**(meta.get("annotations") or {}), **notes}}
        send = self._api.create if action.create else self._api.replace
        with self._changed:
            self._view = election.sending(self._view, action.record)
        sent_at = self._clock()
        lease = self._call(lambda timeout: send(body, timeout))
        self._raw = lease
        self._adopt(election.parse(lease), sent_at)

    def _adopt(self, record: Record, sent_at: float) -> None:
        """A write succeeded. If the old term ran out while we waited for the answer, it has ended all the same."""
        self._check_lost()
        with self._changed:
            now = self._clock()
            self._view = election.written(record, me=self._me, timing=self._timing, sent_at=sent_at, now=now)
            if self._work_runs() and self._term is None:
                self._view = election.given_up(self._view)
            fresh = self._term is None and now < self._view.valid_until and not self._stopping
            refused = self._begin_term() if fresh else None
        if refused is not None:
            self._sit_out()
            raise errors.Unreachable(f"no thread for the work: {refused}", maybe_applied=False) from refused
        if fresh:
            self._log.emit(Log.LEADER_GAINED, transitions=record.transitions)
            self._meter.inc(Metric.LEADER_TERMS)

    def _failed(self, error: errors.ApiError) -> float:
        """Seconds until the next try: a holder must hurry, a standby must not crowd a server in trouble."""
        delay = self._retry.delay(self._failures, self._rng)
        self._failures += 1
        if self._term is not None:
            delay = min(delay, self._spread(self._timing.renew_period))
        elif error.retry_after is not None:
            delay = max(delay, min(error.retry_after, float(self._timing.lease_seconds)))
        self._meter.inc(Metric.LEASE_ERRORS, answer=calls.answer_of(error))
        self._log.emit(Log.LEASE_RETRYING, error=error, attempt=self._failures, delaySeconds=round(delay, 3))
        return delay

    # ---- terms

    def _begin_term(self) -> RuntimeError | None:
        """Under the lock, for which the work waits when it asks whether it leads. Returns why there is no term."""
        term = Term(self._terms + 1, self.is_leader)
        work = threading.Thread(target=self._lead, args=(term,), name=f"term-{term.number}", daemon=True)
        try:
            work.start()
        except RuntimeError as refused:  # the limit of threads or pids of the container
            self._view = election.given_up(self._view)
            return refused
        self._terms = term.number
        self._term = self._latest = term
        return None

    def _lead(self, term: Term) -> None:
        try:
            self._callbacks.lead(term)
        except Exception as error:  # noqa: BLE001 - the outermost place of a term
            self._log.emit(Log.HANDLER_FAILED, error=error, traceback=error)
        finally:  # also after SystemExit: a lease is not renewed for work that has ended
            with self._changed:
                term.finish()
                self._changed.notify_all()

    def _check_lost(self) -> None:
        """End the term if the record or the clock says so."""
        if self._term is None:
            return
        if self._view.known and self._view.record is not None and self._view.record.holder != self._me:
            self._end_term("superseded")
        elif self._clock() >= self._view.valid_until:
            self._end_term("expired")

    def _check_work(self) -> None:
        """End the term if its work has ended."""
        if self._term is not None and not self._work_runs():
            self._end_term("workEnded")
            self._sit_out()

    def _sit_out(self) -> None:
        """Hand the lease back and leave it to others for its time: the work would probably end here again."""
        self._hand_back()
        self._not_before = self._clock() + self._timing.lease_seconds

    def _end_term(self, reason: str) -> None:
        with self._changed:
            term, self._term = self._term, None
            self._view = election.given_up(self._view)
        if term is None:
            return
        term.end()
        if reason != "stopping":
            self._log.emit(Log.LEADER_LOST, reason=reason, holder=self.holder())
        try:
            self._callbacks.stopped(reason)
        except Exception as error:  # noqa: BLE001 - a broken receiver must not keep the lease
            self._log.emit(Log.HANDLER_FAILED, error=error, traceback=error)

    def _work_runs(self) -> bool:
        return self._latest is not None and not self._latest.finished(0)

    def _hand_back(self) -> None:
        """Write the release, unless work of ours may still be going on or the lease is not ours."""
        began = self._clock()
        if self._latest is not None and not self._latest.finished(self._timing.stop_grace):
            self._log.emit(Log.LEASE_WORKER_STUCK, seconds=self._timing.stop_grace)
            return
        for _ in range(2):  # once more after a look, if the lease was touched or an answer was lost
            try:
                if self._released():
                    self._log.emit(Log.LEADER_RELEASED, seconds=round(self._clock() - began, 3))
            except errors.ApiError as error:
                self._failed(error)
            else:
                return

    def _released(self) -> bool:
        """Write the release; False if there is nothing of ours to release."""
        if not self._view.known and self._view.sent:
            self._look()
        record = self._view.record
        if not self._view.known or record is None or record.holder != self._me:
            return False
        body = election.render(election.release(record, self._stamp()), self._raw)
        with self._changed:
            self._view = View(transitions=record.transitions, sent=self._view.sent)
        self._call(lambda timeout: self._api.replace(body, timeout))
        return True

    # ---- waiting

    def _pause(self, seconds: float) -> None:
        """Wait, but end the term in time, and wake for a stop or for the end of the work."""
        end = self._clock() + seconds
        with self._changed:
            while not self._stopping and (now := self._clock()) < end:
                leading = self._term is not None
                if leading and (now >= self._view.valid_until or not self._work_runs()):
                    return
                self._changed.wait(min(end, self._view.valid_until if leading else end) - now)

    def _call(self, request: Callable[[float], dict[str, Any]]) -> dict[str, Any]:
        """The answer, or Unreachable when the time is up. The term may end while we wait."""
        limit = self._timing.request_timeout
        end = self._clock() + (STOP_ANSWER_SECONDS if self._stopping else limit)
        answer = self._caller.start(lambda: request(limit))
        while not self._answered(answer, end) and self._clock() < end:
            self._check_lost()
            if self._stopping:
                end = min(end, self._clock() + STOP_ANSWER_SECONDS)
        with self._changed:
            return answer.unwrap()

    def _answered(self, answer: calls.Answer[dict[str, Any]], end: float) -> bool:
        """Wait for the answer, but not beyond the end of the term."""
        with self._changed:
            until = end if self._term is None else min(end, self._view.valid_until)
            seconds = until - self._clock()
            if not answer.done and seconds > 0:
                self._changed.wait(seconds)
            return answer.done

    def _spread(self, seconds: float) -> float:
        return seconds * self._rng.uniform(1 - self._timing.jitter, 1 + self._timing.jitter)

    def _stamp(self) -> str:
        return meta.micro_time(self._wall())
