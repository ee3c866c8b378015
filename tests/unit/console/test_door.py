"""Every way a call can end badly, in the words of the person who asked."""

import pytest

from cluster import errors
from console import door

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


@pytest.mark.parametrize(("error", "wanted"), TOLD.values(), ids=TOLD.keys())
def test_errors_in_words(error: errors.ApiError, wanted: str) -> None:
    assert door.told(error, "https://x") == wanted
