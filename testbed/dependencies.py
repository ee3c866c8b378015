"""Whether what we depend on can be trusted: pinned by hash, installed so, licensed, not withdrawn, no known hole.

The last two are asked of the package index. An index that tells nothing of a version is no proof either way, and is
told as such: `not judged`. Go modules are checked by Go itself against `go.sum` whenever they are built.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import urllib3

FILES = ("requirements.txt", "requirements-dev.txt")
LICENCES = re.compile(
    r"\b(MIT|BSD|Apache|PSF|Python Software Foundation|MPL|Mozilla Public|ISC|Unlicense|CC0|0BSD|Zlib)\b",
    re.IGNORECASE,
)
"""Those that ask for no more than a notice, and the Mozilla licence, whose files we do not change."""
THREADS = 8
_PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^ ;\\]+)(?P<rest>.*)$", re.DOTALL)

Index = Callable[[str], Mapping[str, Any] | None]
"""What the index says about `NAME` or `NAME/VERSION`; None if it says nothing."""


@dataclass(frozen=True, slots=True)
class Pin:
    """One line of a requirements file."""

    name: str
    version: str
    hashes: frozenset[str]
    conditional: bool = False
    """Only for some platforms or versions of Python."""


@dataclass(slots=True)
class Findings:
    """What was looked at, and what is wrong."""

    pins: int = 0
    installed: int = 0
    judged: int = 0
    unjudged: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        told = (
            f"{self.pins} packages, all pinned with hashes: {self.installed} installed as pinned with an accepted "
            f"licence, {self.judged} judged by the index"
        )
        rest = f"; not judged: {', '.join(self.unjudged)}" if self.unjudged else ""
        return told + rest if not self.wrong else "\n".join(self.wrong)


def read(text: str) -> Iterator[Pin]:
    """The pins of a file; a requirement without a version is one without hashes."""
    for entry in re.split(r"\n(?=\S)", text):
        line = entry.strip()
        if not line or line.startswith(("#", "-")):
            continue
        found = _PIN.match(line)
        hashes = frozenset(re.findall(r"--hash=sha256:([0-9a-f]{64})", line))
        if found is None:
            yield Pin(line.split()[0], "", frozenset())
        else:
            yield Pin(found["name"].lower(), found["version"], hashes, ";" in found["rest"])


def audit(pins: Sequence[Pin], index: Index | None) -> Findings:
    """Everything about all of them; without an index nothing is judged."""
    found = Findings(len(pins))
    for pin in pins:
        found.wrong += _pinned(pin)
        here = _installed(pin)
        found.wrong += here if here is not None else ()
        found.installed += here == []
    with ThreadPoolExecutor(THREADS) as pool:
        verdicts = pool.map(lambda pin: None if index is None else judge(pin, index), pins)
    for pin, verdict in zip(pins, verdicts, strict=True):
        if verdict is None:
            found.unjudged.append(f"{pin.name} {pin.version}")
        else:
            found.judged += 1
            found.wrong += verdict
    return found


def _pinned(pin: Pin) -> list[str]:
    if not pin.version:
        return [f"{pin.name}: no version is pinned"]
    return [] if pin.hashes else [f"{pin.name}: pinned without a hash"]


def _installed(pin: Pin) -> list[str] | None:
    """What is wrong with it here; None if it is not for this platform."""
    try:
        here = metadata.distribution(pin.name)
    except metadata.PackageNotFoundError:
        return None if pin.conditional else [f"{pin.name}: not installed"]
    if here.version != pin.version:
        return [f"{pin.name}: {here.version} is installed instead of {pin.version}"]
    told = licence(here.metadata)
    return (
        [] if LICENCES.search(told) else [f"{pin.name}: licence {told[:60] or 'unknown'!r} is not among the accepted"]
    )


def licence(about: Any) -> str:
    """As a package says it, in whichever of the three ways."""
    classified = [it for it in about.get_all("Classifier") or () if it.startswith("License ::")]
    return about.get("License-Expression") or " ".join(classified) or about.get("License") or ""


def judge(pin: Pin, index: Index) -> list[str] | None:
    """What speaks against a version; None if the index cannot tell."""
    about = index(f"{pin.name}/{pin.version}")
    if about is None:
        about = index(pin.name)
    if about is None:
        return None
    files = about.get("releases", {}).get(pin.version) or about.get("urls", [])
    told = about["info"]["version"] == pin.version
    if not told and pin.version not in about.get("releases", {}):
        return None
    wrong = [f"{pin.name} {pin.version}: withdrawn from the index"] if any(it["yanked"] for it in files) else []
    published = {it["digests"]["sha256"] for it in files}
    if not pin.hashes <= published:
        wrong.append(f"{pin.name} {pin.version}: a pinned hash is not that of any published file")
    if told:
        open_ones = (it for it in about.get("vulnerabilities", ()) if not it.get("withdrawn"))
        wrong += [f"{pin.name} {pin.version}: {it['id']}: {it.get('summary') or 'no summary'}" for it in open_ones]
    return wrong if wrong or told else None


def online(url: str) -> Index:
    """The JSON interface of an index."""
    pool = urllib3.PoolManager(maxsize=THREADS, timeout=20, retries=1)

    def ask(what: str) -> Mapping[str, Any] | None:
        try:
            answer = pool.request("GET", f"{url}/{what}/json")
        except urllib3.exceptions.HTTPError:
            return None
        return dict(json.loads(answer.data)) if answer.status == 200 else None

    return ask


def all_pins(root: Path) -> list[Pin]:
    """Of both files, each package once."""
    found = {pin.name: pin for name in FILES for pin in read((root / name).read_text())}
    return sorted(found.values(), key=lambda it: it.name)
