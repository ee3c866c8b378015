"""The loop of the demo: it looks until something is so, and shows it as suits where it is shown."""

import io
from collections.abc import Sequence

import pytest
from rich.console import Console

from testbed import objects, picture, watching
from testbed.api import Object


class Cluster:
    """One node, and one Ready pod more at every look."""

    def __init__(self) -> None:
        self.looks = 0

    def list(self, resource: str, namespace: str | None = None) -> list[Object]:
        if resource == "nodes":
            return [objects.node("n")]
        self.looks += 1
        return [pod(f"web-{index}") for index in range(self.looks)]


def pod(name: str, *, node: str = "n", ready: bool = True) -> Object:
    made = objects.pod(name)
    made["metadata"]["labels"]["app"] = "web"
    made["spec"]["nodeName"] = node
    made["status"] = {"conditions": [{"type": "Ready", "status": "True" if ready else "False"}]}
    return made


def console(*, terminal: bool) -> tuple[Console, io.StringIO]:
    out = io.StringIO()
    return Console(file=out, width=100, force_terminal=terminal), out


@pytest.mark.parametrize(
    ("terminal", "keep", "pictures"),
    [(False, True, 1), (False, False, 0), (True, True, 3)],
    ids=["into a file", "into a file, not kept", "on a terminal"],
)
def test_it_looks_until_it_is_so(terminal: bool, keep: bool, pictures: int) -> None:
    cluster, (shown, out) = Cluster(), console(terminal=terminal)
    seen = watching.watch(cluster, shown, ("web",), lambda pods: watching.all_ready(pods, 3), keep=keep)
    assert seen.reached
    assert cluster.looks == len(seen.pods) == 3
    assert out.getvalue().count("nodes and their pods") >= pictures
    assert (out.getvalue() == "") == (pictures == 0)


def test_it_gives_up() -> None:
    shown, _ = console(terminal=False)
    seen = watching.watch(Cluster(), shown, ("web",), lambda _: False, timeout_seconds=0.3)
    assert not seen.reached
    assert seen.seconds >= 0.3


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        pytest.param([pod("a"), pod("b")], True, id="as many as wanted"),
        pytest.param([pod("a"), pod("b", ready=False)], False, id="one is not Ready"),
        pytest.param([pod("a"), pod("b"), pod("c")], False, id="one is still leaving"),
    ],
)
def test_two_are_wanted(pods: Sequence[Object], expected: bool) -> None:
    assert watching.all_ready(pods, 2) == expected


def test_pods_by_node() -> None:
    pods = [pod("a", node="n"), pod("b", node="m"), objects.pod("waits")]
    assert [it["metadata"]["name"] for it in watching.on(["n"], pods)] == ["a"]


@pytest.mark.parametrize("columns", [80, 100])
def test_nothing_is_cut_off(columns: int) -> None:
    """The fullest picture of the demo: what is on a node is told in numbers, also on a usual terminal."""
    nodes = [objects.node(f"on-demand-{index}") for index in range(3)]
    pods = [pod(f"web-{index}", node="on-demand-0") for index in range(10)]
    out = io.StringIO()
    Console(file=out, width=columns).print(picture.draw(nodes, pods, ("web", "pile"), columns))
    assert "…" not in out.getvalue()
    assert "●●●●●●●●●● 10" in out.getvalue()
