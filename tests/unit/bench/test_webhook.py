"""What the benchmark of the webhook makes of its runs; the runs themselves are made on the control plane."""

import json
from pathlib import Path

import pytest

from bench.webhook import __main__ as command
from bench.webhook import figures, load, report, review
from bench.webhook.contenders import IDIOMATIC, LEAN, OURS
from bench.webhook.creations import NONE
from bench.webhook.figures import NEW, Flooded, Round
from bench.webhook.load import Flood, Turns
from bench.webhook.usage import Usage


def flooded(requests: int, p99: float, *, seconds: float = 1.0, failed: int = 0) -> Flooded:
    return Flooded(Flood(requests, 2.0, failed, 1.0, p99), Usage(seconds, 0.5))


def turns(p99: float, failed: int = 0) -> Turns:
    return Turns(100, failed, 1.0, p99 / 2, p99, p99 * 2)


def a_round(*, failed: int = 0) -> Round:
    return Round(
        floods={
            (IDIOMATIC, 16): flooded(1000, 40.0),
            (LEAN, 16): flooded(4000, 10.0),
            (OURS, 16): flooded(5000, 5.0, failed=failed),
            (NEW, 16): flooded(2000, 8.0),
        },
        paced={IDIOMATIC: turns(9.0), LEAN: turns(2.0), OURS: turns(3.0)},
        creations={NONE: turns(10.0), IDIOMATIC: turns(14.0), LEAN: turns(12.0), OURS: turns(13.0)},
        resident={IDIOMATIC: 30.0, LEAN: 12.0, OURS: 80.0},
    )


def test_ratios_are_formed_within_a_round() -> None:
    found = {name: value.middle for name, value in figures.compared([a_round(), a_round()]).items()}
    assert found == {
        f"requests/s beside {LEAN}": 1.25,
        f"requests/s beside {LEAN}, every pod new": 0.5,
        f"requests/s beside {IDIOMATIC}": 5.0,
        f"requests per processor second beside {LEAN}": pytest.approx(1.25),
        f"requests per processor second beside {LEAN}, every pod new": pytest.approx(0.5),
        f"p99 beside {LEAN}": 0.5,
        "p99 ms at 500 requests/s": 3.0,
        f"added p99 beside {LEAN}": 1.5,
        f"added p99 beside {IDIOMATIC}": 0.75,
    }
    assert {target.figure for target in figures.TARGETS} <= set(found)


def test_a_row_for_each_webhook_and_a_verdict_for_each_target() -> None:
    text = report.markdown([a_round()], "here and now")
    assert f"| {OURS} | 16 | 2500 (2500 to 2500) | 1.00 (1.00 to 1.00) | 5.00 (5.00 to 5.00) | 200" in text
    assert f"| added p99 beside {LEAN} | 1.50 (1.50 to 1.50) | < 1.2 | missed |" in text
    assert text.count("| met |") == len(figures.TARGETS) - 1
    plain = json.loads(report.as_json([a_round()], "here and now"))
    assert plain["rounds"][0]["floods"][f"{OURS}, 16 connections"]["starved"] == 0.25


@pytest.mark.parametrize(("failed", "covers"), [(0, True), (1, False)], ids=["answered", "one failed"])
def test_a_run_with_failures_says_nothing(failed: int, covers: bool) -> None:
    assert report.covers([a_round(failed=failed)]) is covers


def test_without_wrk_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert command.main(["--smoke"]) == 1
    assert capsys.readouterr().err == f"error: {load.NO_WRK}\n"


def test_the_review_is_of_the_size_of_a_real_one_and_can_be_varied() -> None:
    body = review.body("shop")
    assert 3_500 < len(body) < 4_500
    assert body.count(review.MARKER.encode()) == 1
    assert review.MARKER.encode() not in review.body("shop", "7")
