"""gunicorn for a page that is looked at by a few people: one process, a thread for each open page."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable
from typing import Any, Final

from flask import Flask
from gunicorn.app.base import BaseApplication  # type: ignore[import-untyped]
from gunicorn.workers.gthread import ThreadWorker  # type: ignore[import-untyped]

PAGES: Final = 24
"""Open at once; each costs a thread."""
SPARE: Final = 8
"""Threads for everything else that a page asks for."""
READ_SECONDS: Final = 10.0
"""For the whole of a request, which is a few lines: whoever takes longer holds a thread for as long as they like."""
WRITE_SECONDS: Final = 30
"""For a page that takes nothing of what it is sent, such as that of a computer that was put to sleep."""


class Server(BaseApplication):  # type: ignore[misc]
    """Composed in the worker, after the fork: threads would not survive it."""

    def __init__(self, compose: Callable[[], Flask], *, listen: tuple[str, int], stop: Callable[[], None]) -> None:
        """Raises OSError if it cannot listen there."""
        self._compose = compose
        listener = _listening(*listen)
        self.port: int = listener.getsockname()[1]
        """The real one, even if 0 was asked for."""
        self._settings = settings(listener.detach()) | {"worker_exit": lambda _, __: stop()}
        super().__init__()

    def load_config(self) -> None:
        """Called by gunicorn."""
        for name, value in self._settings.items():
            self.cfg.set(name, value)

    def load(self) -> Flask:
        """Called by gunicorn in the worker."""
        return self._compose()


class Worker(ThreadWorker):  # type: ignore[misc]
    """gunicorn's threads read without a limit of time once the first byte has come: this one hangs up."""

    def init_process(self) -> None:
        """Called by gunicorn after the fork."""
        self._reading = threading.local()
        super().init_process()

    def handle(self, conn: Any) -> Any:
        """One request, on a thread of its own. After the timer has hung up, what is read is an ordinary end."""
        timer = self._reading.timer = threading.Timer(READ_SECONDS, _hang_up, (conn.sock,))
        timer.daemon = True
        timer.start()
        try:
            return super().handle(conn)
        finally:
            timer.cancel()

    def has_read(self) -> None:
        """The request of this thread is there; from now on it may take as long as the page is open."""
        self._reading.timer.cancel()


def _hang_up(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):  # it may be closed by now
        connection.shutdown(socket.SHUT_RDWR)


def _listening(host: str, port: int) -> socket.socket:
    """A socket of our own: gunicorn would ask for a port that is taken for seconds, and say so in a log."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.create_server((host, port), family=family)
    # Whoever is accepted inherits it.
    made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", WRITE_SECONDS, 0))
    return made


def settings(listener: int) -> dict[str, Any]:
    """What differs from the defaults of gunicorn."""
    return {
        "bind": [f"fd://{listener}"],
        "worker_class": Worker,
        "pre_request": lambda worker, _: worker.has_read(),
        "workers": 1,
        "threads": PAGES + SPARE,
        "graceful_timeout": 1,
        "timeout": 0,  # a page that stays open is no worker that hangs
        "control_socket_disable": True,
        "loglevel": "warning",
    }
