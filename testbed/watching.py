"""The one loop of the demo: redraw nodes and pods until something is so."""

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Protocol

from rich.console import Console
from rich.live import Live

from testbed import picture
from testbed.api import Object

TIMEOUT_SECONDS = 180.0
POLL_SECONDS = 0.2


class Lister(Protocol):
    """What the loop needs of a client."""

    def list(self, resource: str, namespace: str | None = None) -> list[Object]: ...


@dataclass(frozen=True, slots=True)
class Seen:
    """The last look, and whether it was what was waited for."""

    reached: bool
    pods: Sequence[Object]
    seconds: float


def watch(
    client: Lister,
    console: Console,
    apps: Sequence[str],
    done: Callable[[Sequence[Object]], bool],
    *,
    keep: bool = True,
    timeout_seconds: float = TIMEOUT_SECONDS,
) -> Seen:
    """Redraw until the pods are as wanted or the time is up; without a terminal only the end is shown, if at all.

    `keep` leaves the last picture on the screen.
    """
    began = time.monotonic()
    live_view = Live(console=console, refresh_per_second=8, transient=not keep) if console.is_terminal else None
    with live_view or nullcontext():
        while True:
            nodes, pods = client.list("nodes"), client.list("pods", "default")
            reached = done(pods)
            if live_view is not None:
                live_view.update(picture.draw(nodes, pods, apps, console.width))
            if reached or time.monotonic() - began > timeout_seconds:
                break
            time.sleep(POLL_SECONDS)
    if live_view is None and keep:
        console.print(picture.draw(nodes, pods, apps, console.width))
    return Seen(reached, pods, time.monotonic() - began)


def all_ready(pods: Sequence[Object], wanted: int) -> bool:
    """So many pods, and every one of them Ready."""
    return len(pods) == wanted == picture.ready(pods)


def on(names: Sequence[str], pods: Sequence[Object]) -> list[Object]:
    """The pods that are on one of these nodes."""
    return [it for it in pods if it["spec"].get("nodeName") in names]
