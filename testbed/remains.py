"""What is looked at before a test bed is removed: which rights were used in it, and whether a secret is in its logs.

Only where somebody asks for it by naming a folder in the environment, as a run of the tests does: its control planes
come and go in many processes, and each leaves a note there.
"""

import json
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from testbed import audit, leaks
from testbed.audit import ACCOUNT
from testbed.layout import Layout
from testbed.leaks import Leak
from testbed.rights import Used

FOLDER = "SPOTSHIFT_TESTBED_REMAINS"


@dataclass(slots=True)
class Remains:
    """Of all control planes of a run."""

    beds: int = 0
    used: Used = field(default_factory=Used)
    leaks: list[Leak] = field(default_factory=list)


def note(home: Path, environ: Mapping[str, str]) -> None:
    """Leave a note about the test bed in `home`, if anybody asked for one."""
    folder, layout = environ.get(FOLDER), Layout(home)
    if folder and layout.audit_log.exists():
        with suppress(FileNotFoundError):  # somebody else is removing it at the same moment, and leaves the note
            _write(Path(folder), home, layout)


def _write(folder: Path, home: Path, layout: Layout) -> None:
    used = Used()
    used.take(it for it in audit.matching(layout.audit_log, ACCOUNT) if _is_program(it.agent))
    found = leaks.search(leaks.logs(layout.logs), leaks.secrets_of(home), below=home)
    target = folder / f"{os.getpid()}-{secrets.token_hex(4)}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps({"rights": _rows(used), "leaks": [asdict(it) for it in found]}))


def _rows(used: Used) -> list[list[object]]:
    return [
        [account, *right, count, table is used.refused]
        for table in (used.counts, used.refused)
        for account, rights in sorted(table.items())
        for right, count in sorted(rights.items())
    ]


def told(used: Used) -> str:
    """For `read`."""
    return json.dumps(_rows(used), indent=0)


def read(text: str) -> Used:
    """What `told` wrote."""
    used = Used()
    for account, verb, resource, count, refused in json.loads(text):
        used.add(account, (verb, resource), count, refused=refused)
    return used


def _is_program(agent: str) -> bool:
    """Tests try what an account may not; what counts is what programs do, and they say who they are."""
    return bool(agent) and not agent.startswith(("python-urllib3", "kubectl/", "kubectl.test"))


def gather(folder: Path) -> Remains:
    """All notes together."""
    found = Remains()
    for path in sorted(folder.glob("*.json")):
        written = json.loads(path.read_text())
        found.beds += 1
        for account, verb, resource, count, refused in written["rights"]:
            found.used.add(account, (verb, resource), count, refused=refused)
        found.leaks += [Leak(**it) for it in written["leaks"]]
    return found
