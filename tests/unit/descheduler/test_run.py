"""The composition of the descheduler. That it runs is shown on the control plane."""

import argparse
from pathlib import Path

import pytest

from descheduler.run import Descheduler
from policy.mistakes import InvalidSettings
from policy.settings import Mode, Settings
from tests.unit.cluster import swapping
from tests.unit.cluster.surroundings import World, until


def options(folder: Path, settings: Path | None) -> argparse.Namespace:
    return argparse.Namespace(
        settings=settings,
        kubeconfig=swapping.kubeconfig(folder),
        context=None,
        namespace="spotshift-system",
        identity="me",
        lease_seconds=None,
    )


@pytest.mark.parametrize(
    ("then", "expected", "told"),
    [
        pytest.param("mode: observe\n", Settings(mode=Mode.OBSERVE), "SETTINGS_RELOADED", id="stopped"),
        pytest.param("labelPrefix: example.com/\n", Settings(), "SETTINGS_REJECTED", id="another prefix"),
    ],
)
def test_settings_that_change_while_it_starts(then: str, expected: Settings, told: str, tmp_path: Path) -> None:
    world = World()
    process = Descheduler(options(tmp_path, swapping.mounted(tmp_path, "", then)), world.runtime)
    assert process.settings == Settings()
    process.start()
    try:
        until(lambda: told in world.events(), "the second version")
        until(lambda: process.settings == expected)
    finally:
        process.stop()


def test_settings_of_whoever_makes_it_or_the_defaults(tmp_path: Path) -> None:
    given = Settings(mode=Mode.OBSERVE)
    assert Descheduler(options(tmp_path, None), World().runtime, given).settings == given
    assert Descheduler(options(tmp_path, None), World().runtime).settings == Settings()


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        pytest.param(None, "No such file", id="no file"),
        pytest.param(swapping.HEAD.encode() + b"mode: perhaps\n", "mode", id="a mistake in it"),
        pytest.param(b"\xff", "UTF-8", id="no text"),
    ],
)
def test_settings_that_cannot_be_used(settings: bytes | None, told: str, tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    if settings is not None:
        path.write_bytes(settings)
    with pytest.raises(InvalidSettings, match=told):
        Descheduler(options(tmp_path, path), World().runtime)
