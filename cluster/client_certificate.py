"""The files of a client certificate, and a new pool when somebody has replaced them.

Open connections go on with the certificate they began with, and the server refuses it once it has expired; so other
files need other connections. Looked at before every request, as token files are: two `stat`, a few microseconds.
"""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable
from pathlib import Path

import urllib3

Looks = tuple[tuple[int, int, int], ...]


class ClientCertificate:
    """Certificate and key as files that somebody else replaces, one after the other."""

    def __init__(self, certificate: Path, key: Path | None, build: Callable[[], urllib3.PoolManager]) -> None:
        """`build` makes a pool from what the files hold now; without a key file the key stands in the other."""
        self._certificate = certificate
        self._key = key
        self._build = build
        self._lock = threading.Lock()
        self._seen = self._look()

    def renewed(self) -> urllib3.PoolManager | None:
        """A pool with the new certificate; None if nothing changed, or if the two files do not fit together yet."""
        try:
            if self._look() == self._seen:
                return None
            with self._lock:
                seen = self._look()
                if seen == self._seen:  # another thread was faster
                    return None
                ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(self._certificate, self._key)
                pool = self._build()
                self._seen = seen
                return pool
        except (OSError, ValueError):  # in the middle of a rotation: the connections that are open still do
            return None

    def _look(self) -> Looks:
        files = (self._certificate, self._key) if self._key else (self._certificate,)
        found = [file.stat() for file in files]
        return tuple((one.st_ino, one.st_mtime_ns, one.st_size) for one in found)
