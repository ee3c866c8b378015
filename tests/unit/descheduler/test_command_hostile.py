"""Dumps that are JSON but not what any apiserver would say: they are planned or refused, never a traceback."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from descheduler.__main__ import main
from tests.effort import many

CLUSTER = Path(__file__).parents[2] / "golden" / "descheduler" / "cluster.json"
EXTRA: dict[str, Any] = {
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}]
            }
        },
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
            ]
        },
    },
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "topology.kubernetes.io/zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]},
        }
    ],
    "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 3}],
    "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}, {"name": "e", "emptyDir": {}}],
}
VALUES: tuple[Any, ...] = (
    None, "", "x", "-1", "1e999", "9" * 400, 0, -1, 2**63, 10**30, 1.5, 1e308, True, [], {}, [None], [[]], {"": ""},
    {"a": None}, "\x00", "\ud800".encode("utf-8", "surrogatepass").decode("utf-8", "replace"), "In", "Always", "0",
    "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "99999Ei", "-5m",
)  # fmt: skip
TRIES = many(80)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where anything stands in the document."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, more in inner for found in places(more, (*path, key)))]


def replaced(document: Any, path: tuple[Any, ...], value: Any) -> None:
    for key in path[:-1]:
        document = document[key]
    document[path[-1]] = value


@pytest.mark.parametrize("seed", range(4))
def test_planned_or_refused(seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = random.Random(seed)
    whole = json.loads(CLUSTER.read_text())
    for item in whole["items"]:
        if item["kind"] == "Pod" and rng.random() < 0.5:
            item["spec"] |= EXTRA
    text, known = json.dumps(whole), places(whole)[1:]
    path = tmp_path / "dump.json"
    codes = set()
    for _ in range(TRIES):
        document = json.loads(text)
        for place in sorted(rng.sample(known, rng.choice((1, 1, 2))), key=len, reverse=True):
            replaced(document, place, rng.choice(VALUES))
        path.write_text(json.dumps(document))
        command = rng.choice((["plan", "-v"], ["plan", "-o", "json"], ["explain", "shop/web-0"]))
        codes.add(main([*command, "-f", str(path), "--now", "2026-11-16T06:00:00Z"]))
        capsys.readouterr()
    assert codes == {1, 3}, "refused, or planned without the claim that nobody knows"
