"""Tests that share a control plane are run by one worker."""

import pytest

from tests import scheduling

SHARED = {"tests/integration/console", "tests/integration/descheduler/moves"}
APART = {"tests/integration/cluster/test_slow.py"}
SCOPES = {
    "a test that has nothing in common with its file": (
        "tests/integration/cluster/test_slow.py::test_x[a/b]",
        "tests/integration/cluster/test_slow.py::test_x[a/b]",
    ),
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
    assert scheduling.scope(nodeid, SHARED, APART) == wanted


def test_the_folders_of_this_repository_are_found() -> None:
    assert scheduling.shared(scheduling.ROOT) >= SHARED


def test_files_that_are_handed_out_by_tests_share_nothing_else() -> None:
    files = scheduling.apart(scheduling.ROOT)
    assert "tests/integration/testbed/test_kubelets.py" in files
    assert scheduling.long(scheduling.ROOT) > files
    for file in files:
        assert "scope=" not in (scheduling.ROOT / file).read_text(), f"{file} makes something for several tests"
        assert scheduling.scope(file, scheduling.shared(scheduling.ROOT)) == file


def test_what_computes_and_what_waits_take_turns_and_shared_folders_come_first() -> None:
    found = (
        *("tests/e2e/test_a.py", "tests/e2e/test_b.py"),
        *("tests/integration/bench/test_c.py", "tests/integration/cluster/test_slow.py::test_x"),
        *("tests/integration/console", "tests/integration/webhook/test_d.py"),
        *("tests/unit/test_e.py", "tests/unit/test_f.py"),
    )
    assert scheduling.in_turns(found, SHARED, APART) == [
        *("tests/e2e/test_a.py", "tests/integration/console"),
        *("tests/e2e/test_b.py", "tests/integration/cluster/test_slow.py::test_x"),
        *("tests/integration/bench/test_c.py", "tests/integration/webhook/test_d.py"),
        *("tests/unit/test_e.py", "tests/unit/test_f.py"),
    ]
