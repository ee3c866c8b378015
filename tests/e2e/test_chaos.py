"""Random misfortune for a moment: the whole product, one seed, and everything that must hold."""

from pathlib import Path

from tests.chaos import run
from tests.chaos.schedule import Author
from tests.chaos.timeline import Timeline

SEED = 3
ROUND_SECONDS = 12.0
GAP_SECONDS = 0.6


def test_a_short_run_holds_all_invariants(tmp_path: Path) -> None:
    with run.stage(tmp_path / "bed", Timeline()) as on:
        run.rounds(on, Author(SEED, gap=GAP_SECONDS), seconds=1.0, of=ROUND_SECONDS)
        told = run.summary(on, SEED)
        print(told)  # noqa: T201 - the figures
        assert not on.violations, told
        assert on.quiet_points == 2
        assert on.moves.histories, "something was moved"
        assert on.admission.asked, "and admitted"
        assert on.leaders.terms, "by somebody who leads"
