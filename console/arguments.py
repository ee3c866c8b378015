"""Values of the command line, read once, refused with what would have been accepted."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime, timedelta
from typing import Final

from policy import durations, signals
from policy.reasons import Malformed

SUBJECTS: Final = {"pod": "pod", "pods": "pod", "po": "pod", "node": "node", "nodes": "node", "no": "node"}
"""What can be explained, by every name that kubectl has for it."""
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


def address(text: str) -> tuple[str, int]:
    """`127.0.0.1:8090`, `[::1]:8090`, `:8090` for every address of the machine."""
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not accepted, use HOST:PORT, such as 127.0.0.1:8090")
    return host.strip("[]"), int(port)


def subject(text: str) -> tuple[str, str]:
    """`pod` or `node`, with its name if that is joined to it as kubectl prints it."""
    kind, _, name = text.partition("/")
    if kind not in SUBJECTS:
        raise argparse.ArgumentTypeError(f"{text!r} is not accepted, use pod NAME, node NAME, pod/NAME or node/NAME")
    return SUBJECTS[kind], name


def pod(text: str) -> str:
    """`web-0`, or `pod/web-0` as kubectl prints it."""
    return text.removeprefix("pods/").removeprefix("pod/")


def node(text: str) -> str:
    """`spot-0`, or `node/spot-0` as kubectl prints it."""
    return text.removeprefix("nodes/").removeprefix("node/")
