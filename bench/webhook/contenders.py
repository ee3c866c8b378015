"""The three webhooks as processes, each on one core: ours as it is shipped, and two in Go built from `peers`."""

import contextlib
import os
import shutil
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import urllib3

from bench.webhook import review
from testbed import binaries, ports
from testbed.bed import ControlPlane
from testbed.waiting import eventually

ROOT = Path(__file__).parents[2]
PEERS = Path(__file__).with_name("peers")
IDIOMATIC, LEAN, OURS = "controller-runtime", "lean Go", "spotshift"


@dataclass(frozen=True, slots=True)
class Contender:
    """A webhook that runs and answers."""

    name: str
    url: str
    pid: int
    ca: str
    """Of its certificate."""


def programs() -> Path:
    """The folder with the Go programs, built on the first call."""
    return binaries.built_module(PEERS, os.environ, tell=lambda line: print(line, file=sys.stderr))


@contextlib.contextmanager
def running(bed: ControlPlane, folder: Path, *, namespace: str, core: int) -> Iterator[list[Contender]]:
    """All three, until the context ends; ours is ready, which includes that it has seen the cluster."""
    pair = bed.layout.ca.server(f"bench-{folder.name}")
    shutil.copy(pair.cert, folder / "tls.crt")
    shutil.copy(pair.key, folder / "tls.key")
    (folder / "settings.yaml").write_text(review.SETTINGS)
    taken = ports.free((IDIOMATIC, LEAN, OURS, "probes"))
    commands = {
        IDIOMATIC: [str(programs() / "idiomatic"), f"-port={taken[IDIOMATIC]}", f"-certs={folder}"],
        LEAN: [str(programs() / "lean"), f"-port={taken[LEAN]}", f"-certs={folder}"],
        OURS: _ours(bed, folder, taken[OURS], taken["probes"]),
    }
    with contextlib.ExitStack() as stack:
        found = []
        for name, command in commands.items():
            pid = stack.enter_context(_process(command, folder / f"{name}.log", core))
            url = f"https://127.0.0.1:{taken[name]}/mutate"
            found.append(Contender(name, url, pid, bed.layout.ca.bundle().decode()))
        for each in found:
            eventually(lambda each=each: _patches(each, namespace), timeout=60, what=f"a patch by {each.name}")  # type: ignore[misc]
        yield found


def ask(contender: Contender, body: bytes) -> tuple[int, bytes]:
    """Status and body of the answer to one review."""
    context = ssl.create_default_context(cadata=contender.ca)
    with urllib3.PoolManager(ssl_context=context) as pool:
        answer = pool.request(
            "POST",
            contender.url,
            body=body,
            headers={"Content-Type": "application/json"},
            retries=False,
            timeout=5,
        )
        return answer.status, answer.data


def _patches(contender: Contender, namespace: str) -> bool:
    try:
        status, answer = ask(contender, review.body(namespace, "0"))
    except urllib3.exceptions.HTTPError:
        return False
    return status == 200 and b'"patch":' in answer


def _ours(bed: ControlPlane, folder: Path, port: int, probes: int) -> list[str]:
    return [
        *(sys.executable, "-m", "webhook", "serve"),
        f"--kubeconfig={bed.kubeconfig}",
        f"--listen=127.0.0.1:{port}",
        f"--probes=127.0.0.1:{probes}",
        f"--settings={folder / 'settings.yaml'}",
        f"--cert={folder / 'tls.crt'}",
        f"--key={folder / 'tls.key'}",
        "--grace-seconds=1",
    ]


@contextlib.contextmanager
def _process(command: Sequence[str], log: Path, core: int) -> Iterator[int]:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with (
        log.open("w") as output,
        subprocess.Popen(
            ["taskset", "-c", str(core), *command], env=env, stdout=output, stderr=output, start_new_session=True
        ) as process,
    ):
        try:
            yield process.pid  # taskset becomes the command
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
