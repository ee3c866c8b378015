"""Tests that share a control plane are run by one worker."""

import pytest

from tests import scheduling

SHARED = {"tests/integration/console", "tests/integration/descheduler/moves"}
SCOPES = {
    "a file on its own": ("tests/e2e/test_moves.py::test_x[a::b]", "tests/e2e/test_moves.py"),
    "a file of a shared folder": (
        "tests/integration/descheduler/moves/test_rights.py::test_x",
        "tests/integration/descheduler/moves",
    ),
    "a file below one": ("tests/integration/console/web/test_page.py::test_x", "tests/integration/console"),
    "a folder beside one": (
        "tests/integration/descheduler/test_fit.py::test_x",
        "tests/integration/descheduler/test_fit.py",
    ),
}


@pytest.mark.parametrize(("nodeid", "wanted"), SCOPES.values(), ids=SCOPES.keys())
def test_scope(nodeid: str, wanted: str) -> None:
    assert scheduling.scope(nodeid, SHARED) == wanted


def test_the_folders_of_this_repository_are_found() -> None:
    assert scheduling.shared(scheduling.ROOT) >= SHARED


def test_what_computes_and_what_waits_take_turns_and_shared_folders_come_first() -> None:
    found = (
        *("tests/e2e/test_a.py", "tests/e2e/test_b.py"),
        *("tests/integration/bench/test_c.py", "tests/integration/console", "tests/integration/webhook/test_d.py"),
        *("tests/unit/test_e.py", "tests/unit/test_f.py"),
    )
    assert scheduling.in_turns(found, SHARED) == [
        *("tests/e2e/test_a.py", "tests/integration/console"),
        *("tests/e2e/test_b.py", "tests/integration/bench/test_c.py"),
        "tests/integration/webhook/test_d.py",
        *("tests/unit/test_e.py", "tests/unit/test_f.py"),
    ]
