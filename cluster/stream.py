"""The lines of an open watch, and a way to stop reading them at once from another thread.

Only bytes pass through here: what an event means is decided by the decoders.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import urllib3

from cluster import errors, transport

READ_BYTES = 1 << 16
"""At most this much per read; a read returns as soon as anything is there."""


class WatchStream:
    """Raw lines of one watch. One thread iterates, any thread may close."""

    def __init__(self, response: urllib3.response.BaseHTTPResponse) -> None:
        self._response = response
        self._closed = threading.Event()

    def __iter__(self) -> Iterator[bytes]:
        """Each line until the server ends the watch or `close` is called.

        Raises Unreachable when the connection breaks, is silent for longer than the read timeout, or ends inside a
        line.
        """
        rest = b""
        while chunk := self._read():
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                if self._closed.is_set():
                    return
                if line:
                    yield line
        if rest and not self._closed.is_set():
            raise errors.Unreachable("the watch ended in the middle of an event")

    def close(self) -> None:
        """Unblock the reader now and end the iteration. Safe from any thread, any number of times."""
        if self._closed.is_set():
            return
        self._closed.set()
        # The stream may have ended by itself meanwhile: its socket is back in the pool or closed.
        with contextlib.suppress(OSError, ValueError, RuntimeError):
            self._response.shutdown()

    def release(self) -> None:
        """Give the connection back, or close it if the stream was left in the middle. For the reading thread."""
        self._closed.set()
        self._response.close()
        self._response.release_conn()

    def _read(self) -> bytes:
        if self._closed.is_set():
            return b""
        try:
            chunk = self._response.read1(READ_BYTES)
        except transport.TRANSPORT_ERRORS as exc:
            if self._closed.is_set():
                return b""
            raise errors.from_transport(exc) from exc
        # After a shutdown TLS is off the socket, and what is left in it is not text.
        return b"" if self._closed.is_set() else chunk
