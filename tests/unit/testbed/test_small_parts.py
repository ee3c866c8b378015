"""Waiting, ports, paths, objects and the progress lines."""

import io
import itertools
import os
import random
import socket
import tempfile
from pathlib import Path

import pytest
from rich.console import Console

from testbed import api, objects, pki, ports, progress
from testbed.waiting import Hopeless, NeverCame, eventually, next_look


def test_eventually_returns_what_it_waited_for() -> None:
    values = itertools.count()
    assert eventually(lambda: next(values), until=lambda value: value > 3, interval=0) == 4


def test_eventually_shows_the_last_state() -> None:
    with pytest.raises(NeverCame, match=r"(?s)three pods did not come within 0 s; last seen:.*'phase': 'Pending'"):
        eventually(
            lambda: {"phase": "Pending"}, until=lambda pod: pod["phase"] != "Pending", timeout=0, what="three pods"
        )


@pytest.mark.parametrize(("waited", "seconds"), [(0.0, 0.2), (1.0, 0.2), (1.5, 0.3), (2.0, 0.4), (90.0, 0.4)])
def test_eventually_looks_less_often_the_longer_it_waits(waited: float, seconds: float) -> None:
    assert next_look(waited) == pytest.approx(seconds)


def test_eventually_counts_a_failed_assertion_as_not_yet() -> None:
    def probe() -> None:
        raise AssertionError("only 2 of 3")

    with pytest.raises(NeverCame, match="only 2 of 3"):
        eventually(probe, timeout=0)


def test_what_cannot_come_any_more_is_not_waited_for() -> None:
    def probe() -> bool:
        raise Hopeless("it has ended")

    with pytest.raises(Hopeless, match="it has ended"):
        eventually(probe, timeout=600)


def test_eventually_does_not_hide_a_bug() -> None:
    with pytest.raises(ZeroDivisionError):
        eventually(lambda: 1 // 0, timeout=5)


def test_eventually_cuts_a_huge_state() -> None:
    with pytest.raises(NeverCame, match="more characters"):
        eventually(lambda: ["x" * 90] * 500, until=lambda _: False, timeout=0)


@pytest.fixture
def promises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of ports given out, for one test alone."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path / f"spotshift-ports-{os.getuid()}.json"


def test_ports_differ_and_are_free() -> None:
    chosen = ports.free(["a", "b", "c"], rng=random.Random(1))
    assert len(set(chosen.values())) == 3
    assert all(ports.is_free(port) for port in chosen.values())


@pytest.mark.usefixtures("promises")
def test_a_taken_port_is_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "PROMISED_SECONDS", 0.0)
    first = ports.free(["a"], rng=random.Random(1))["a"]
    assert ports.free(["a"], rng=random.Random(1))["a"] == first
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", first))
        taken.listen()
        assert not ports.is_free(first)
        assert ports.free(["a"], rng=random.Random(1))["a"] != first


def test_a_port_is_given_to_one_caller_though_it_is_not_bound_yet(promises: Path) -> None:
    first = ports.free(["a"], rng=random.Random(1))["a"]
    assert ports.free(["a"], rng=random.Random(1))["a"] != first
    promises.write_text('{"2')
    assert ports.free(["a"], rng=random.Random(1))["a"] == first


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("pods", "web", "default"), "/api/v1/namespaces/default/pods/web"),
        (("nodes", None, None), "/api/v1/nodes"),
        (("deployments", None, "a"), "/apis/apps/v1/namespaces/a/deployments"),
        (("nodes.metrics", "n", None), "/apis/metrics.k8s.io/v1beta1/nodes/n"),
    ],
)
def test_paths(arguments: tuple[str, str | None, str | None], expected: str) -> None:
    assert api.path(*arguments) == expected


def test_a_pool_is_spread_over_zones() -> None:
    pool = objects.pool("x-", on_demand=1, spot=4)
    labels = [node["metadata"]["labels"] for node in pool]
    assert [label[objects.CAPACITY] for label in labels] == ["on-demand", *["spot"] * 4]
    assert [label[objects.ZONE] for label in labels[1:]] == ["zone-a", "zone-b", "zone-c", "zone-a"]


def test_keys_are_private(tmp_path: Path) -> None:
    pair = pki.authority(tmp_path, "ca").server("web")
    assert pair.key.stat().st_mode & 0o077 == 0


def test_progress_without_a_terminal_is_a_line_now_and_then() -> None:
    output = io.StringIO()
    ticks = iter([0.0, 1.0, 16.0])
    shown = progress.BuildProgress(Console(file=output, width=100), clock=lambda: next(ticks))
    for done in (1, 2, 3):
        shown.compiling("k8s.io/api", done, 4)
    shown.finished()
    assert output.getvalue().splitlines() == [
        "compiling 1/4 (25 %)",
        "compiling 3/4 (75 %)",
        "The control plane's binaries are built.",
    ]


def test_progress_on_a_terminal_is_a_bar() -> None:
    output = io.StringIO()
    shown = progress.BuildProgress(Console(file=output, width=100, force_terminal=True))
    shown.downloading("k8s.io/api", 1, 2)
    shown.compiling("k8s.io/api", 3, 4)
    shown.finished()
    assert "3/4" in output.getvalue()
