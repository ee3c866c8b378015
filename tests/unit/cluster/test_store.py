"""Only real changes become deltas, and deltas always lead to the store."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.meta import ObjectMeta, PartialObjectMetadata
from cluster.store import Delta, Key, Kind, Store, is_newer

Item = PartialObjectMetadata


def item(name: str = "a", uid: str = "u1", version: int | str = 1) -> Item:
    return Item(ObjectMeta(name=name, namespace="ns", uid=uid, resource_version=str(version)))


def kinds(deltas: tuple[Delta[Item], ...]) -> list[tuple[str, str]]:
    return [(delta.kind.value, delta.key[1]) for delta in deltas]


VERSIONS = {
    "newer": ("11", "9", True),
    "older": ("9", "11", False),
    "same": ("9", "9", False),
    "huge numbers": ("18446744073709551617", "18446744073709551616", True),
    "not a number, different": ("b", "a", True),
    "not a number, same": ("a", "a", False),
    "one of them not a number": ("5", "x", True),
}


@pytest.mark.parametrize(("version", "known", "expected"), VERSIONS.values(), ids=VERSIONS.keys())
def test_newer(version: str, known: str, expected: bool) -> None:
    assert is_newer(version, known) is expected


def test_added_modified_deleted_carry_old_and_new() -> None:
    store: Store[Item] = Store()
    first, second, final = item(version=1), item(version=2), item(version=3)
    assert store.upsert(first) == (Delta(Kind.ADDED, ("ns", "a"), None, first),)
    assert store.upsert(second) == (Delta(Kind.MODIFIED, ("ns", "a"), first, second),)
    assert store.remove(final) == (Delta(Kind.DELETED, ("ns", "a"), second, None),)
    assert store.get(("ns", "a")) is None


REPLAYS = {
    "the same event again": item(version=5),
    "an older event": item(version=4),
    "an older bearer of the name": item(uid="u0", version=3),
}


@pytest.mark.parametrize("replay", REPLAYS.values(), ids=REPLAYS.keys())
def test_replays_change_nothing(replay: Item) -> None:
    store: Store[Item] = Store()
    store.upsert(item(version=5))
    assert store.upsert(replay) == ()
    assert store.get(("ns", "a")) == item(version=5)


def test_a_name_taken_again_is_two_deltas() -> None:
    store: Store[Item] = Store()
    old, new = item(uid="u1", version=1), item(uid="u2", version=2)
    store.upsert(old)
    assert store.upsert(new) == (
        Delta(Kind.DELETED, ("ns", "a"), old, None),
        Delta(Kind.ADDED, ("ns", "a"), None, new),
    )


DELETIONS = {
    "of the object": (item(uid="u1", version=6), True),
    "with the last version itself": (item(uid="u1", version=5), True),
    "replayed": (item(uid="u1", version=4), False),
    "of an earlier bearer": (item(uid="u0", version=4), False),
    "of a later bearer that was never seen": (item(uid="u2", version=9), True),
    "of another name": (item(name="b", version=9), False),
}


@pytest.mark.parametrize(("final", "expected"), DELETIONS.values(), ids=DELETIONS.keys())
def test_deletions(final: Item, expected: bool) -> None:
    store: Store[Item] = Store()
    store.upsert(item(uid="u1", version=5))
    assert bool(store.remove(final)) is expected
    assert len(store) == (0 if expected else 1)


def test_a_list_emits_only_what_differs_and_deletions_first() -> None:
    store: Store[Item] = Store()
    same = item("same", "s", 1)
    for known in (same, item("changed", "c", 2), item("gone", "g", 3), item("swapped", "x", 4)):
        store.upsert(known)
    deltas = store.replace(
        [item("same", "s", 1), item("changed", "c", 12), item("swapped", "y", 14), item("new", "n", 15)]
    )
    assert kinds(deltas) == [
        ("deleted", "gone"),
        ("modified", "changed"),
        ("deleted", "swapped"),
        ("added", "swapped"),
        ("added", "new"),
    ]
    assert store.get(("ns", "same")) is same, "unchanged objects stay the very same"
    assert deltas[0].object == item("gone", "g", 3), "a deletion carries what was last known"


def test_a_list_is_believed_even_if_versions_went_back() -> None:
    store: Store[Item] = Store()
    store.upsert(item(version=100))
    assert kinds(store.replace([item(version=7)])) == [("modified", "a")]


def test_a_snapshot_does_not_change() -> None:
    store: Store[Item] = Store()
    store.upsert(item())
    before = store.snapshot()
    store.remove(item(version=2))
    assert len(before) == 1


names, uids, versions = st.sampled_from("abc"), st.sampled_from(["u1", "u2", "u3"]), st.integers(1, 9)
objects = st.builds(item, names, uids, versions)


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("upsert"), objects),
            st.tuples(st.just("remove"), objects),
            st.tuples(st.just("replace"), st.lists(objects, unique_by=lambda i: i.metadata.name)),
        )
    )
)
def test_the_deltas_always_lead_to_the_store(steps: list[tuple[str, object]]) -> None:
    store: Store[Item] = Store()
    followed: dict[Key, Item] = {}
    for verb, argument in steps:
        for delta in getattr(store, verb)(argument):
            assert (delta.kind is Kind.ADDED) == (delta.key not in followed)
            assert delta.old is followed.get(delta.key)
            if delta.new is None:
                del followed[delta.key]
            else:
                followed[delta.key] = delta.new
    assert followed == store.snapshot()
