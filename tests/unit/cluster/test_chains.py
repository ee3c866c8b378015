"""The way from a leaf to what is trusted. Certificates are names here, and `a<b` says that b signed a."""

import pytest

from cluster import chains

FOUND = {
    "directly": ("leaf<root", "", "root", "root"),
    "through one": ("leaf<m m<root", "m", "root", "root"),
    "through three, in no order": ("leaf<a a<b b<c c<root", "c a b", "root", "root"),
    "the nearest that is trusted": ("leaf<m m<root", "m", "root m", "m"),
    "itself": ("", "", "leaf", "leaf"),
    "one of two ways": ("leaf<a leaf<b b<root", "a b", "root", "root"),
    "one is not shown": ("leaf<a a<b b<root", "a", "root", None),
    "to somebody else": ("leaf<m m<other", "m", "root", None),
    "in a circle": ("leaf<a a<b b<a", "a b", "root", None),
    "nothing is trusted": ("leaf<m m<m", "m", "", None),
}


def signed(text: str) -> set[tuple[str, str]]:
    return {(cert, authority) for cert, _, authority in (pair.partition("<") for pair in text.split())}


@pytest.mark.parametrize(("pairs", "shown", "trusted", "found"), FOUND.values(), ids=FOUND.keys())
def test_the_way_up(pairs: str, shown: str, trusted: str, found: str | None) -> None:
    made = signed(pairs)
    got = chains.anchor(
        "leaf",
        shown=shown.split(),
        trusted=trusted.split(),
        signs=lambda authority, cert, _: (cert, authority) in made,
    )
    assert got == found


def test_who_signs_is_told_how_many_are_below() -> None:
    made, asked = signed("leaf<a a<b b<root"), set[tuple[str, int]]()

    def signs(authority: str, cert: str, below: int) -> bool:
        if (cert, authority) in made:
            asked.add((authority, below))
        return (cert, authority) in made

    assert chains.anchor("leaf", shown=["b", "a"], trusted=["root"], signs=signs) == "root"
    assert asked == {("a", 0), ("b", 1), ("root", 2)}


def test_a_thousand_certificates_that_all_sign_each_other_take_no_time() -> None:
    asked: list[str] = []

    def signs(authority: str, _: str, __: int) -> bool:
        asked.append(authority)
        return authority != "root"

    assert chains.anchor("leaf", shown=[str(it) for it in range(1000)], trusted=["root"], signs=signs) is None
    assert len(asked) <= (chains.LONGEST + 1) ** 2
