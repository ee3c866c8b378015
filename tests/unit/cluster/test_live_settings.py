"""How soon a changed file is in force while the process runs."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cluster.eventlog import Subject
from cluster.live_settings import LiveSettings
from policy.settings import API_VERSION, Mode
from tests.unit.cluster.surroundings import World, until

HEAD = f"apiVersion: {API_VERSION}\nkind: Policy\n"
STOP_SECONDS = 2.0


class Silent:
    def record(self, *_: object) -> bool:
        return True


def in_place(path: Path, text: str) -> None:
    path.write_text(text)


def made_anew(path: Path, text: str) -> None:
    path.unlink()
    path.write_text(text)


def renamed(path: Path, text: str) -> None:
    other = path.with_suffix(".new")
    other.write_text(text)
    other.replace(path)


@pytest.mark.parametrize("write", [in_place, made_anew, renamed])
def test_a_stop_written_into_the_file_holds_within_two_seconds(
    write: Callable[[Path, str], None], tmp_path: Path
) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(HEAD)
    subject = Subject("v1", "ConfigMap", "policy", "default")
    live = LiveSettings(path, subject=subject, recorder=Silent(), runtime=World().runtime)
    live.start()
    try:
        began = time.monotonic()
        write(path, HEAD + "mode: observe\n")
        until(lambda: live.current.mode is Mode.OBSERVE)
        assert time.monotonic() - began < STOP_SECONDS
    finally:
        live.stop()
