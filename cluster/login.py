"""What reading a kubeconfig, or the ServiceAccount of a pod, comes to: an address, a pool of connections, a user."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import urllib3

POOL_SIZE = 64
"""Idle connections kept: a watch per resource, the workers of the migrator and those for urgent moves, with room."""


class LoginError(Exception):
    """The configuration does not lead to a connection; the text says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Login:
    """One reading."""

    server: str
    told: str
    """The user in words, never the secret."""
    pool: Callable[[], urllib3.PoolManager]
    """Makes one from what the files of the certificates hold now."""
    header: Callable[[], str | None]
    """Value of the Authorization header; a plugin may run to make it."""
    token_file: Path | None = None
    """Wins over the header."""
    namespace: str = ""
    certificate: tuple[str | None, str | None] = (None, None)
    """The files of the client certificate and of its key."""
