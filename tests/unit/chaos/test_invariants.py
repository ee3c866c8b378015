"""Each invariant tells what is wrong when it is, and says nothing when it is not."""

from collections.abc import Sequence

import pytest

from tests.chaos.admission import Admission
from tests.chaos.budgets import Budgets
from tests.chaos.evictions import Evictions
from tests.chaos.leaders import Leaders
from tests.chaos.records import Moves
from tests.chaos.replicas import Replicas
from tests.chaos.watching import Request, Seen
from tests.unit.chaos.seeing import budget, move, pod, request, workload

LATER = 1000.0

EVICTED = pod("u1", 10, evicted=True)
BARE = pod("u1", 10, evicted=True, owned=False)
COPY = pod("u2", 9, name="rescheduled-web-0", owned=False, original="u1")
UNREADY_COPY = pod("u2", 9, name="rescheduled-web-0", owned=False, original="u1", ready=False)
ORIGINAL = pod("u1", 9, owned=False)
LEFT_OVER = pod("u2", 10, name="rescheduled-web-0", owned=False, original="u1", evicted=True)
EVICTIONS: dict[str, tuple[Sequence[Seen], str]] = {
    "announced": ((move("m", 5, step="Evict"), EVICTED), ""),
    "announced by a watch that told it later": ((EVICTED, move("m", 5, step="Evict")), ""),
    "not announced": ((EVICTED,), "no PodMigration had announced"),
    "announced too late": ((EVICTED, move("m", 11, step="Evict")), "no PodMigration had announced"),
    "only marked": ((move("m", 5, step="Mark"), EVICTED), "no PodMigration had announced"),
    "announced for its namesake": ((move("m", 5, step="Evict", uid="u0"), EVICTED), "no PodMigration had announced"),
    "when its move was cancelled": (
        (move("m", 5, step="Evict"), move("m", 7, step="Evict", phase="Cancelled"), EVICTED),
        "had ended as Cancelled",
    ),
    "when a move was cancelled and the next had announced it": (
        (
            move("m", 5, step="Evict"),
            move("m", 7, step="Evict", phase="Cancelled"),
            move("n", 8, step="Evict"),
            EVICTED,
        ),
        "",
    ),
    "cancelled after it": (
        (move("m", 5, step="Evict"), EVICTED, move("m", 12, step="Evict", phase="Cancelled")),
        "",
    ),
    "without controller and copy": ((move("m", 5, step="Evict"), BARE), "before a copy of it was Ready"),
    "with a copy that is not Ready": (
        (move("m", 5, step="Evict"), UNREADY_COPY, BARE),
        "before a copy of it was Ready",
    ),
    "with a copy": ((move("m", 5, step="Evict"), COPY, BARE), ""),
    "a copy that is not wanted any more": (
        (
            move("m", 5, step="RemoveCopy", intent={"uid": "u1", "copy": "rescheduled-web-0"}),
            pod("u2", 10, name="rescheduled-web-0", owned=False, original="u1", evicted=True),
        ),
        "",
    ),
    "a copy that was left over": ((ORIGINAL, LEFT_OVER), ""),
    "a copy whose original is gone": ((LEFT_OVER,), "no PodMigration had announced"),
    "a copy whose original is going": (
        (pod("u1", 9, owned=False, terminating=True), LEFT_OVER),
        "no PodMigration had announced",
    ),
    "gone by other hands": ((pod("u1", 10, terminating=True),), ""),
}


@pytest.mark.parametrize(("events", "says"), EVICTIONS.values(), ids=EVICTIONS.keys())
def test_evictions(events: Sequence[Seen], says: str) -> None:
    moves = Moves()
    evictions = Evictions(moves)
    for seen in events:
        assert list((moves if seen.resource == "podmigrations" else evictions).see(seen)) == []
    found = list(evictions.look(LATER))
    assert [says in it for it in found] == [True] * bool(says), found
    assert list(evictions.look(LATER)) == [], "told once"


GRANTED = request(1.0, "a", "create", "pods/eviction", name="web-0", code=201)
UNSEEN: dict[str, tuple[Sequence[Seen], Request, str]] = {
    "seen": ((move("m", 5, step="Evict"), EVICTED), GRANTED, ""),
    "not seen, announced": ((move("m", 5, step="Evict"),), GRANTED, ""),
    "not seen, not announced": ((), GRANTED, "was evicted unseen"),
    "not seen, only marked": ((move("m", 5, step="Mark"),), GRANTED, "was evicted unseen"),
    "refused by a budget": ((), request(1.0, "a", "create", "pods/eviction", name="web-0", code=429), ""),
    "a copy": ((), request(1.0, "a", "create", "pods/eviction", name="rescheduled-web-0", code=201), ""),
}


