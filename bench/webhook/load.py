"""The two load generators: `wrk` for as much as a server takes, and our own in Go for a fixed rate and for turns."""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

SCRIPT = Path(__file__).with_name("post.lua")
NO_WRK = "the benchmark of the webhook needs wrk on PATH: install the package wrk (Debian: apt-get install wrk)"


class Missing(Exception):
    """A program that this machine does not have; the message says what to do."""


class Flood(msgspec.Struct, frozen=True):
    """What wrk found."""

    requests: int
    seconds: float
    failed: int
    p50_ms: float
    p99_ms: float


class Turns(msgspec.Struct, frozen=True):
    """What one address answered."""

    requests: int
    failed: int
    mean_ms: float
    p50_ms: float
    p99_ms: float
    max_ms: float


def find_wrk() -> Path:
    """Where it is."""
    found = shutil.which("wrk")
    if found is None:
        raise Missing(NO_WRK)
    return Path(found)


def flood(url: str, body: Path, *, connections: int, seconds: float, new: bool, core: int) -> Flood:
    """As many requests as the server answers, one at a time on each connection."""
    command = ["taskset", "-c", str(core), str(find_wrk()), "-t1", f"-c{connections}", f"-d{seconds:g}s"]
    command += ["-s", str(SCRIPT), url, "--", str(body), "new" if new else "known"]
    return msgspec.json.decode(_printed(command).splitlines()[-1], type=Flood)


def turns(program: Path, to: Mapping[str, str], body: Path, *options: str, core: int) -> dict[str, Turns]:
    """Requests to each address in turn; `options` are those of peers/load."""
    command = ["taskset", "-c", str(core), str(program), f"-body={body}", *options]
    command += [f"-to={name}={url}" for name, url in to.items()]
    return msgspec.json.decode(_printed(command), type=dict[str, Turns])


def _printed(command: Sequence[str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
