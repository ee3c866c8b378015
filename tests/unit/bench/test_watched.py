"""What is counted from a watch: replicas that were missing, and pods that came to a full node."""

from typing import Any

import pytest

from bench.quality.watched import Watched


def pod(name: str, *, ready: bool = True, leaving: bool = False) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    gone = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if leaving else {}
    return {
        "metadata": {"name": name, "labels": {"app": "web"}, **gone},
        "spec": {"nodeName": "n", "containers": [{"name": "main"}]},
        "status": {"conditions": conditions},
    }


def test_every_missing_replica_counts_for_as_long_as_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    nobody: Any = None
    seen = Watched(nobody, "default", {"web": 2})
    story = (
        (0.0, "ADDED", pod("a")),
        (0.0, "ADDED", pod("b")),
        (10.0, "MODIFIED", pod("a", leaving=True)),  # one is missing from here
        (12.0, "ADDED", pod("c", ready=False)),
        (13.0, "MODIFIED", pod("b", ready=False)),  # and another
        (15.0, "MODIFIED", pod("c")),
        (15.5, "MODIFIED", pod("b")),
        (20.0, "DELETED", pod("a", leaving=True)),
    )
    for at, kind, body in story:
        monkeypatch.setattr("bench.quality.watched.time.monotonic", lambda at=at: at)
        seen._take(kind, body)
    seen.close()
    assert seen.lost == pytest.approx(3 * 1 + 2 * 2 + 0.5 * 1)


@pytest.mark.parametrize(
    ("line", "leaving", "expected"),
    [
        pytest.param(2.0, False, 1, id="over the line without it"),
        pytest.param(3.0, False, 0, id="it is what brings the node over the line"),
        pytest.param(2.0, True, 0, id="what is leaving does not count"),
    ],
)
def test_a_pod_that_comes_to_a_full_node_is_counted(line: float, leaving: bool, expected: int) -> None:
    """Each pod is 1.25 % of a node."""
    nobody: Any = None
    seen = Watched(nobody, "default", {"web": 2}, line=line)
    seen._first = frozenset({"a", "b"})
    for name in ("a", "b"):
        seen._take("ADDED", pod(name))
    seen._take("MODIFIED", pod("b", leaving=leaving))
    seen._take("ADDED", pod("c"))
    assert seen.onto_full == expected
