"""The serving certificate: a TLS context that follows the mounted files while the process runs.

A mounted Secret is replaced by swapping a symbolic link. The context that servers are given is the same all the time
and holds no certificate: each handshake is lent the one of the last good pair, which is made whole by then and never
changed. Files that cannot be used change nothing. The key is never logged, and no message here quotes a file.
"""

import os
import re
import ssl
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm

from cluster import chains
from cluster.runtime import Runtime
from telemetry.catalogue import Log
from telemetry.metrics import Metric

POLL_SECONDS: Final = 1.0
"""Two small files, as often as the settings. A new certificate has days before the old one ends."""
LEAF: Final = "leaf"

_BLOCK: Final = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_ODD: Final = (
    ValueError,
    TypeError,
    UnsupportedAlgorithm,
    x509.DuplicateExtension,
    x509.InvalidVersion,
    x509.UnsupportedGeneralNameType,
)
"""What the library raises about a certificate that it does not understand."""


@dataclass(frozen=True, slots=True)
class Pair:
    """The bytes of a certificate chain and of its key."""

    chain: bytes
    key: bytes


@dataclass(frozen=True, slots=True)
class Served:
    """A pair that can be used."""

    leaf: x509.Certificate
    shown: tuple[x509.Certificate, ...]
    """What goes out with the leaf: CAs between it and one that is trusted."""
    context: ssl.SSLContext


class Certificate:
    """`context` is made once and kept; `poll` looks at the files, a thread does so every second."""

    def __init__(self, chain: Path, key: Path, *, runtime: Runtime) -> None:
        """Files that are missing or wrong are no error: then no handshake succeeds until they are right."""
        self._paths = (chain, key)
        self._runtime = runtime
        self._judged: Pair | None = None
        self._served: Served | None = None
        self._failed = ""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="certificate", daemon=True)
        self.context = _context()
        self.context.sni_callback = self._lend
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
            served = _served(pair)
        except (*_ODD, ssl.SSLError) as unusable:
            self._reject(type(unusable).__name__, pair)
            return
        except OSError as passing:  # no file or memory left: the pair may be good and is tried again
            self._reject(f"{type(passing).__name__}: {passing.strerror}", None)
            return
        self._judged, self._served, self._failed = pair, served, ""
        until = served.leaf.not_valid_after_utc
        self._runtime.meter.set(Metric.CERTIFICATE_EXPIRY, until.timestamp(), certificate=LEAF)
        self._runtime.log.emit(Log.CERTIFICATE_LOADED, certificate=LEAF, expiresAt=until.isoformat())

    def problem(self) -> str | None:
        """For readiness."""
        served, now = self._served, self._runtime.wall()
        if served is None:
            return "no certificate is loaded"
        return None if _valid(served.leaf, now) else "the certificate is not valid now"

    def distrusted(self, bundle: bytes) -> str | None:
        """For readiness: why a client that trusts this bundle of CAs would not trust the certificate."""
        served, authorities = self._served, _certificates(bundle)
        if bundle.strip() and not authorities:
            return "the published bundle cannot be read"
        trusted = served is not None and _trusted(served, authorities, self._runtime.wall())
        return None if trusted else "the published bundle does not verify the certificate"

    def _lend(self, connection: ssl.SSLObject | ssl.SSLSocket, _: str | None, __: ssl.SSLContext) -> None:
        """Called in each handshake, whether or not the client names a server. Without a pair it goes on and fails."""
        served = self._served
        if served is not None:
            connection.context = served.context

    def _reject(self, why: str, pair: Pair | None) -> None:
        """Tell it once, not every second."""
        told = why == self._failed and pair is None
        self._judged, self._failed = pair or self._judged, why
        if not told:
            self._runtime.meter.inc(Metric.CERTIFICATE_ERRORS)
            self._runtime.log.emit(Log.CERTIFICATE_REJECTED, certificate=LEAF, error=why)

    def _run(self) -> None:
        while not self._stop.wait(POLL_SECONDS):
            try:
                self.poll()
            except Exception as error:  # noqa: BLE001 - outermost place: the next certificate must still be loaded
                self._runtime.log.emit(Log.INTERNAL_ERROR, error=error, traceback=error)
                self._runtime.meter.inc(Metric.INTERNAL_ERRORS)


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])  # what our callers speak where they are offered nothing else
    return context


def _served(pair: Pair) -> Served:
    leaf = x509.load_pem_x509_certificate(pair.chain)
    context = _context()
    _load(context, pair)
    return Served(leaf, tuple(cert for cert in _certificates(pair.chain) if cert != leaf), context)


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


def _certificates(text: bytes) -> tuple[x509.Certificate, ...]:
    """All that can be read; API servers leave out the others as well."""
    return tuple(cert for cert in map(_certificate, _BLOCK.findall(text)) if cert is not None)


def _certificate(block: bytes) -> x509.Certificate | None:
    try:
        return x509.load_pem_x509_certificate(block)
    except _ODD:
        return None


def _trusted(served: Served, authorities: Sequence[x509.Certificate], now: datetime) -> bool:
    def signs(authority: x509.Certificate, cert: x509.Certificate, below: int) -> bool:
        return _valid(authority, now) and _may_sign(authority, below) and _issued_by(cert, authority)

    return chains.anchor(served.leaf, shown=served.shown, trusted=authorities, signs=signs) is not None


def _may_sign(authority: x509.Certificate, below: int) -> bool:
    """CA:TRUE, room for so many others below it, and keyCertSign if it says at all what its key is for."""
    constraints, usage = None, None
    try:
        for extension in authority.extensions:
            if isinstance(extension.value, x509.BasicConstraints):
                constraints = extension.value
            elif isinstance(extension.value, x509.KeyUsage):
                usage = extension.value
    except _ODD:
        return False
    if constraints is None or not constraints.ca or (usage is not None and not usage.key_cert_sign):
        return False
    return constraints.path_length is None or below <= constraints.path_length


def _issued_by(cert: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        cert.verify_directly_issued_by(authority)
    except (*_ODD, InvalidSignature):
        return False
    return True
