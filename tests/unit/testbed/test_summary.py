"""What the demo says of its moves is what their records hold."""

import io
from typing import Any

import pytest
from rich.console import Console

from testbed import summary
from testbed.summary import Move


def record(strategy: str = "LoadBalancing", **status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "m"}, "spec": {"strategy": strategy}, "status": status}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(
            record(
                phase="Completed",
                onTarget=True,
                resolved={"mode": "Surge"},
                startedAt="2026-07-01T10:00:00Z",
                finishedAt="2026-07-01T10:00:04.5Z",
            ),
            Move("LoadBalancing", "Surge", "Completed", on_target=True, seconds=4.5),
            id="ended",
        ),
        pytest.param(
            {"metadata": {"name": "m"}, "spec": {}},
            Move("by hand", "", "", on_target=False, seconds=None),
            id="just asked for",
        ),
        pytest.param(
            record(phase="InProgress", startedAt="2026-07-01T10:00:00Z"),
            Move("LoadBalancing", "", "InProgress", on_target=False, seconds=None),
            id="under way",
        ),
    ],
)
def test_a_record_is_read(found: dict[str, Any], expected: Move) -> None:
    assert summary.of(found) == expected
    assert summary.of(found).ended == (expected.phase == "Completed")


def test_rows_add_up() -> None:
    moves = [
        Move("LoadBalancing", "Evict", "Completed", on_target=True, seconds=2.0),
        Move("LoadBalancing", "Evict", "Completed", on_target=False, seconds=4.0),
        Move("LoadBalancing", "Evict", "Cancelled", on_target=False, seconds=1.0),
        Move("NodeMaintenance", "Surge", "Completed", on_target=True, seconds=9.0),
        Move("NodeMaintenance", "Surge", "Failed", on_target=False, seconds=60.0),
    ]
    printed = io.StringIO()
    Console(file=printed, width=120).print(summary.table(moves))
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in printed.getvalue().splitlines()]
    assert [row for row in rows if row] == [
        ["LoadBalancing", "3", "1", "1", "1", "0", "3 s"],
        ["NodeMaintenance", "2", "1", "0", "0", "1", "9 s"],
        ["all", "5", "2", "1", "1", "1", "4 s"],
    ]
    assert summary.doubled(moves) == 1


def test_nothing_was_moved() -> None:
    printed = io.StringIO()
    Console(file=printed, width=120).print(summary.table([]))
    assert "all" in printed.getvalue()


def test_nothing_is_cut_off_on_a_usual_terminal() -> None:
    moves = [Move("SpotInterruption", "Evict", "Completed", on_target=True, seconds=120.0)] * 72
    printed = io.StringIO()
    Console(file=printed, width=80).print(summary.table(moves))
    assert "…" not in printed.getvalue()
    assert {"target", "elsewhere", "called", "median", "120"} <= set(printed.getvalue().replace("┃", " ").split())
