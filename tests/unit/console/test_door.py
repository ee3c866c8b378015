"""Every way a call can end badly, in the words of the person who asked."""

from pathlib import Path

import pytest

from cluster import errors
from cluster.resources import NODES
from console import door
from tests.unit.cluster import fake_api
from tests.unit.cluster.fake_api import Answer
from tests.unit.cluster.test_auth import kubeconfig

TOLD = {
    "no answer": (errors.Unreachable("refused"), "the cluster at https://x does not answer: refused"),
    "who?": (
        errors.Unauthorized("expired", status=401),
        "the cluster at https://x does not accept who you are: expired",
    ),
    "rights": (
        errors.Forbidden("nodes is forbidden", status=403),
        "you are not allowed to do this: nodes is forbidden",
    ),
    "gone": (errors.NotFound("pods x", status=404), "not found: pods x"),
    "busy": (errors.Throttled("later", status=429), "the cluster at https://x is busy, try again in a moment: later"),
    "odd": (
        errors.ServerError("oops", status=500, reason="Internal"),
        "the cluster at https://x refused: 500 Internal: oops",
    ),
}


def test_the_flag_is_named_where_the_answer_comes_too_late(tmp_path: Path) -> None:
    with fake_api.running() as api:
        api.script = lambda _: Answer(body=b"{", hold=True)
        path = kubeconfig(tmp_path / "config", api.url, {"token": "abc"})
        with (
            pytest.raises(door.Unusable, match=r"does not answer: .*; --request-timeout is 0\.05s$"),
            door.opened({}, tmp_path, kubeconfig=path, context=None, timeout=0.05) as opened,
        ):
            opened.client.get(NODES, "a")


@pytest.mark.parametrize(("error", "wanted"), TOLD.values(), ids=TOLD.keys())
def test_errors_in_words(error: errors.ApiError, wanted: str) -> None:
    assert door.told(error, "https://x") == wanted
