"""Show the build on a terminal as a moving bar, elsewhere as a line now and then."""

import time
from collections.abc import Callable

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

LINE_EVERY_SECONDS = 15.0
"""Without a terminal: often enough to see life in a CI log, seldom enough not to fill it."""


class BuildProgress:
    """A `build.Report` for people."""

    def __init__(self, console: Console, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Draw on `console`; nothing appears until there is something to tell."""
        self._console = console
        self._clock = clock
        self._next_line = 0.0
        self._tasks: dict[str, TaskID] = {}
        self._bar = Progress(
            TextColumn("{task.description:<11}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[item]}", style="dim"),
            console=console,
        )

    def waiting(self) -> None:
        self._console.print("Another process is building the control plane; waiting for it.")

    def downloading(self, module: str, done: int, total: int) -> None:
        self._advance("downloading", module, done, total)

    def compiling(self, package: str, done: int, total: int) -> None:
        self._advance("compiling", package, done, total)

    def finished(self) -> None:
        self.close()
        self._console.print("The control plane's binaries are built.")

    def close(self) -> None:
        """Leave the terminal as it was, also after an interrupt."""
        if self._tasks:
            self._bar.stop()

    def _advance(self, phase: str, item: str, done: int, total: int) -> None:
        if not self._console.is_terminal:
            self._line(phase, done, total)
            return
        if phase not in self._tasks:
            self._bar.start()
            self._tasks[phase] = self._bar.add_task(phase, total=total, item="")
        self._bar.update(self._tasks[phase], completed=done, total=total, item=item[-60:])

    def _line(self, phase: str, done: int, total: int) -> None:
        now = self._clock()
        if now < self._next_line:
            return
        self._next_line = now + LINE_EVERY_SECONDS
        self._console.print(f"{phase} {done}/{total} ({done * 100 // max(total, 1)} %)")
