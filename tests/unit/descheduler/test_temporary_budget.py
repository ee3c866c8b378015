"""When a workload gets a budget of ours, and when that goes again."""

from collections.abc import Sequence
from typing import Any

import pytest

from descheduler.migration import temporary_budget
from descheduler.requests import Request, Verb
from descheduler.state import ClusterState
from policy.settings import Settings
from policy.settings_moves import Migrations, TemporaryPdb
from tests.unit.descheduler import build

NAME = "web-rescheduler-pdb"
OFF = Settings(migrations=Migrations(temporary_pdb=TemporaryPdb(enabled=False)))


def workload(kind: str = "Deployment", *, replicas: int = 2, app: str = "web", **more: Any) -> list[Any]:
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": app}}}
    made = [build.thing(kind, "web", **build.merged({"spec": spec}, more))]
    direct = "web"
    if kind == "Deployment":
        direct = "web-rs"
        made.append(
            build.thing("ReplicaSet", direct, metadata={"ownerReferences": [build.owner("Deployment", "web")]})
        )
    owner = build.owner("ReplicaSet" if kind == "Deployment" else kind, direct)
    return [*made, *(build.pod(f"web-{n}", on="a", of=owner, labels={"app": app}) for n in range(replicas))]


def migration(name: str = "m1", *, kind: str = "Deployment", pod: str = "web-0", **status: Any) -> Any:
    resolved = {
        "workload": {"kind": kind, "name": "web", "uid": "uid-default-web"},
        "mode": status.pop("mode", "Evict"),
    }
    return build.thing(
        "PodMigration",
        name,
        spec={"podRef": {"name": pod}},
        status={"phase": "InProgress", "step": "Evict", "resolved": resolved, **status},
    )


def ours(*owners: str, **more: Any) -> Any:
    base = {
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 1},
        "metadata": {
            "labels": {"app.kubernetes.io/managed-by": "spotshift"},
            "ownerReferences": [{"kind": "PodMigration", "name": it, "uid": f"uid-default-{it}"} for it in owners],
        },
    }
    return build.budget(NAME, labels={"app": "web"}, **build.merged({"allowed": 1, **base}, more))


def asked(objects: Sequence[Any], settings: Settings | None = None) -> list[Request]:
    return list(temporary_budget.requests(build.state(*objects), settings or Settings()))


FOREIGN = build.budget("own", allowed=1, labels={"app": "web"})
WANTED: dict[str, tuple[list[Any], bool]] = {
    "a Deployment": ([*workload(), migration()], True),
    "a StatefulSet": ([*workload("StatefulSet"), migration(kind="StatefulSet")], True),
    "a ReplicaSet of its own": ([*workload("ReplicaSet"), migration(kind="ReplicaSet")], True),
    "a single replica": ([*workload(replicas=1), migration()], False),
    "nothing is moved": (workload(), False),
    "the move is over": ([*workload(), migration(phase="Completed")], False),
    "the move has not been taken up": ([*workload(), migration(phase="Pending")], False),
    "a move that makes before it breaks": ([*workload(), migration(mode="Surge")], False),
    "a budget of the user": ([*workload(), migration(), FOREIGN], False),
    "a budget of the user for others": (
        [*workload(), migration(), build.budget("db", allowed=1, labels={"app": "db"})],
        True,
    ),
    "a budget of the user for all": ([*workload(), migration(), build.budget("all", allowed=1, labels={})], False),
    "a budget of the user with our name": (
        [*workload(), migration(), build.budget(NAME, allowed=1, labels={"app": "db"})],
        False,
    ),
    "its selector reaches pods of others": (
        [*workload(), migration(), build.pod("stray", on="a", labels={"app": "web"})],
        False,
    ),
    "pods of others in another namespace": (
        [*workload(), migration(), build.pod("far", on="a", namespace="far", labels={"app": "web"})],
        True,
    ),
}


@pytest.mark.parametrize(("objects", "wanted"), WANTED.values(), ids=WANTED.keys())
def test_who_gets_one(objects: list[Any], wanted: bool) -> None:
    assert [(it.verb, it.name) for it in asked(objects)] == ([(Verb.CREATE, NAME)] if wanted else [])


def test_it_is_what_the_workload_selects_and_owned_by_the_moves() -> None:
    (request,) = asked([*workload(replicas=3), migration("m2", pod="web-1"), migration("m1")])
    body = request.body
    assert body["spec"]["selector"] == {"matchLabels": {"app": "web"}}
    assert body["spec"]["maxUnavailable"] == 1
    assert [it["name"] for it in body["metadata"]["ownerReferences"]] == ["m1", "m2"]
    assert not any(it.get("controller") for it in body["metadata"]["ownerReferences"])


def test_switched_off_there_is_none() -> None:
    assert asked([*workload(), migration()], OFF) == []
    assert [it.verb for it in asked([*workload(), migration(), ours("m1")], OFF)] == [Verb.DELETE]


KEPT: dict[str, tuple[list[Any], list[Verb]]] = {
    "as it should be": ([*workload(), migration(), ours("m1")], []),
    "one more move": ([*workload(), migration(), migration("m2", pod="web-1"), ours("m1")], [Verb.PATCH]),
    "one move is over": ([*workload(), migration(), migration("m2", phase="Failed"), ours("m1", "m2")], [Verb.PATCH]),
    "the last move is over": ([*workload(), migration(phase="Completed"), ours("m1")], [Verb.DELETE]),
    "the move was cancelled": ([*workload(), migration(phase="Cancelled"), ours("m1")], [Verb.DELETE]),
    "the move is gone": ([*workload(), ours("m1")], [Verb.DELETE]),
    "a budget of the user has come": ([*workload(), migration(), ours("m1"), FOREIGN], [Verb.DELETE]),
    "scaled to one": ([*workload(replicas=1), migration(), ours("m1")], [Verb.DELETE]),
    "the workload is gone": ([migration(), ours("m1")], [Verb.DELETE]),
    "its selector is another": (
        [*workload(app="new"), migration(), ours("m1")],
        [Verb.PATCH],
    ),
    "a user's that looks like ours": ([*workload(), build.budget(NAME, allowed=1, labels={"app": "web"})], []),
}


