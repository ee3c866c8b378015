"""What stands in a kubeconfig and cannot be used, told by the key it stands under.

The official package fails on it too, later and in the words of Python or of TLS.
"""

from __future__ import annotations

import base64
import logging
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from cluster.login import LoginError

AUTHORITY: Final = "certificate-authority-data"
SHOWN: Final = 20
"""Contexts that are named."""


def check_context(config: Any, name: str | None, named: str) -> None:
    """That it is there; else which are. One that is not of the kind is left to the package."""
    entries = config.safe_get("contexts")
    found = [getattr(it, "value", it) for it in entries] if isinstance(entries, list) else []
    known = [str(it.get("name")) for it in found if isinstance(it, dict)]
    if name and known and name not in known:
        more = f" and {len(known) - SHOWN} more" if len(known) > SHOWN else ""
        raise LoginError(f"there is no context {name!r} in {named}, only {', '.join(known[:SHOWN])}{more}")


def check_cluster(config: Any, name: str) -> None:
    """Its address and its authority."""
    node = config["clusters"].get_with_name(name)
    entry, told = node["cluster"].value, f"cluster {name!r} of {node.path}"
    kept(entry, "server", str, told)
    if kept(entry, AUTHORITY, str, told) and not entry.get("insecure-skip-tls-verify"):
        _check_authority(entry[AUTHORITY], told)


def kept(entry: Mapping[str, Any], key: str, kind: type, told: str) -> Any:
    """What stands there, if it is of that kind or nothing."""
    found = entry.get(key)
    if found is not None and not isinstance(found, kind):
        wanted = "a mapping" if kind is dict else "text"
        raise LoginError(f"{told}: {key} has to be {wanted}, and is of type {type(found).__name__}")
    return found


def _check_authority(data: str, told: str) -> None:
    try:
        good = are_certificates(base64.b64decode(data).decode("ascii", "ignore"))  # a comment may be of any letters
    except ValueError:
        good = False
    if not good:
        raise LoginError(f"{told}: {AUTHORITY} has to be certificates as PEM in base64")


def are_certificates(pem: str) -> bool:
    """Whether TLS takes it for an authority."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=pem)
    except (ssl.SSLError, ValueError):
        return False
    return True


class _Kept(logging.Handler):
    """Keeps what is said instead of printing it."""

    def __init__(self, said: list[str]) -> None:
        super().__init__()
        self._said = said

    def emit(self, record: logging.LogRecord) -> None:
        self._said.append(record.getMessage())


@contextmanager
def heard() -> Iterator[Sequence[str]]:
    """What the package logs in the block: about a plugin that fails, raw and on standard error, if nobody listens."""
    said: list[str] = []
    handler, root = _Kept(said), logging.getLogger()
    root.addHandler(handler)
    try:
        yield said
    finally:
        root.removeHandler(handler)
