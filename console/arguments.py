"""Values of the command line, read once, refused with what would have been accepted."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from policy import durations, signals, values
from policy.reasons import Malformed

SUBJECTS: Final = {"pod": "pod", "pods": "pod", "po": "pod", "node": "node", "nodes": "node", "no": "node"}
"""What can be explained, by every name that kubectl has for it."""
NO_LIMIT: Final = timedelta(days=1)
"""What 0 stands for as it does with kubectl; nobody waits longer than that, and sockets cannot for much longer."""
SHORTEST_PAUSE: Final = timedelta(milliseconds=100)
"""Between two pictures, each of which costs some requests."""


def duration(text: str) -> timedelta:
    """`30s`, `5m`, `1h30m`."""
    found = durations.parse(text)
    if isinstance(found, Malformed):
        raise argparse.ArgumentTypeError(f"{text!r} is not accepted, use {durations.FORMAT}")
    return found


def patience(text: str) -> timedelta:
    """For an answer; 0 is no limit."""
    found = duration(text)
    if not found and durations.nanoseconds(text) != 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not accepted, use 0 for no limit, or a microsecond and more")
    return min(found or NO_LIMIT, NO_LIMIT)


def pause(text: str) -> timedelta:
    """Between two requests of the same."""
    found = duration(text)
    if found < SHORTEST_PAUSE:
        raise argparse.ArgumentTypeError(f"{text!r} is not accepted, use {durations.FORMAT}, at least 100ms")
    return found


def deadline(text: str) -> timedelta | datetime:
    """From now on, or at a time."""
    found = durations.parse(text)
    if not isinstance(found, Malformed):
        return found
    at = signals.instant(text)
    if at is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not accepted, use {durations.FORMAT}, {signals.DEADLINE_FORMAT}"
        )
    return at.astimezone(UTC)


def count(text: str) -> int:
    """At least one."""
    if not (text.isascii() and text.isdigit()) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not accepted, use a number from 1 up")
    return int(text)


def address(text: str) -> tuple[str, int]:
    """`127.0.0.1:8090`, `[::1]:8090`, `:8090` for every address of the machine."""
    host, colon, port = text.rpartition(":")
    if not (colon and port.isascii() and port.isdigit()) or int(port) > 65535:
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
    return _name(text, text.removeprefix("pods/").removeprefix("pod/"), "the name of a pod")


def node(text: str) -> str:
    """`spot-0`, or `node/spot-0` as kubectl prints it."""
    return _name(text, text.removeprefix("nodes/").removeprefix("node/"), "the name of a node")


def namespace(text: str) -> str:
    """Where something is."""
    if not values.is_dns_label(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not accepted, use the name of a namespace")
    return text


def context_or_namespace(text: str) -> str:
    """As for kubectl, which takes nothing for the namespace of the context."""
    return namespace(text) if text else text


def kubeconfig(text: str) -> Path | None:
    """As for kubectl, which takes nothing for the one that is used without the flag."""
    return Path(text) if text else None


def file(text: str) -> Path:
    """Nothing would be the folder one is in."""
    if not text:
        raise argparse.ArgumentTypeError(f"{text!r} is not accepted, use the name of a file")
    return Path(text)


def _name(text: str, name: str, what: str) -> str:
    """A name that none can bear would be asked for as something else: without one, a list is an answer."""
    if not values.is_dns_name(name):
        raise argparse.ArgumentTypeError(f"{text!r} is not accepted, use {what}")
    return name
