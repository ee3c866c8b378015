"""What our servers are made of when their settings change in that very moment."""

import argparse
from pathlib import Path
from typing import Any

import pytest

import extender.serve
import webhook.serve
from cluster.live_view import LiveView
from policy.settings import Mode, Settings
from serving import options as serve_options
from tests.unit.cluster import swapping
from tests.unit.cluster.surroundings import World, until

PROGRAMS: dict[str, Any] = {"webhook": webhook.serve, "extender": extender.serve}


def options(folder: Path, settings: Path | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    serve_options.add(parser, port=0, what="tests", tls_needed=False)
    parser.add_argument("--bundle-from")
    files = (f"--cert={folder / 'tls.crt'}", f"--key={folder / 'tls.key'}")
    given = parser.parse_args([*files, "--probes=127.0.0.1:0", f"--kubeconfig={swapping.kubeconfig(folder)}"])
    given.settings = settings
    return given


@pytest.fixture
def views(monkeypatch: pytest.MonkeyPatch) -> list[LiveView[Any]]:
    """The views that are made from now on."""
    kept: list[LiveView[Any]] = []
    make = LiveView.__init__

    def keep(self: LiveView[Any], *given: Any, **more: Any) -> None:
        kept.append(self)
        make(self, *given, **more)

    monkeypatch.setattr(LiveView, "__init__", keep)
    return kept


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_settings_that_change_while_it_starts_are_in_force_soon_after(
    program: Any, views: list[LiveView[Any]], tmp_path: Path
) -> None:
    """The first version went into the server and the second one was taken for the first: nobody told the server."""
    world = World()
    path = swapping.mounted(tmp_path, "", "mode: observe\n")
    application, _ = program.compose(options(tmp_path, path), world.runtime.log)
    (view,) = views
    assert view._settings == Settings()
    application._start()
    try:
        until(lambda: view._settings.mode is Mode.OBSERVE, "the second version")
    finally:
        application._stop()
    assert "SETTINGS_RELOADED" in world.events()


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_without_a_file_the_defaults_hold(program: Any, views: list[LiveView[Any]], tmp_path: Path) -> None:
    application, _ = program.compose(options(tmp_path, None), World().runtime.log)
    application._start()
    application._stop()
    assert [view._settings for view in views] == [Settings()]
