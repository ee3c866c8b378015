"""Where the Authorization header comes from, and what to say when the server does not accept it.

A token file is looked at before every request: one `stat`, a few microseconds, and a rotated token is in use with the
next request instead of a minute later. The kubelet replaces a projected token by swapping a symbolic link, which
changes what the path leads to, and so its inode.
"""

from __future__ import annotations

import base64
import binascii
import re
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import msgspec

_TOKEN = re.compile(r"[\x21-\x7e]+")
"""What a header can carry; an error about anything else would quote it."""
HEADER = re.compile(r"[\x20-\x7e]+")
"""The same with what stands before it."""


class Credentials(Protocol):
    """What the transport asks for each request."""

    def authorization(self) -> str | None:
        """Value of the Authorization header; None if something else (a client certificate) identifies us."""

    def reload(self) -> bool:
        """Read everything again after a 401; True if another try makes sense."""

    def describe(self) -> str:
        """Which credentials these are and, if that can be told, why they were refused. Never the secret."""


class Anonymous:
    """No header: a client certificate identifies us, or nothing does."""

    def __init__(self, told: str = "no credentials are configured") -> None:
        self._told = told

    def authorization(self) -> str | None:
        """No header."""
        return None

    def reload(self) -> bool:
        """Nothing to read again."""
        return False

    def describe(self) -> str:
        """What the caller said about it."""
        return self._told


class FileToken:
    """A bearer token in a file that somebody else replaces."""

    def __init__(self, path: Path, *, clock: Callable[[], float]) -> None:
        """Read the file, which must hold a token; `clock` is the time of day in seconds."""
        self._path = path
        self._clock = clock
        self._lock = threading.Lock()
        self._seen: tuple[int, int, int] = self._look()
        self._token = self._read()
        if not self._token:
            raise ValueError(f"the token file {path} is empty")

    def authorization(self) -> str | None:
        """The token that is in the file now, or the last one if the file is missing or empty at this moment."""
        try:
            seen = self._look()
            if seen != self._seen:
                self._renew(seen)
        except (OSError, ValueError):
            pass  # between two links of a rotation, or not a token: the last good one may still do
        return f"Bearer {self._token}"

    def reload(self) -> bool:
        """Read the file although it looks unchanged."""
        try:
            self._renew(self._look())
        except (OSError, ValueError):
            return False
        return True

    def describe(self) -> str:
        """Path and expiry."""
        return f"the token in {self._path} {expiry_sentence(self._token, self._clock())}"

    def _renew(self, seen: tuple[int, int, int]) -> None:
        with self._lock:
            token = self._read()
            if token:
                self._seen, self._token = seen, token

    def _look(self) -> tuple[int, int, int]:
        found = self._path.stat()
        return found.st_ino, found.st_mtime_ns, found.st_size

    def _read(self) -> str:
        """The token; empty if the file holds anything that cannot be one, such as two lines."""
        token = self._path.read_text(encoding="ascii").strip()
        return token if _TOKEN.fullmatch(token) else ""


class _Claims(msgspec.Struct, frozen=True):
    exp: float | None = None


def expiry(token: str) -> datetime | None:
    """When a JSON web token ends, read without verifying it; None if it is not one or has no end."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        payload = base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))
        claims = msgspec.json.decode(payload, type=_Claims)
        return None if claims.exp is None else datetime.fromtimestamp(claims.exp, UTC)
    except (binascii.Error, ValueError, OverflowError, OSError):
        return None


def expiry_sentence(token: str, now: float) -> str:
    """Why a token may have been refused."""
    ends = expiry(token)
    if ends is None:
        return "is not valid for this server"
    when = ends.strftime("%Y-%m-%dT%H:%M:%SZ")
    if ends.timestamp() <= now:
        return f"expired at {when} and nobody has replaced it"
    return f"runs until {when}, so it was revoked, or belongs to another cluster"
