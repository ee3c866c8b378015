"""Seconds of Ready replicas that were missing, from one change of the pods to the next."""

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
