"""Secrets in logs: keys and tokens of a test bed, and whatever looks like one. They are named, never quoted."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

TOKEN = re.compile(rb"eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{16,}")
"""A JSON web token with its signature; without one it opens nothing."""
KEY = re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----")
SHORTEST = 24
"""Characters of a secret that are looked for: fewer could stand there by chance."""
RUN = re.compile(rb"[\w+/-]{%d,}" % SHORTEST)
"""Whatever a secret could be part of."""


@dataclass(frozen=True, slots=True)
class Leak:
    """Where a secret stands, and what it is."""

    path: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.what}"


def secrets_of(home: Path) -> dict[bytes, str]:
    """Pieces of every key and token in the folder of a test bed, and what each belongs to."""
    found: dict[bytes, str] = {}
    for path in sorted(home.rglob("*")):
        if not path.is_file() or "etcd" in path.relative_to(home).parts:
            continue
        name = path.relative_to(home).as_posix()
        if path.suffix == ".key":
            found |= dict.fromkeys(_of_key(path.read_bytes()), f"the private key {name}")
        elif path.name == "token":
            found |= dict.fromkeys(_of_token(path.read_bytes()), f"the token {name}")
        elif path.suffix == ".kubeconfig":
            found |= dict.fromkeys(_of_kubeconfig(path), f"a credential of {name}")
    return found


def _of_key(pem: bytes) -> Iterator[bytes]:
    yield from (line for line in pem.splitlines() if not line.startswith(b"-----") and len(line) >= SHORTEST)


def _of_token(token: bytes) -> Iterator[bytes]:
    signature = token.strip().rpartition(b".")[2]
    if len(signature) >= SHORTEST:
        yield signature


def _of_kubeconfig(path: Path) -> Iterator[bytes]:
    for entry in yaml.safe_load(path.read_text()).get("users", ()):
        user = entry.get("user", {})
        yield from _of_token(user.get("token", "").encode())


def search(paths: Iterable[Path], secrets: dict[bytes, str], *, below: Path) -> list[Leak]:
    """Every line in which one of them stands, or something that looks like one."""
    starts = {secret[:SHORTEST]: what for secret, what in secrets.items()}
    found = []
    for path in paths:
        text = path.read_bytes()
        lines: dict[int, str] = {}
        for place, what in _seen(text, starts):
            lines.setdefault(text.count(b"\n", 0, place) + 1, what)
        name = path.relative_to(below).as_posix()
        found += [Leak(name, line, what) for line, what in sorted(lines.items())]
    return found


def _seen(text: bytes, starts: Mapping[bytes, str]) -> Iterator[tuple[int, str]]:
    """Where what begins. What is known comes first: it has a name."""
    yield from _known(text, starts)
    yield from ((it.start(), "something that looks like a token") for it in TOKEN.finditer(text))
    yield from ((it.start(), "something that looks like a private key") for it in KEY.finditer(text))


def _known(text: bytes, starts: Mapping[bytes, str]) -> Iterator[tuple[int, str]]:
    """One expression of all secrets would try each of them at each byte, and a bed has hundreds."""
    for run in RUN.finditer(text) if starts else ():
        piece = run.group()
        for at in range(len(piece) - SHORTEST + 1):
            what = starts.get(piece[at : at + SHORTEST])
            if what:
                yield run.start() + at, what


def logs(folder: Path) -> list[Path]:
    """What was logged there; tests call such a file `NAME.log` or just `log`."""
    return sorted(it for it in folder.rglob("*") if (it.suffix == ".log" or it.name == "log") and it.is_file())