@pytest.mark.parametrize(("objects", "expected"), KEPT.values(), ids=KEPT.keys())
def test_how_it_is_kept(objects: list[Any], expected: list[Verb]) -> None:
    assert [it.verb for it in asked(objects)] == expected


@pytest.mark.parametrize(
    ("there", "labels", "expressions"),
    [
        pytest.param(
            {"matchLabels": {"app": "web", "role": "db"}},
            {"app": "web", "role": None},
            None,
            id="of another workload",
        ),
        pytest.param(
            {"matchLabels": {}, "matchExpressions": [{"key": "x", "operator": "Exists"}]},
            {"app": "web"},
            None,
            id="expressions",
        ),
    ],
)
def test_of_another_selector_nothing_stays(
    there: dict[str, Any], labels: dict[str, Any], expressions: list[Any] | None
) -> None:
    """A merge patch keeps what it does not name, and two selectors in one select nobody."""
    spec = {"selector": there}
    budget = build.budget(NAME, labels={}, **build.merged(as_ours(), {"spec": spec}))
    (sent,) = asked([*workload(), migration(), budget])
    assert sent.body["spec"]["selector"] == {"matchLabels": labels, "matchExpressions": expressions}
    assert sent.body["spec"]["minAvailable"] is None


def as_ours() -> dict[str, Any]:
    owner = {"kind": "PodMigration", "name": "m1", "uid": "uid-default-m1"}
    meta = {"labels": {"app.kubernetes.io/managed-by": "spotshift"}, "ownerReferences": [owner]}
    return {"allowed": 1, "spec": {"maxUnavailable": 1}, "metadata": meta}


def held(state: ClusterState, pod: str = "web-0") -> str:
    (found,) = state.open_migrations()
    return temporary_budget.hold(found, state.pods["default", pod], state, Settings())


HOLDS: dict[str, tuple[list[Any], str]] = {
    "not there": ([], "is being made"),
    "in force": ([ours("m1")], ""),
    "not counted": ([ours("m1", status={"observedGeneration": 0})], "not in force"),
    "not ours yet": ([ours("m0")], "not in force"),
    "used up": ([ours("m1", allowed=0)], "allows no disruption"),
    "beside one of the user": ([ours("m1"), FOREIGN], "is being removed"),
    "only one of the user": ([FOREIGN], ""),
}


@pytest.mark.parametrize(("budgets", "expected"), HOLDS.values(), ids=HOLDS.keys())
def test_the_eviction_waits_for_it(budgets: list[Any], expected: str) -> None:
    told = held(build.state(*workload(), migration(), *budgets))
    assert expected in told
    assert bool(told) == bool(expected)


def test_a_pod_that_is_not_ready_costs_the_budget_nothing() -> None:
    objects = [it for it in workload() if getattr(it.metadata, "name", "") != "web-0"]
    owner = build.owner("ReplicaSet", "web-rs")
    broken = build.pod("web-0", on="a", of=owner, labels={"app": "web"}, ready=False)
    assert held(build.state(*objects, broken, migration(), ours("m1", allowed=0))) == ""


def twins() -> list[Any]:
    """A Deployment and a StatefulSet of one name, each with a move."""
    claimed = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "uid-db", "controller": True}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "db"}}}
    other = build.thing("StatefulSet", "web", metadata={"uid": "uid-db"}, spec=spec)
    members = [build.pod(f"db-{n}", on="a", of=claimed, labels={"app": "db"}) for n in range(2)]
    resolved = {"workload": {key: claimed[key] for key in ("kind", "name", "uid")}, "mode": "Evict"}
    return [*workload(), migration(), other, *members, migration("m2", pod="db-0", resolved=resolved)]


def test_two_workloads_of_one_name_get_one_each() -> None:
    found = {it.name: it.body["spec"]["selector"]["matchLabels"] for it in asked(twins())}
    assert found == {NAME: {"app": "web"}, "web.statefulset-rescheduler-pdb": {"app": "db"}}


def test_and_each_waits_for_its_own() -> None:
    spec = {"selector": {"matchLabels": {"app": "db"}}}
    second = build.merged({"spec": spec}, {"metadata": {"name": "web.statefulset-rescheduler-pdb"}})
    state = build.state(*twins(), ours("m1"), ours("m2", **second))
    moves = {it.metadata.name: it for it in state.open_migrations()}
    for name, pod in (("m1", "web-0"), ("m2", "db-0")):
        assert temporary_budget.hold(moves[name], state.pods["default", pod], state, Settings()) == ""
    assert list(temporary_budget.requests(state, Settings())) == []


def test_one_that_moves_alone_has_the_plain_name() -> None:
    alone = [it for it in twins() if it.metadata.name != "m1"]
    assert [it.name for it in asked(alone)] == [NAME]


def test_a_name_that_would_be_too_long_is_cut() -> None:
    long = ["x" * 253, "x" * 252 + "y"]
    names = {temporary_budget.name_for(it) for it in long}
    assert len(names) == 2
    assert {len(it) for it in names} == {253}
    assert all(it.endswith("-rescheduler-pdb") for it in names)
