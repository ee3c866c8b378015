"""What pods ask of a node, and the share of it that is taken."""

import json
from typing import Any

import pytest

from cluster.decode import Decoder
from extender import load
from extender.load import Amount
from extender.objects import PlacedPod

MI = 1024 * 1024
DECODER = Decoder[PlacedPod](PlacedPod)


def container(cpu: str | None = None, memory: str | None = None, **more: str) -> dict[str, Any]:
    requests = {name: text for name, text in (("cpu", cpu), ("memory", memory)) if text is not None}
    return {"name": "c", "resources": {"requests": requests}, **more}


ONE = container("1", "100Mi")
SIDECAR = container("500m", "50Mi", restartPolicy="Always")


@pytest.mark.parametrize(
    ("spec", "cpu", "mebibytes"),
    [
        pytest.param({"containers": [ONE]}, 1000, 100, id="one container"),
        pytest.param({"containers": [ONE, container("250m", "28Mi")]}, 1250, 128, id="two"),
        pytest.param({"containers": [container()]}, 100, 200, id="asks for nothing: as the scheduler assumes"),
        pytest.param({"containers": [container("0", "0")]}, 0, 0, id="asks for none at all"),
        pytest.param(
            {"containers": [ONE], "initContainers": [container("3", "10Mi")]}, 3000, 100, id="a large start"
        ),
        pytest.param({"containers": [ONE], "initContainers": [SIDECAR]}, 1500, 150, id="a sidecar"),
        pytest.param(
            {"containers": [ONE], "initContainers": [SIDECAR, container("2", "10Mi")]}, 2500, 150, id="beside a start"
        ),
        pytest.param(
            {"containers": [ONE], "overhead": {"cpu": "50m", "memory": "8Mi"}}, 1050, 108, id="with overhead"
        ),
        pytest.param(
            {"containers": [ONE], "resources": {"requests": {"cpu": "2"}}}, 2000, 100, id="asked for as a whole"
        ),
    ],
)
def test_asked(spec: dict[str, Any], cpu: int, mebibytes: int) -> None:
    seen = DECODER.decode(json.dumps({"metadata": {"name": "p"}, "spec": spec}).encode())
    assert load.asked(seen.spec) == Amount(cpu, mebibytes * MI, 1)


ROOM = load.allocatable({"cpu": "4", "memory": "400Mi", "pods": "10"})


@pytest.mark.parametrize(
    ("taken", "room", "share"),
    [
        pytest.param(Amount(), ROOM, 0.0, id="empty"),
        pytest.param(Amount(1000, 0, 1), ROOM, 0.25, id="cpu"),
        pytest.param(Amount(1000, 200 * MI, 1), ROOM, 0.5, id="memory"),
        pytest.param(Amount(0, 0, 9), ROOM, 0.9, id="number of pods"),
        pytest.param(Amount(8000, 0, 1), ROOM, 1.0, id="more than there is"),
        pytest.param(Amount(1, 1, 1), Amount(), 0.0, id="a node that says nothing"),
    ],
)
def test_share(taken: Amount, room: Amount, share: float) -> None:
    assert load.share(taken, room) == pytest.approx(share)
