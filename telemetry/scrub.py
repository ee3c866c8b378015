"""What may stand in a log line: short plain values that hold no secret. Pure.

Two classes of value are kept out. Whole objects, because they carry environment variables and annotations
nobody meant to publish; and text that looks like a credential, wherever it came from (error messages quote
headers).
"""

import re
from collections.abc import Mapping
from typing import Final

Plain = str | int | float | bool | None | list["Plain"] | dict[str, "Plain"]

MAX_CHARS: Final = 1024
"""A field is a fact, not a document; one line stays far below the 16 KiB at which container runtimes split."""

MAX_TRACEBACK_CHARS: Final = 8192
"""The innermost frames, which are at the end, fit in this."""

MAX_ITEMS: Final = 64
"""Sequences and settings are cut here."""

REDACTED: Final = "[redacted]"

_SECRETS: Final = re.compile(
    r"""
      eyJ[\w-]{8,}\.[\w-]+(?:\.[\w-]*)?                   # JSON web tokens, so every ServiceAccount token
    | -----BEGIN[ A-Z]+-----.*?(?:-----END[ A-Z]+-----|$)   # PEM blocks, also cut ones
    | \b(?:A3T[A-Z0-9]|AKIA|ASIA)[A-Z0-9]{16}\b             # AWS key ids
    | \b(?:ghp|gho|ghs|github_pat|glpat|xox[abprs])[-_]\w{10,}  # tokens of code hosts and chat systems
    | (?i:\b(?:bearer|basic)\s+)[\w.~+/=-]{8,}              # Authorization headers
    | (?i:[\w-]*(?:password|passwd|token|secret|api[_-]?key|client-key-data)[\w-]*["']?\s*[:=]\s*["']?)[^\s"',;]{4,}
    | (?<=://)[^@\s/]+(?=@)                                 # name and password, or a token, in an address
    """,
    re.VERBOSE | re.DOTALL,
)
_SECRET_NAME: Final = re.compile(r"(?i)password|passwd|token|secret|api[_-]?key|credential")
_BLOB: Final = re.compile(r"[A-Za-z0-9+/_-]{48,}={0,2}")


class RefusedError(Exception):
    """A value that must not be logged."""


def text(value: str, limit: int = MAX_CHARS) -> str:
    """Credentials replaced, then cut; in this order, because half a token is still half a token."""
    clean = _BLOB.sub(_blob, _SECRETS.sub(REDACTED, value))
    return clean if len(clean) <= limit else clean[: limit - 1] + "\u2026"


def tail(value: str, limit: int = MAX_TRACEBACK_CHARS) -> str:
    """Like text, but the end is what is kept."""
    clean = _BLOB.sub(_blob, _SECRETS.sub(REDACTED, value))
    return clean if len(clean) <= limit else "\u2026" + clean[1 - limit :]


def plain(value: object) -> Plain:
    """A scalar or a flat sequence of scalars, or RefusedError."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return text(value)
    if isinstance(value, list | tuple) and all(i is None or isinstance(i, str | int | float) for i in value):
        return [plain(item) for item in value[:MAX_ITEMS]]
    raise RefusedError(f"{type(value).__name__} is not a plain value")


def flat(value: object) -> Plain:
    """The one mapping that may be logged: settings, already flattened to dotted names with plain values."""
    if not isinstance(value, Mapping):
        raise RefusedError(f"settings must be a flat mapping, not {type(value).__name__}")
    return {str(name): _setting(str(name), item) for name, item in value.items()}


def _setting(name: str, value: object) -> Plain:
    """By name too: the arguments of somebody else's strategy may hold anything."""
    if _SECRET_NAME.search(name) and isinstance(value, str) and value:
        return REDACTED
    nested = isinstance(value, list) and any(isinstance(item, list) for item in value)
    return text(str(value)) if nested else plain(value)


def error(problem: BaseException) -> str:
    """Type and first line; the rest of a message may quote a body."""
    lines = str(problem).splitlines()
    first = lines[0] if lines else ""
    return text(f"{type(problem).__name__}: {first}" if first else type(problem).__name__)


def _blob(match: re.Match[str]) -> str:
    """Long runs with upper, lower and digits are keys; hex digests and object names are not."""
    run = match.group()
    mixed = any(c.isupper() for c in run) and any(c.islower() for c in run) and any(c.isdigit() for c in run)
    return REDACTED if mixed else run
