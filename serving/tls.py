"""The serving certificate: a TLS context that follows the mounted files while the process runs.

A mounted Secret is replaced by swapping a symbolic link; the context is the same all the time, and every new
connection gets what it holds by then. Files that cannot be used change nothing: the last good pair stays. The key is
never logged, and no message here quotes a file.
"""

import os
import ssl
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature

from cluster.runtime import Runtime
from telemetry.catalogue import Log
from telemetry.metrics import Metric

POLL_SECONDS: Final = 1.0
"""Two small files, as often as the settings. A new certificate has days before the old one ends."""
LEAF: Final = "leaf"


@dataclass(frozen=True, slots=True)
class Pair:
    """The bytes of a certificate chain and of its key."""

    chain: bytes
    key: bytes


class Certificate:
    """`context` is made once and kept; `poll` looks at the files, a thread does so every second."""

    def __init__(self, chain: Path, key: Path, *, runtime: Runtime) -> None:
        """Files that are missing or wrong are no error: then no handshake succeeds until they are right."""
        self._paths = (chain, key)
        self._runtime = runtime
        self._judged: Pair | None = None
        self._leaf: x509.Certificate | None = None
        self._failed = ""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="certificate", daemon=True)
        self.context = _context()
        self.poll()

    def start(self) -> None:
        """Begin to follow the files."""
        self._thread.start()

    def stop(self) -> None:
        """Stop following them; what is loaded stays."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()

    def poll(self) -> None:
        """Look at the files once."""
        try:
            pair = Pair(*(path.read_bytes() for path in self._paths))
        except OSError as unreadable:
            self._reject(f"{type(unreadable).__name__}: {unreadable.strerror}", None)
            return
        if pair == self._judged:
            return
        try:
            leaf = x509.load_pem_x509_certificates(pair.chain)[0]
            _load(_context(), pair)
            _load(self.context, pair)
        except (ValueError, OSError) as unusable:  # ssl.SSLError is an OSError
            self._reject(type(unusable).__name__, pair)
            return
        self._judged, self._leaf, self._failed = pair, leaf, ""
        until = leaf.not_valid_after_utc
        self._runtime.meter.set(Metric.CERTIFICATE_EXPIRY, until.timestamp(), certificate=LEAF)
        self._runtime.log.emit(Log.CERTIFICATE_LOADED, certificate=LEAF, expiresAt=until.isoformat())

    def problem(self) -> str | None:
        """For readiness."""
        leaf, now = self._leaf, self._runtime.wall()
        if leaf is None:
            return "no certificate is loaded"
        return None if _valid(leaf, now) else "the certificate is not valid now"

    def distrusted(self, bundle: bytes) -> str | None:
        """For readiness: why a client that trusts this bundle of CAs would not trust the certificate."""
        leaf = self._leaf
        try:
            authorities = x509.load_pem_x509_certificates(bundle) if bundle.strip() else []
        except ValueError:
            return "the published bundle cannot be read"
        trusted = leaf is not None and _issued_by_one_of(leaf, authorities)
        return None if trusted else "the published bundle does not verify the certificate"

    def _reject(self, why: str, pair: Pair | None) -> None:
        """Tell it once, not every second."""
        told = why == self._failed and pair is None
        self._judged, self._failed = pair or self._judged, why
        if not told:
            self._runtime.meter.inc(Metric.CERTIFICATE_ERRORS)
            self._runtime.log.emit(Log.CERTIFICATE_REJECTED, certificate=LEAF, error=why)

    def _run(self) -> None:
        while not self._stop.wait(POLL_SECONDS):
            self.poll()


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])  # what our callers speak where they are offered nothing else
    return context


def _load(context: ssl.SSLContext, pair: Pair) -> None:
    """Load exactly these bytes. The library reads files only, and those on disk may change between two looks, which
    could leave a new certificate with an old key; a file in memory does not.
    """
    held = os.memfd_create("certificate")
    try:
        with open(held, "wb", closefd=False) as file:
            file.write(pair.chain + b"\n" + pair.key)
        context.load_cert_chain(f"/proc/self/fd/{held}")
    finally:
        os.close(held)


def _valid(leaf: x509.Certificate, now: datetime) -> bool:
    return leaf.not_valid_before_utc <= now <= leaf.not_valid_after_utc


def _issued_by_one_of(leaf: x509.Certificate, authorities: Sequence[x509.Certificate]) -> bool:
    return any(_issued_by(leaf, authority) for authority in authorities)


def _issued_by(leaf: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        leaf.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True
