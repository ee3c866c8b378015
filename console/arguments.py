"""Values of the command line, read once, refused with what would have been accepted."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime, timedelta
from typing import Final

from policy import durations, signals
from policy.reasons import Malformed

TIME: Final = "a time such as 2026-07-01T18:00:00Z"


def duration(text: str) -> timedelta:
    """`30s`, `5m`, `1h30m`."""
    found = durations.parse(text)
    if isinstance(found, Malformed):
        raise argparse.ArgumentTypeError(f"{text!r} is not accepted, use {durations.FORMAT}")
    return found


def deadline(text: str) -> timedelta | datetime:
    """From now on, or at a time."""
    found = durations.parse(text)
    if not isinstance(found, Malformed):
        return found
    at = signals.instant(text)
    if at is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not accepted, use {durations.FORMAT}, or {TIME}")
    return at.astimezone(UTC)


def count(text: str) -> int:
    """At least one."""
    if not (text.isascii() and text.isdigit()) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not accepted, use a number from 1 up")
    return int(text)


def pod(text: str) -> str:
    """`web-0`, or `pod/web-0` as kubectl prints it."""
    return text.removeprefix("pods/").removeprefix("pod/")


def node(text: str) -> str:
    """`spot-0`, or `node/spot-0` as kubectl prints it."""
    return text.removeprefix("nodes/").removeprefix("node/")
