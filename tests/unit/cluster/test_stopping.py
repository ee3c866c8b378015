"""A process that is asked to stop hears it, whatever thread the kernel gives the signal to."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
ELSEWHERE = "start(lambda: signal.pthread_kill(threading.get_ident(), number))"
STEPS = {
    "waiting, signal in the main thread": "start(lambda: os.kill(os.getpid(), number))",
    "waiting, signal in another thread": ELSEWHERE,
    "not waiting yet, signal in another thread": f"{ELSEWHERE}.join()",
    "another signal with a handler before it": (
        f"signal.signal(signal.SIGUSR1, lambda *_: None); os.kill(os.getpid(), signal.SIGUSR1); {ELSEWHERE}"
    ),
}
PROGRAM = """
import os, signal, sys, threading, time
from cluster.stopping import StopRequest

number = signal.Signals[sys.argv[1]]
asked = StopRequest()

def start(act):
    def run():
        time.sleep(0.1)  # by then the main thread waits
        act()
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread

exec(sys.argv[2])
print(asked.wait(), flush=True)
os._exit(0)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda it: it.name)
@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS.keys())
def test_the_signal_is_heard(steps: str, number: signal.Signals) -> None:
    command = [sys.executable, "-c", PROGRAM, number.name, steps]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.split() == [number.name]


UNHEARD = ("signal.SIG_DFL)", "signal.default_int_handler)", "INTERRUPTED)")
"""What holds while a program is loaded, and what held before: that waits for nothing."""


def test_programs_wait_for_signals_in_no_other_way() -> None:
    product = ("policy", "telemetry", "cluster", "webhook", "descheduler", "certs", "extender", "console", "serving")
    files = [path for package in product for path in (ROOT / package).rglob("*.py")]
    lines = [(str(path.relative_to(ROOT)), line) for path in files for line in path.read_text().splitlines()]
    found = {path for path, line in lines if "signal.signal(" in line and not line.endswith(UNHEARD)}
    assert found == {"cluster/stopping.py"}
