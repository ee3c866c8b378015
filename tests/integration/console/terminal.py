"""The plugin as a person or a script runs it: with a terminal around it, or without."""

import contextlib
import fcntl
import io
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from console.program import main
from testbed.bed import ControlPlane
from testbed.waiting import eventually

ROOT: Final = Path(__file__).parents[3]
ROWS: Final = 40
COLUMNS: Final = 200
PATIENCE_SECONDS: Final = 120.0
ESCAPES: Final = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
"""Colours and movements of the cursor."""

Done = subprocess.CompletedProcess[str]


def _sound(done: Done) -> Done:
    assert "Traceback" not in done.stderr, done.stderr
    assert "\x1b" not in done.stdout + done.stderr, "nothing steers a terminal that is not there"
    return done


def environ(kubeconfig: Path | str, **more: str) -> dict[str, str]:
    """A person's, less what would lead to their own cluster or change the look."""
    kept = {key: value for key, value in os.environ.items() if key not in {"NO_COLOR", "COLUMNS", "LINES"}}
    return {**kept, "KUBECONFIG": str(kubeconfig), "PYTHONPATH": str(ROOT), "TERM": "xterm-256color", **more}


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "console", *arguments]


@dataclass(frozen=True, slots=True)
class Plugin:
    """Runs it against one cluster as one user."""

    kubeconfig: Path

    def __call__(self, *arguments: str) -> Done:
        """Into pipes. In this process: most of a call is spent on starting Python."""
        out, err = io.StringIO(), io.StringIO()
        words = [*arguments, "--kubeconfig", str(self.kubeconfig)]
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(words)
        return _sound(Done(words, int(code), out.getvalue(), err.getvalue()))

    @contextmanager
    def writing(self, path: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
        """Into a file, and not waited for."""
        with path.open("wb") as out:
            process = subprocess.Popen(
                command(*arguments), env=environ(self.kubeconfig), stdin=subprocess.DEVNULL, stdout=out
            )
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def shown(self, *arguments: str) -> "Shown":
        """On a terminal, to its end, in this process."""
        master, slave = _terminal()
        seen = bytearray()
        reader = threading.Thread(target=_drain, args=(master, seen))
        reader.start()
        words = [*arguments, "--kubeconfig", str(self.kubeconfig)]
        size = {"COLUMNS": str(COLUMNS), "LINES": str(ROWS), "TERM": "xterm-256color"}
        try:
            with pytest.MonkeyPatch.context() as patch, os.fdopen(slave, "w") as screen:
                for key, value in size.items():
                    patch.setenv(key, value)
                patch.delenv("NO_COLOR", raising=False)
                with contextlib.redirect_stdout(screen), contextlib.redirect_stderr(screen):
                    code = main(words)
        finally:
            reader.join()
            os.close(master)
        return Shown(int(code), seen.decode(errors="replace"))

    @contextmanager
    def started(self, *arguments: str) -> Iterator["Window"]:
        """On a terminal, and not waited for."""
        with window(command(*arguments), environ(self.kubeconfig)) as made:
            yield made


@dataclass(frozen=True, slots=True)
class Shown:
    """What was on a terminal when it was over."""

    code: int
    raw: str

    @property
    def text(self) -> str:
        """Without colours, and with the line ends of a file."""
        return ESCAPES.sub("", self.raw).replace("\r\n", "\n")


@dataclass(slots=True)
class Window:
    """A terminal with a process in it."""

    process: subprocess.Popen[bytes]
    master: int
    seen: bytearray = field(default_factory=bytearray)

    @property
    def raw(self) -> str:
        return self.seen.decode(errors="replace")

    @property
    def text(self) -> str:
        return Shown(0, self.raw).text

    def wait_for(self, pattern: str, *, timeout: float = PATIENCE_SECONDS) -> None:
        """Read on until the text is there."""

        def found() -> bool:
            self._read(0.1)
            return re.search(pattern, self.text) is not None

        eventually(found, timeout=timeout, interval=0, what=f"{pattern!r} on the terminal:\n{self.text[-3000:]}")

    def type(self, keys: str) -> None:
        """As somebody at the keyboard."""
        os.write(self.master, keys.encode())

    def interrupt(self) -> None:
        """Ctrl-C."""
        self.process.send_signal(signal.SIGINT)

    def ended(self) -> Shown:
        """Read to the end."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self._read(0.2) or self.process.poll() is None:
            assert time.monotonic() < deadline, f"still running:\n{self.text[-3000:]}"
        return Shown(self.process.wait(), self.raw)

    def _read(self, seconds: float) -> bool:
        """Whether there was something, or may be."""
        if not select.select([self.master], [], [], seconds)[0]:
            return False
        try:
            more = os.read(self.master, 65536)
        except OSError:  # the last one at the other end has gone
            return False
        self.seen += more
        return bool(more)


def _terminal() -> tuple[int, int]:
    """Both ends of a terminal of a usual size."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    return master, slave


def _drain(master: int, seen: bytearray) -> None:
    """Until nobody is left at the other end."""
    with contextlib.suppress(OSError):
        while more := os.read(master, 65536):
            seen += more


@contextmanager
def window(words: Sequence[str], env: Mapping[str, str]) -> Iterator[Window]:
    """A terminal of a usual size."""
    master, slave = _terminal()
    process = subprocess.Popen(
        list(words), env=dict(env), stdin=slave, stdout=slave, stderr=slave, start_new_session=True
    )
    os.close(slave)
    try:
        yield Window(process, master)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(master)


def kubeconfig_with(source: ControlPlane, target: Path, **context: Any) -> Path:
    """The administrator's, with more in its context."""
    document = yaml.safe_load(source.kubeconfig.read_text())
    document["contexts"][0]["context"] |= context
    target.write_text(yaml.safe_dump(document))
    return target
