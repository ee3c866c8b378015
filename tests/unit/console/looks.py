"""Looks at small clusters, made by hand."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from console.installation import InForce, Leader
from console.look import Look
from descheduler import dump
from descheduler.dump import File
from descheduler.gathered import Gap, Gathered
from descheduler.last_pass import LastPass
from policy.settings import Settings
from tests.unit.descheduler import build

NOW = datetime(2026, 11, 16, 6, tzinfo=UTC)
GOLDEN = Path(__file__).parents[2] / "golden" / "descheduler" / "cluster.json"
PASS = LastPass(NOW - timedelta(seconds=8), 0.012, 2, 5, "enforce")


def leader(*, holder: str = "a-1", renewed: float = 3, lasts: float = 15, last: LastPass | None = PASS) -> Leader:
    """One that was renewed so many seconds ago."""
    since = NOW - timedelta(hours=5)
    return Leader(holder, since, NOW - timedelta(seconds=renewed), timedelta(seconds=lasts), 2, last)


def golden(settings: Settings | None = None, **more: Any) -> Look:
    """The cluster that the pages of plans are made of."""
    chosen = settings or Settings()
    return _look(dump.read([File("cluster.json", GOLDEN.read_bytes())], chosen), chosen, more)


def of(*items: Any, settings: Settings | None = None, gaps: tuple[Gap, ...] = (), **more: Any) -> Look:
    """A cluster of these objects."""
    chosen = settings or Settings()
    return _look(Gathered(build.state(*items, settings=chosen), len(items), gaps), chosen, more)


def _look(gathered: Gathered, settings: Settings, more: Mapping[str, Any]) -> Look:
    parts = {"in_force": InForce(settings, "a file"), "leader": leader(), "installed": True, "now": NOW, **more}
    return Look(gathered, **parts)
