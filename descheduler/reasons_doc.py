"""The page that explains every "no", made from the codes and the table of guards so that it cannot drift.

`python -m descheduler.reasons_doc` prints it.
"""

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final

from descheduler import remedies
from descheduler.fit import FitCode
from descheduler.guards import GUARDS, Guard
from descheduler.proposal import Urgency
from descheduler.reasons import Code

_HEAD: Final = """# Why a pod is not moved

Every pod that a strategy proposes is either moved or has at least one reason not to be. A reason is a code, for
metrics and scripts, and a sentence that names the selector, the annotation, the budget or the number that decided.
All guards are asked, so all reasons are told at once. How to opt in and out is in [opting-out.md](opting-out.md).

Where you read them: `kubectl spotshift explain pod NAME` and `kubectl spotshift plan`, the Event `MoveRefused` on the
pod, `maintenance-remaining` on a node that is drained, the dashboard, and `spotshift_refusals_total{reason}`. Keys
below are without their prefix `scheduler.alpha.kubernetes.io/`; settings are in [configuration.md](configuration.md).

This page is made by `python -m descheduler.reasons_doc`.

"""
_GUARDS: Final = """## Guards

May this pod be moved at all? That depends on why. A *voluntary* move finds a better place and needs everybody's
consent. *Maintenance* empties a node because whoever runs the cluster wants it empty; it goes before thrift and
taste, not before the word of whoever runs the application: such pods stay and are listed on the node. An
*interruption* takes the pod anyway; it is left alone only where an early eviction would help nobody.

| code | guard | voluntary | maintenance | interruption | why |
|---|---|---|---|---|---|
"""
_FITS: Final = """## Why a node does not fit

The details behind `NO_NODE_FITS`: what kube-scheduler's filters would say about a pod and one node.

"""


def markdown() -> str:
    """The whole page."""
    guards = _GUARDS + "".join(_row(guard) for guard in GUARDS) + "\n"
    codes, fits = _codes(Code, remedies.OF_CODES), _codes(FitCode, remedies.OF_FITS)
    return f"{_HEAD}## Codes\n\n{codes}\n{guards}{_FITS}{fits}"


def meanings(closed_set: type[StrEnum]) -> dict[str, str]:
    """The docstring under each member, on one line."""
    body = ast.parse(textwrap.dedent(inspect.getsource(closed_set))).body[0]
    assert isinstance(body, ast.ClassDef)  # noqa: S101 - the source of a class is a class
    return dict(_documented(body))


def _documented(body: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for member, text in zip(body.body, body.body[1:], strict=False):
        if not (isinstance(member, ast.Assign) and isinstance(member.targets[0], ast.Name)):
            continue
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str):
            yield member.targets[0].id, " ".join(text.value.value.split())


def _codes(closed_set: type[StrEnum], help_for: Mapping[StrEnum, str]) -> str:
    told = meanings(closed_set)
    rows = "".join(f"| `{member.value}` | {told[member.name]} | {help_for[member]} |\n" for member in closed_set)
    return f"| code | meaning | what you can do |\n|---|---|---|\n{rows}"


def _row(guard: Guard) -> str:
    holds = " | ".join("holds" if guard.holds(urgency) else "" for urgency in Urgency)
    why = " ".join((guard.check.__doc__ or "").split())
    return f"| `{guard.code}` | {guard.name.replace('_', ' ')} | {holds} | {why} |\n"


if __name__ == "__main__":
    sys.stdout.write(markdown())
