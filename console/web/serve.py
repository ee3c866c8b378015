"""gunicorn for a page that is looked at by a few people: one process, a thread for each open page."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any, Final

from flask import Flask
from gunicorn.app.base import BaseApplication  # type: ignore[import-untyped]

PAGES: Final = 24
"""Open at once; each costs a thread."""
SPARE: Final = 8
"""Threads for everything else that a page asks for."""


class Server(BaseApplication):  # type: ignore[misc]
    """Composed in the worker, after the fork: threads would not survive it."""

    def __init__(self, compose: Callable[[], Flask], *, listen: tuple[str, int], stop: Callable[[], None]) -> None:
        """Raises OSError if it cannot listen there."""
        self._compose = compose
        self._settings = settings(_listening(*listen)) | {"worker_exit": lambda _, __: stop()}
        super().__init__()

    def load_config(self) -> None:
        """Called by gunicorn."""
        for name, value in self._settings.items():
            self.cfg.set(name, value)

    def load(self) -> Flask:
        """Called by gunicorn in the worker."""
        return self._compose()


def _listening(host: str, port: int) -> int:
    """A socket of our own: gunicorn would ask for a port that is taken for seconds, and say so in a log."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family).detach()


def settings(listener: int) -> dict[str, Any]:
    """What differs from the defaults of gunicorn."""
    return {
        "bind": [f"fd://{listener}"],
        "worker_class": "gthread",
        "workers": 1,
        "threads": PAGES + SPARE,
        "graceful_timeout": 1,
        "timeout": 0,  # a page that stays open is no worker that hangs
        "control_socket_disable": True,
        "loglevel": "warning",
    }
