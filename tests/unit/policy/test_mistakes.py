"""Hints for words and names that are not known."""

import pytest

from policy import mistakes

PODS = ("web-7d4b9c-x2x5z", "web-7d4b9c-9klmn", "web-7d4b9c-aaaaa", "web-7d4b9c-bbbbb", "cart-0")
NAMES = {
    "a workload of one pod": ("cart", "did you mean cart-0?"),
    "a workload of several": (
        "web",
        "did you mean web-7d4b9c-9klmn, web-7d4b9c-aaaaa, web-7d4b9c-bbbbb, or one of 1 more?",
    ),
    "the beginning of a name": ("web-7d4b9c-x", "did you mean web-7d4b9c-x2x5z?"),
    "a pod that has gone": ("web-7d4b9c-x2x5y", "did you mean 'web-7d4b9c-x2x5z'?"),
    "something else": ("nobody", ""),
    "nothing": ("", ""),
}


@pytest.mark.parametrize(("word", "wanted"), NAMES.values(), ids=NAMES.keys())
def test_names_that_controllers_make_longer(word: str, wanted: str) -> None:
    assert mistakes.names_like(word, PODS) == wanted
