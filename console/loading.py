"""What an interrupt does while a program is still being loaded: nothing is begun yet that could be cleaned up."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def ended_by_an_interrupt() -> Iterator[None]:
    """Without a word, for the time of the block. Where interrupts are ignored, as in the background, they stay so."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
