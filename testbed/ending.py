"""Commands that are asked to end, in whatever way: they clean up first, and their exit code says what asked."""

import signal
from types import FrameType
from typing import NoReturn

WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated", signal.SIGHUP: "hung up"}


class Asked(KeyboardInterrupt):
    """Ends what is under way, as an interrupt does."""

    def __init__(self, number: int) -> None:
        """Keep which signal it was."""
        super().__init__()
        self.number = signal.Signals(number)


def listen() -> None:
    """SIGINT as well: it is ignored in a background job."""
    for number in WORDS:
        signal.signal(number, _once)


def of(interrupt: KeyboardInterrupt) -> tuple[str, int]:
    """What happened, in words, and the exit code that a shell gives for it."""
    number = interrupt.number if isinstance(interrupt, Asked) else signal.SIGINT
    return WORDS[number], 128 + number


def _once(number: int, _: FrameType | None) -> NoReturn:
    """Whoever is asked again while cleaning up goes on with it: half of it would leave processes behind."""
    for it in WORDS:
        signal.signal(it, signal.SIG_IGN)
    raise Asked(number)
