"""Being asked to stop: SIGTERM from a kubelet, SIGINT from a person.

The kernel gives a signal to whichever thread looks first, and a thread that starts another one looks. Python runs
handlers in the main thread alone, which sleeps on if it waits for a lock and another thread took the signal. So a
leader, which starts a thread for every renewal of its lease, now and then did not end on a busy machine. Here the
main thread waits at a socket, into which the interpreter writes in whatever thread the signal arrives.
"""

import signal
import socket
from typing import Final

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


class StopRequest:
    """Made once, by the main thread, before any other is started; from then on the signals do nothing else."""

    def __init__(self) -> None:
        self._read, self._write = socket.socketpair()
        self._write.setblocking(False)
        signal.set_wakeup_fd(self._write.fileno(), warn_on_full_buffer=False)
        for number in SIGNALS:
            signal.signal(number, _do_nothing)

    def wait(self) -> str:
        """The name of the signal, as soon as one of them has come, be it before this call."""
        while (number := self._read.recv(1)[0]) not in SIGNALS:
            pass
        return signal.Signals(number).name


def _do_nothing(_number: int, _frame: object) -> None:
    """That it is there has the interpreter write to the socket; there is nothing left to do."""
