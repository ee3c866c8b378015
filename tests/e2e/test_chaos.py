"""Random misfortune for a moment: the whole product, one seed, and everything that must hold."""

from pathlib import Path

from tests.chaos import run
from tests.chaos.model import Kind
from tests.chaos.schedule import Author
from tests.chaos.timeline import Timeline

SEED = 3
ROUND_SECONDS, GAP_SECONDS, SETTLE_SECONDS = 9.0, 0.5, 100.0


def test_a_short_run_holds_all_invariants(tmp_path: Path) -> None:
    author = Author(SEED, gap=GAP_SECONDS)
    with run.stage(tmp_path / "bed", Timeline()) as on:
        on.settle_seconds = SETTLE_SECONDS
        run.perform(on, author.opening())
        run.perform(on, author.round(ROUND_SECONDS))
        on.settle()
        told = run.summary(on, SEED)
    print(told)  # noqa: T201 - the figures
    assert not on.violations, told
    assert on.quiet_points == 1
    assert {Kind.LABEL, Kind.NOTICE, Kind.KILL_LEADER, Kind.KILL_WEBHOOK, Kind.RESTART_APISERVER} <= set(on.acts)
    assert on.evictions.known, "something was moved"
    assert on.admission.asked, "and admitted"
    assert on.leaders.terms, "by somebody who leads"
