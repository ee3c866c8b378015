"""What `check` says about the settings and the leader, from scripted answers."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from console import installation
from console.health import parts
from console.health.finding import Level
from console.installation import InForce
from policy.settings import Settings
from tests.unit.cluster import fake_api
from tests.unit.cluster.fake_api import Answer, status

NOW = datetime(2026, 11, 16, 6, tzinfo=UTC)
SYSTEM = "spotshift-system"
LEASES: dict[str, tuple[str, int, float, Level, str]] = {
    "held": ("a-1", 15, 3, Level.OK, "a-1 leads, renewed 3s ago"),
    "silent": ("a-1", 15, 31, Level.FAILED, "a-1 last renewed 31s ago"),
    "new": ("", 15, 3, Level.WARNING, "nobody leads yet: a new lease is taken when it is 15s old"),
    "new for too long": ("", 15, 31, Level.FAILED, "nobody leads"),
    "handed back": ("", 1, 1, Level.FAILED, "nobody leads"),
}


@pytest.mark.parametrize(("holder", "lasts", "age", "level", "text"), LEASES.values(), ids=LEASES.keys())
def test_the_leader(holder: str, lasts: int, age: float, level: Level, text: str) -> None:
    """A fresh installation is not called broken while its first leader waits one lease."""
    renewed = (NOW - timedelta(seconds=age)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = {"holderIdentity": holder, "leaseDurationSeconds": lasts, "renewTime": renewed}
    with fake_api.running() as api:
        api.script = lambda _: Answer(body={"metadata": {"name": "spotshift-descheduler"}, "spec": spec})
        found = installation.leader(api.client(rate_limit=None), SYSTEM)
    first = next(iter(parts.leader(found, SYSTEM, InForce(Settings(), "here"), NOW)))
    assert (first.level, first.text) == (level, text)


PRESENT = {
    "nothing": ((), True),
    "the definition": (("customresourcedefinitions",), False),
    "one process": (("spotshift-certs",), False),
}


@pytest.mark.parametrize(("there", "absent"), PRESENT.values(), ids=PRESENT.keys())
def test_whether_anything_is_installed(there: tuple[str, ...], absent: bool) -> None:
    with fake_api.running() as api:
        api.script = lambda seen: (
            Answer(body={"metadata": {"name": "x"}})
            if any(it in seen.path for it in there)
            else status(404, "NotFound")
        )
        client = api.client(rate_limit=None)
        found = parts.absent(client, SYSTEM, parts.definition(client))
    assert (found is not None) is absent
    assert sum("customresourcedefinitions" in it.path for it in api.seen) == 1
    if found is not None:
        assert found.text.startswith("not installed: ")


def test_who_may_not_look_is_not_told_that_nothing_is_installed() -> None:
    with fake_api.running() as api:
        api.script = lambda _: status(403, "Forbidden")
        client = api.client(rate_limit=None)
        assert parts.absent(client, SYSTEM, parts.definition(client)) is None


def test_settings_that_are_gone_are_not_called_valid() -> None:
    with fake_api.running() as api:
        api.script = lambda _: status(404, "NotFound")
        in_force = installation.settings(api.client(rate_limit=None), SYSTEM, leader="there is none", now=NOW)
    first = next(iter(parts.settings(in_force, SYSTEM)))
    assert first.level is Level.FAILED
    assert first.text.startswith(f"there is no ConfigMap {SYSTEM}/spotshift-settings: ")
    assert "manifests/overlays/production" in first.advice


@pytest.mark.parametrize(
    "wrong", [{"mistakes": ("mode: 'x'",)}, {"absent": "ConfigMap a/b"}], ids=["wrong", "absent"]
)
def test_where_the_defaults_stand_in_the_mode_is_not_known(wrong: dict[str, Any]) -> None:
    found = [it for it in parts.settings(InForce(Settings(), "here", **wrong), SYSTEM) if it.check == "mode"]
    assert [it.level for it in found] == [Level.UNKNOWN]
