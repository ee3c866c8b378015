"""Nothing rots that is declared for people: each log line, metric and reason code is used by the product."""

import ast
from collections.abc import Iterator
from enum import Enum
from pathlib import Path

import pytest

from descheduler.reasons import Code
from telemetry.catalogue import Log
from telemetry.metrics import Metric
from webhook.reasons import Note, Result, Skip

ROOT = Path(__file__).parents[3]
PRODUCT = ("certs", "cluster", "console", "descheduler", "extender", "policy", "serving", "telemetry", "webhook")
NOT_USE = frozenset({"telemetry/catalogue.py", "telemetry/metrics.py", "descheduler/remedies.py"})
"""Where they are declared and described."""
CLOSED: tuple[type[Enum], ...] = (Log, Metric, Code, Note, Result, Skip)


def attributes(path: Path) -> Iterator[tuple[str, str]]:
    """`Log.STARTING` wherever it is read, however the line is broken; what a docstring says is no use."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield node.value.id, node.attr


@pytest.fixture(scope="module")
def used() -> set[tuple[str, str]]:
    files = (path for part in PRODUCT for path in (ROOT / part).rglob("*.py"))
    kept = (path for path in files if path.relative_to(ROOT).as_posix() not in NOT_USE)
    return {found for path in kept for found in attributes(path)}


MEMBERS = [(kind.__name__, member) for kind in CLOSED for member in kind.__members__]


@pytest.mark.parametrize(("kind", "member"), MEMBERS, ids=str)
def test_some_code_uses_it(kind: str, member: str, used: set[tuple[str, str]]) -> None:
    assert (kind, member) in used


def test_every_package_of_the_product_is_looked_at() -> None:
    packages = {it.parent.name for it in ROOT.glob("*/__init__.py")}
    assert packages - set(PRODUCT) == {"bench", "testbed", "tests"}


def test_words_in_a_docstring_are_no_use(tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_text('"""Log.STOPPED"""\n# Log.STOPPED\nprint(\n    Log\n    .STARTING\n)\n')
    assert ("Log", "STARTING") in set(attributes(path))
    assert ("Log", "STOPPED") not in set(attributes(path))
