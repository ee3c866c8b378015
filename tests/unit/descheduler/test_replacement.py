"""Which new pod stands in for which moved one, and who goes where after two moves traded targets."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from cluster.objects import PodMigration
from descheduler.migration import goals, machine, replacement, turns, world
from descheduler.migration.actions import Write
from descheduler.proposal import Urgency
from descheduler.state import ClusterState
from policy import keys
from policy.settings import Settings
from tests.unit.descheduler import build

START = datetime(2026, 6, 1, 12, tzinfo=UTC)
AWAIT, MARK = "AwaitReplacement", "Mark"
ENDED = {"status": {"phase": "Completed"}}
OTHER = {"owner": build.owner("ReplicaSet", "other")}


@dataclass(frozen=True)
class Move:
    """`m1` and so on: where it should go, how far it is, when its eviction was announced."""

    name: str
    target: str
    step: str = AWAIT
    at: int = 0
    kind: str = "ReplicaSet"
    status: dict[str, Any] = field(default_factory=dict)

    def made(self) -> Any:
        resolved = {"owner": build.owner(self.kind, "web"), "targetNode": self.target, "podUid": f"gone-{self.name}"}
        announced = (START + timedelta(seconds=self.at)).isoformat()
        status = {"phase": "InProgress", "step": self.step, "resolved": resolved, "intent": {"at": announced}}
        ref = "web-0" if self.kind == "StatefulSet" else f"gone-{self.name}"
        return build.thing(
            "PodMigration", self.name, spec={"podRef": {"name": ref}}, status=build.merged(status, self.status)
        )


def landed(name: str, on: str, kind: str = "ReplicaSet", created: int = 2) -> Any:
    stamp = {"creationTimestamp": (START + timedelta(seconds=created)).strftime("%Y-%m-%dT%H:%M:%SZ")}
    return build.pod(name, on=on, of=build.owner(kind, "web"), metadata=stamp)


def migrations(state: ClusterState) -> dict[str, PodMigration]:
    return {it.metadata.name: it for it in state.migrations.values()}


def found(state: ClusterState) -> dict[str, tuple[str, str]]:
    """Replacement and partner of each move that has one."""
    matches = {name: replacement.find(it, state) for name, it in migrations(state).items()}
    return {name: (match.pod.metadata.name, match.partner) for name, match in matches.items() if match is not None}


FOUND: dict[str, tuple[list[Move], list[Any], dict[str, tuple[str, str]]]] = {
    "each the one on its target, the other by age": (
        [Move("m1", "b"), Move("m2", "c", at=1)],
        [landed("n1", "c"), landed("n2", "d")],
        {"m1": ("n2", ""), "m2": ("n1", "")},
    ),
    "on the target of a move that is still to come": (
        [Move("m1", "b"), Move("m2", "c", MARK)],
        [landed("n1", "c")],
        {"m1": ("n1", "m2")},
    ),
    "its own target comes before a trade": (
        [Move("m1", "b"), Move("m2", "c", MARK)],
        [landed("n1", "c"), landed("n2", "b")],
        {"m1": ("n2", "")},
    ),
    "two trade with one, along a chain": (
        [Move("m1", "b"), Move("m2", "c", MARK), Move("m3", "d", at=1)],
        [landed("n1", "c"), landed("n2", "b", created=3)],
        {"m1": ("n2", ""), "m3": ("n1", "m2")},
    ),
    "nobody's target": ([Move("m1", "b"), Move("m2", "c", MARK)], [landed("n1", "x")], {"m1": ("n1", "")}),
    "without a target there is nothing to trade": (
        [Move("m1", ""), Move("m2", "c", MARK)],
        [landed("n1", "c")],
        {"m1": ("n1", "")},
    ),
    "pods of a StatefulSet are not alike": (
        [Move("m1", "b", kind="StatefulSet"), Move("m2", "c", MARK, kind="StatefulSet")],
        [landed("web-0", "c", "StatefulSet")],
        {"m1": ("web-0", "")},
    ),
    "not on a node yet": ([Move("m1", "b"), Move("m2", "c", MARK)], [landed("n1", "")], {}),
}


@pytest.mark.parametrize(("moves", "pods", "expected"), FOUND.values(), ids=FOUND.keys())
def test_found(moves: list[Move], pods: list[Any], expected: dict[str, tuple[str, str]]) -> None:
    assert found(build.state(*(it.made() for it in moves), *pods)) == expected


def act(state: ClusterState, name: str) -> dict[str, Any]:
    """Let the machine take one step of a move, and write down what it says."""
    move = migrations(state)[name]
    by = world.Viewpoint(keys.under(), Settings(), "one", START + timedelta(seconds=5))
    action = machine.step(adopted(move), world.look(move, state, by, urgency=Urgency.VOLUNTARY), by.now)
    assert isinstance(action, Write)
    whole = build.merged({"kind": "PodMigration", **plain(move)}, {"status": action.status})
    state.apply(move, build.decode(whole))
    return dict(action.status)


def plain(move: PodMigration) -> dict[str, Any]:
    made: dict[str, Any] = msgspec.to_builtins(move)
    return made


def adopted(move: PodMigration) -> PodMigration:
    body = build.merged({"kind": "PodMigration", **plain(move)}, {"metadata": {"finalizers": [machine.FINALIZER]}})
    made: PodMigration = build.decode(body)
    return made


def test_a_trade_is_as_planned_for_both_and_outlives_the_first() -> None:
    state = build.state(
        Move("m1", "b").made(),
        Move("m2", "c", MARK).made(),
        build.thing("ReplicaSet", "web", spec={"replicas": 2}),
        landed("n1", "c"),
    )
    assert replacement.goal(migrations(state)["m2"], state) == "b", "before anything is written down"
    assert act(state, "m1")["exchange"] == {"migration": "m2", "targetNode": "b"}
    assert act(state, "m1")["onTarget"] is True
    first = migrations(state)["m1"]
    state.apply(first, build.decode({"kind": "PodMigration", **build.merged(plain(first), ENDED)}))
    assert [goals.of(migrations(state)[name], state) for name in ("m1", "m2")] == ["c", "b"]
    state.apply(migrations(state)["m2"], Move("m2", "c", at=3).made())
    state.apply(None, landed("n2", "b", created=4))
    assert act(state, "m2") == {"replacement": {"name": "n2", "uid": "uid-default-n2", "node": "b"}}
    assert act(state, "m2")["onTarget"] is True


SAID = {
    "its own target": ("b", True, "as planned"),
    "that of a sibling": ("c", True, "as planned for a sibling, which gets b"),
    "another": ("d", False, "the scheduler's own choice"),
}


@pytest.mark.parametrize(("node", "on_target", "said"), SAID.values(), ids=SAID.keys())
def test_a_move_says_who_chose_where_it_ended(node: str, on_target: bool, said: str) -> None:
    status = {"step": "Settle", "onTarget": on_target, "replacement": {"name": "n1", "uid": "u", "node": node}}
    move = build.merged({"kind": "PodMigration", **plain(Move("m1", "b").made())}, {"status": status})
    assert act(build.state(build.decode(move)), "m1")["message"] == f"n1 is Ready on {node}, {said}"


def test_a_claim_that_is_given_up_takes_its_trade_back() -> None:
    """The replacement was deleted before it was Ready; the next one is on the planned target."""
    trade = {"replacement": {"name": "n1", "uid": "gone", "node": "c"}}
    first = Move("m1", "b", status={**trade, "exchange": {"migration": "m2", "targetNode": "b"}})
    state = build.state(first.made(), Move("m2", "c", MARK).made())
    assert goals.of(migrations(state)["m2"], state) == "b"
    state.apply(migrations(state)["m1"], Move("m1", "b", status={**trade, "exchange": None}).made())
    assert goals.of(migrations(state)["m2"], state) == "c"


STARTED = {"startedAt": "2026-06-01T12:00:00Z"}
TURNS: dict[str, tuple[Move, float, str]] = {
    "an eviction is under way": (Move("m2", "c", "Evict"), 1, "m2"),
    "evicted, its replacement has no node": (Move("m2", "c", AWAIT), 1, "m2"),
    "its replacement has a node": (Move("m2", "c", AWAIT, status={"replacement": {"node": "c"}}), 1, ""),
    "it has had its time": (Move("m2", "c", AWAIT), 10, ""),
    "both are about to, the older is first": (Move("m0", "c", MARK, status=STARTED), 1, "m0"),
    "both are about to, the younger waits": (Move("m2", "c", MARK, status=STARTED), 1, ""),
    "the older does not come to it": (Move("m0", "c", MARK, status=STARTED), 11, ""),
    "of another owner": (Move("m2", "c", "Evict", kind="StatefulSet", status={"resolved": OTHER}), 1, ""),
}


@pytest.mark.parametrize(("other", "after", "expected"), TURNS.values(), ids=TURNS.keys())
def test_turns(other: Move, after: float, expected: str) -> None:
    state = build.state(Move("m1", "b", MARK, status=STARTED).made(), other.made())
    now = START + timedelta(seconds=after)
    assert turns.ahead(migrations(state)["m1"], state, timedelta(seconds=1), now) == expected
