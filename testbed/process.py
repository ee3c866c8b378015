"""Start and stop the processes of a test bed, and recognise them again after a crash.

A process is ours if its environment carries the marker of the test bed's folder. That holds even when the
launcher was killed between starting a child and writing its pid down, and a reused pid never matches.
"""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import psutil

MARKER = "SPOTSHIFT_TESTBED"
NAME = "SPOTSHIFT_TESTBED_PROCESS"


def start(
    name: str, command: Sequence[str | Path], *, home: Path, log: Path, env: Mapping[str, str] | None = None
) -> psutil.Process:
    """Start one process in a session of its own, marked as belonging to the test bed in `home`."""
    with log.open("ab") as output:
        child = subprocess.Popen(
            [str(part) for part in command],
            env={**(os.environ if env is None else env), MARKER: str(home.resolve()), NAME: name},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    child.returncode = 0  # it is meant to outlive this handle, which would complain about that
    return _recognisable(psutil.Process(child.pid))


def has_ended(process: psutil.Process) -> bool:
    """Gone, or only waiting to be collected by its parent."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def running(home: Path) -> list[tuple[str, psutil.Process]]:
    """Living processes of the test bed in `home` with the names they were started under, children included."""
    marker = str(home.resolve())
    found = []
    for process in psutil.process_iter():
        environ = _environ(process)
        if environ.get(MARKER) == marker and process.pid != os.getpid():
            found.append((environ.get(NAME, ""), process))
    return found


def mains(home: Path) -> dict[str, psutil.Process]:
    """Of the living processes in `home`, those that were started by us, not by one of them.

    Each was started in a session of its own, so a worker that outlives its parent is not taken for it.
    """
    return {name: process for name, process in running(home) if _leads_its_session(process)}


def stop(processes: Iterable[psutil.Process], *, grace_seconds: float) -> None:
    """Ask each to end, wait, then kill what is left. One that ended by itself is fine."""
    asked = [process for process in processes if _signal(process, signal.SIGTERM)]
    _, stubborn = psutil.wait_procs(asked, timeout=grace_seconds)
    psutil.wait_procs([process for process in stubborn if _signal(process, signal.SIGKILL)], timeout=10)


def wait_for_end(pid: int, *, every_seconds: float = 0.5) -> None:
    """Return when the process has ended."""
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        while process.is_running() and not has_ended(process):
            time.sleep(every_seconds)


def _recognisable(process: psutil.Process) -> psutil.Process:
    """Return when the process shows its environment. The kernel lets the parent go on while it still lays the new
    program out, and for that moment a living process looks like one that is not ours.
    """
    while not has_ended(process) and MARKER not in _environ(process):
        time.sleep(0.001)
    return process


def _leads_its_session(process: psutil.Process) -> bool:
    try:
        return os.getsid(process.pid) == process.pid
    except ProcessLookupError:
        return False


def _signal(process: psutil.Process, number: signal.Signals) -> bool:
    try:
        process.send_signal(number)
    except psutil.NoSuchProcess:
        return False
    return True


def _environ(process: psutil.Process) -> dict[str, str]:
    """Of a living process of a test bed. First whether it is one: on a machine with hundreds almost none is."""
    try:
        found = process.environ()
    except psutil.Error:
        return {}
    return dict(found) if MARKER in found and not has_ended(process) else {}