@pytest.mark.parametrize(("events", "asked", "says"), UNSEEN.values(), ids=UNSEEN.keys())
def test_evictions_that_no_watch_has_told(events: Sequence[Seen], asked: Request, says: str) -> None:
    moves = Moves()
    evictions = Evictions(moves)
    evictions.grant(asked)
    for seen in events:
        assert list((moves if seen.resource == "podmigrations" else evictions).see(seen)) == []
    found = list(evictions.look(LATER))
    assert [says in it for it in found] == [True] * bool(says), found


def test_a_move_that_has_ended_stays_so() -> None:
    moves = Moves()
    assert list(moves.see(move("m", 5, phase="Completed"))) == []
    assert list(moves.see(move("m", 6, phase="Completed"))) == []
    assert list(moves.see(move("m", 7, phase="InProgress"))) == ["m had ended as Completed and is InProgress now"]


REPLICAS: dict[str, tuple[Sequence[Seen], str]] = {
    "the user's": ((workload(3, 10, at=1),), ""),
    "one more, announced": ((move("m", 5, step="SurgeUp"), workload(4, 10, at=1)), ""),
    "one more, its move has just ended": (
        (move("m", 5, step="SurgeUp"), move("m", 6, at=80, phase="Failed"), workload(4, 10, at=100)),
        "",
    ),
    "one more, its move has long ended": (
        (move("m", 5, step="SurgeUp"), move("m", 6, at=30, phase="Failed"), workload(4, 10, at=100)),
        "no PodMigration had announced",
    ),
    "one more, not announced": ((workload(4, 10, at=1),), "no PodMigration had announced"),
    "one more, announced later": ((workload(4, 10, at=1), move("m", 11, step="SurgeUp")), "no PodMigration"),
    "two more": ((move("m", 5, step="SurgeUp"), workload(5, 10, at=1)), "has 5 replicas"),
    "one less": ((workload(2, 10, at=1),), "has 2 replicas"),
    "one more of a StatefulSet": (
        (move("m", 5, step="SurgeUp"), workload(4, 10, at=1, resource="statefulsets")),
        "has 4 replicas",
    ),
    "what the user wanted until just now": ((workload(7, 10, at=40),), ""),
    "what the user wanted long ago": ((workload(7, 10, at=200),), "has 7 replicas"),
}


@pytest.mark.parametrize(("events", "says"), REPLICAS.values(), ids=REPLICAS.keys())
def test_replicas(events: Sequence[Seen], says: str) -> None:
    moves = Moves()
    replicas = Replicas(moves, "chaos")
    replicas.want("web", 7, -10.0)
    replicas.want("web", 3, 0.0)
    found = [it for seen in events for it in (moves if seen.resource == "podmigrations" else replicas).see(seen)]
    found += replicas.look(LATER)
    assert [says in it for it in found] == [True] * bool(says), found


def standing(count: int, **more: object) -> list[Seen]:
    """So many moves at their eviction, with their pods."""
    moves = [move(f"m{i}", 20 + i, at=20.0, uid=f"u{i}", step="Evict", **more) for i in range(count)]
    return [*(pod(f"u{i}", 5, name=f"web-{i}", at=5.0) for i in range(count)), *moves]


BUDGETS: dict[str, tuple[Sequence[Seen], str]] = {
    "one of one": ((budget(1, 3), *standing(1)), ""),
    "two of one": ((budget(1, 3), *standing(2)), "room for 1, and 2 moves stand at it"),
    "two of two": ((budget(2, 3), *standing(2)), ""),
    "two of two that became one": ((budget(2, 3), *standing(2), budget(1, 40, at=40.0)), ""),
    "asked for by hand": ((budget(0, 3), *standing(2, strategy="")), ""),
    "off a node that goes": ((budget(0, 3), *standing(2, strategy="SpotInterruption")), ""),
    "before there was a budget": ((*standing(2), budget(0, 40, at=40.0)), ""),
    "a budget of ours": ((budget(0, 3, name="web-rescheduler-pdb"), *standing(2)), ""),
    "one is on its way": ((budget(1, 3), *standing(2), pod("u0", 30, terminating=True)), ""),
}


