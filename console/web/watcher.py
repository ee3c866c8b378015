"""Follows the cluster and hangs a picture whenever something has changed, but not faster than eyes can follow.

Pictures are made on the thread that owns the state. What no watch tells (settings, who leads, measured usage) is
asked for now and then by another one.
"""

from __future__ import annotations

import threading
from typing import Final

from cluster import errors
from cluster.client import Client
from cluster.runtime import Runtime
from console import following, look
from console.look import Around
from console.web.board import Board
from console.web.picture import Painter
from descheduler import plan
from descheduler.gathered import Gap, Gathered
from descheduler.state import ClusterState
from descheduler.sync import Live
from telemetry.catalogue import Log

ASK_SECONDS: Final = 5.0
AT_REST_SECONDS: Final = 5.0
"""Between two pictures while nothing changes: the plots go on."""


class Watcher:
    """One per process."""

    def __init__(self, client: Client, board: Board, *, runtime: Runtime, system: str, seconds: float) -> None:
        self._client = client
        self._board = board
        self._runtime = runtime
        self._system = system
        self._seconds = seconds
        self._painter = Painter()
        self._painted_at = float("-inf")
        self._gaps: tuple[Gap, ...] = ()
        self._around = self._ask()
        self._live: Live | None = None
        self._stop = threading.Event()
        self._asking = threading.Thread(target=self._keep_asking, name="ask", daemon=True)

    def start(self) -> None:
        """Raises ApiError if the cluster does not answer or does not show its nodes and pods."""
        sources, self._gaps = following.permitted(self._client)
        self._live = Live(sources, self._around.in_force.settings, self.turn, runtime=self._runtime)
        self._live.start()
        self._asking.start()

    def stop(self) -> None:
        """No more pictures."""
        self._stop.set()
        self._board.close()
        if self._live is not None:
            self._live.stop()

    def turn(self, state: ClusterState) -> float:
        """A picture, unless the last one has just been made; when to come again."""
        now = self._runtime.clock()
        rest = self._painted_at + self._seconds - now
        if rest > 0:
            return rest
        self._painted_at = now
        around = self._around
        settings, at = around.in_force.settings, self._runtime.wall()
        made = plan.make(state, settings, at, around.usage)
        self._board.hang(self._painter.paint(around.look(Gathered(state, 0, self._gaps), at), made))
        return AT_REST_SECONDS

    def _keep_asking(self) -> None:
        while not self._stop.wait(ASK_SECONDS):
            try:
                found = self._ask()
            except errors.ApiError as error:  # the page says how old things are; the watches go on by themselves
                self._runtime.log.emit(Log.REQUEST_FAILED, name="settings and leader", error=error)
                continue
            changed = found.in_force.settings != self._around.in_force.settings
            self._around = found
            if changed and self._live is not None:
                self._live.configure(found.in_force.settings)

    def _ask(self) -> Around:
        return look.around(self._client, self._runtime.wall(), system=self._system)
