"""gunicorn, set up for one caller: an API server with a pool of connections and a short patience.

The only module that knows gunicorn. It decides nothing about requests.
"""

import asyncio
import logging
import os
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from gunicorn.app.base import BaseApplication  # type: ignore[import-untyped]
from gunicorn.glogging import Logger as GunicornLogger  # type: ignore[import-untyped]
from gunicorn.workers.gasgi import ASGIWorker  # type: ignore[import-untyped]

from webhook import peers
from webhook.server import Application

KEEPALIVE_SECONDS: Final = 120
"""The API server keeps idle connections for 90 s. If we closed first, the next review on one would be lost."""
SHARED_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - the heartbeat file of the worker, not data
Compose = Callable[[], tuple[Application, ssl.SSLContext]]


class Server(BaseApplication):  # type: ignore[misc]
    """One arbiter and one worker; everything with threads is composed in the worker, after the fork."""

    def __init__(self, compose: Compose, *, listen: tuple[str, int], grace_seconds: int) -> None:
        self._compose = compose
        self._settings = settings(listen, grace_seconds) | {"ssl_context": self._context}
        self._made: tuple[Application, ssl.SSLContext] | None = None
        super().__init__()

    def load_config(self) -> None:
        """Called by gunicorn."""
        for name, value in self._settings.items():
            self.cfg.set(name, value)

    def load(self) -> Application:
        """Called by gunicorn in the worker."""
        self._made = self._compose()
        return self._made[0]

    def _context(self, _: object, __: object) -> ssl.SSLContext:
        if self._made is None:  # never served in plain text: gunicorn would, if this raised in a worker that lives
            raise SystemExit("the worker was not composed")
        return self._made[1]


def settings(listen: tuple[str, int], grace_seconds: int) -> dict[str, Any]:
    """What differs from the defaults of gunicorn, and why."""
    return {
        "bind": [f"{listen[0] or '0.0.0.0'}:{listen[1]}"],  # noqa: S104 - the API server comes from outside of the pod
        "worker_class": "webhook.gunicorn_conf.Worker",
        "workers": 1,  # one view of the cluster; a second core is a second replica
        "asgi_lifespan": "on",
        "keepalive": KEEPALIVE_SECONDS,
        "graceful_timeout": grace_seconds,
        "control_socket_disable": True,  # nobody needs it, and the root file system is read-only
        "worker_tmp_dir": str(SHARED_MEMORY) if SHARED_MEMORY.is_dir() else None,
        "logger_class": Logger,
        "certfile": os.devnull,  # both only say that TLS is on: the context comes from us, and its files may be late
        "keyfile": os.devnull,
    }


class Worker(ASGIWorker):  # type: ignore[misc]
    """Fails readiness the moment it is told to end; gunicorn itself looks only once a second.

    From then on every answer closes its connection, so the API server takes its next review elsewhere. Connections
    that are idle stay open until it closes them or the grace ends: closing one could cross a review on its way.
    """

    def _setup_event_loop(self) -> None:
        """Called by gunicorn, which would wait for ever for a peer that does not say what it wants."""
        self.loop = peers.Loop(peers.Patience(silent=KEEPALIVE_SECONDS))
        asyncio.set_event_loop(self.loop)

    def handle_exit_signal(self) -> None:
        """SIGTERM."""
        self.asgi.drain()
        super().handle_exit_signal()


class Logger(GunicornLogger):  # type: ignore[misc]
    """Leaves format and destination to the handlers of the process."""

    def setup(self, cfg: Any) -> None:
        """Called by gunicorn."""
        super().setup(cfg)
        for log in (self.error_log, self.access_log):
            log.handlers.clear()
        self.error_log.setLevel(logging.WARNING)
        self.error_log.propagate = True