@pytest.mark.parametrize(("events", "says"), BUDGETS.values(), ids=BUDGETS.keys())
def test_budgets(events: Sequence[Seen], says: str) -> None:
    moves = Moves()
    evictions = Evictions(moves)
    budgets = Budgets(moves, evictions)
    who: dict[str, Moves | Evictions | Budgets] = {"podmigrations": moves, "pods": evictions}
    for seen in events:
        assert list(who.get(seen.resource, budgets).see(seen)) == []
    assert list(budgets.look(LATER)) == [], "it has to last"
    found = list(budgets.look(LATER + 2))
    assert [says in it for it in found] == [True] * bool(says), found


def lease(at: float, who: str) -> Request:
    return request(at, who, "update", "leases")


LEADERS: dict[str, tuple[Sequence[Request], str]] = {
    "the holder": ((lease(1, "a"), request(2, "a", "patch", "pods")), ""),
    "the other one": ((lease(1, "a"), lease(5, "b"), request(6, "a", "patch", "pods")), "a sent patch pods"),
    "without effect": ((lease(1, "a"), lease(5, "b"), request(6, "a", "patch", "pods", code=409)), ""),
    "received before": ((lease(1, "a"), lease(5, "b"), request(4, "a", "patch", "pods")), ""),
    "half sent when it went on": ((lease(1, "a"), lease(5, "b"), request(10.5, "a", "patch", "pods")), ""),
    "long after it went on": ((lease(1, "a"), lease(5, "b"), request(14, "a", "patch", "pods")), "a sent patch"),
    "back again": ((lease(1, "a"), lease(5, "b"), lease(6, "a"), request(7, "a", "patch", "pods")), ""),
    "an Event": ((lease(1, "a"), lease(5, "b"), request(6, "a", "create", "events", code=201)), ""),
    "a pod deleted": ((lease(1, "a"), request(2, "a", "delete", "pods")), "deleted pods"),
    "a user's budget deleted": ((lease(1, "a"), request(2, "a", "delete", "poddisruptionbudgets")), "deleted pod"),
    "a budget of ours deleted": (
        (lease(1, "a"), request(2, "a", "delete", "poddisruptionbudgets", name="web-rescheduler-pdb")),
        "",
    ),
    "a delete that was refused": ((lease(1, "a"), request(2, "a", "delete", "pods", code=403)), ""),
}


@pytest.mark.parametrize(("requests", "says"), LEADERS.values(), ids=LEADERS.keys())
def test_leaders(requests: Sequence[Request], says: str) -> None:
    leaders = Leaders(lambda credential: credential, {"a": 10.0})
    found = [it for request in requests for it in leaders.see(request)]
    assert [says in it for it in found] == [True] * bool(says), found


def page(opened: int, rejected: int = 0) -> str:
    label = 'name="pods.webhook.spotshift.dev"'
    return (
        f'apiserver_admission_webhook_fail_open_count{{{label},type="admit"}} {opened}\n'
        f'apiserver_admission_webhook_rejection_count{{{label},operation="CREATE"}} {rejected}\n'
        'apiserver_admission_webhook_fail_open_count{name="somebody.else",type="admit"} 99\n'
    )


ADMISSIONS: dict[str, tuple[Sequence[tuple[float, str]], str]] = {
    "all answered": (((1, page(0)), (4, page(0))), ""),
    "one was not": (((1, page(0)), (4, page(1))), "1 pods were created without an answer"),
    "nobody was there": (((10, page(0)), (13, page(2))), ""),
    "counted from nothing": (((1, page(5)), (4, page(5))), "5 pods were created"),
    "the apiserver was restarted": (((10, page(2)), (13, page(0)), (30, page(0))), ""),
    "rejected": (((1, page(0)), (13, page(0, 1))), "kept 1 pods from being created"),
}


@pytest.mark.parametrize(("pages", "says"), ADMISSIONS.values(), ids=ADMISSIONS.keys())
def test_admission(pages: Sequence[tuple[float, str]], says: str) -> None:
    admission = Admission([(8.0, 12.0)])
    found = [it for at, text in pages for it in admission.see(text, at)]
    assert [says in it for it in found] == [True] * bool(says), found
