"""What a running certs tells the outside: log lines, numbers, readiness. Never a key, never a whole object."""

import threading
from datetime import datetime

from certs import findings, x509
from certs.plan import Do
from certs.reconcile import Clock, Outcome, Pass
from certs.x509 import Certificate
from telemetry.catalogue import Log
from telemetry.logs import Logger
from telemetry.meter import Meter
from telemetry.metrics import Metric


class Reporter:
    """Is told about every pass; answers for readiness. Safe from any thread."""

    def __init__(self, log: Logger, meter: Meter, clock: Clock) -> None:
        self._log = log
        self._meter = meter
        self._clock = clock
        self._lock = threading.Lock()
        self._problem: str | None = "no pass has ended yet"
        self._leaf: Certificate | None = None

    def told(self, done: Pass) -> None:
        """One pass ended, whatever its outcome."""
        if done.outcome is Outcome.DONE and done.decision.step:
            self._step(done, done.decision.step.do)
        for role, cert in findings.certificates(done.decision):
            if role in {"ca", "leaf"}:
                self._meter.set(Metric.CERTIFICATE_EXPIRY, cert.not_after.timestamp(), certificate=role)
        pair = done.decision.state.leaf.pair
        with self._lock:
            self._problem = findings.unready(done.decision)
            self._leaf = pair.cert if pair else None

    def finished(self, seconds: float) -> None:
        """Nothing is left to do for now."""
        self._meter.observe(Metric.PASS_SECONDS, seconds)
        self._meter.set(Metric.LAST_GOOD_PASS_TIMESTAMP, self._clock().timestamp())

    def failed(self, error: Exception, seconds: float) -> None:
        """The cluster could not be read or written."""
        self._meter.inc(Metric.PASSES_FAILED)
        self._log.emit(Log.PASS_FAILED, seconds=round(seconds, 3), error=error)

    def broken(self, error: Exception) -> None:
        """A defect of ours."""
        self._meter.inc(Metric.INTERNAL_ERRORS)
        self._log.emit(Log.INTERNAL_ERROR, error=error, traceback=error)

    def unready(self) -> str | None:
        """As of the last pass, but by the clock of now: a leaf runs out also while the apiserver is away."""
        with self._lock:
            problem, leaf = self._problem, self._leaf
        if problem is None and leaf and not x509.valid(leaf, self._clock()):
            return "the leaf has expired"
        return problem

    def _step(self, done: Pass, do: Do) -> None:
        if do is Do.PUBLISH:
            self._log.emit(Log.BUNDLE_PUBLISHED, count=len(done.decision.state.authority.trusted))
        if done.issued is None:
            return
        role = "ca" if do is Do.STAGE else "leaf"
        self._log.emit(Log.CERTIFICATE_ISSUED, certificate=role, expiresAt=_text(done.issued.not_after))
        self._meter.inc(Metric.CERTIFICATE_ROTATIONS, certificate=role)


def _text(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")
