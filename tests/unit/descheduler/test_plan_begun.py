"""Moves that are being written down count in the next plan, whatever has happened to the cluster meanwhile."""

from datetime import UTC, datetime
from typing import Any

import pytest

from cluster.objects import Node, Pod
from descheduler import plan
from descheduler.plan import Plan
from policy.settings import Settings
from tests.unit.descheduler import build

NOW = datetime(2026, 6, 1, tzinfo=UTC)
LEAVING = {"scheduler.alpha.kubernetes.io/maintenance": "true"}
LOST = [{"key": "aws-node-termination-handler/spot-itn", "effect": "NoSchedule", "timeAdded": "2026-06-01T00:00:00Z"}]
WEB = build.owner("ReplicaSet", "web")
SOURCE, OTHER = build.node("source", labels=LEAVING), build.node("other", labels=LEAVING)
TARGET, SPARE = build.node("target", cpu="8"), build.node("spare", cpu="2")
FIRST = build.pod("web-1", on="source", of=WEB, cpu="1")
SECOND = build.pod("web-2", on="other", of=WEB, cpu="1")
OWNER = build.thing("ReplicaSet", "web", spec={"replicas": 2})
AGAIN = build.pod("web-1", on="spare", of=WEB, cpu="1", metadata={"uid": "another"})
SETTINGS = Settings()


def made(*objects: Any, begun: Plan | None = None) -> Plan:
    return plan.make(build.state(*objects), SETTINGS, NOW, begun=begun.moves if begun is not None else ())


def of(found: Plan) -> dict[str, str | None]:
    return {it.pod.metadata.name: it.target for it in found.moves}


BEGUN = made(SOURCE, TARGET, SPARE, OWNER, FIRST)


def test_a_move_is_begun() -> None:
    assert of(BEGUN) == {"web-1": "target"}


def test_one_that_was_written_down_meanwhile_counts_once() -> None:
    room = build.node("room", cpu="1500m")
    written = build.thing(
        "PodMigration",
        "m",
        spec={"podRef": {"name": "web-1", "uid": FIRST.metadata.uid}, "targetNode": "room"},
        status={"phase": "Pending"},
    )
    begun = made(SOURCE, room, OWNER, FIRST)
    assert of(begun) == {"web-1": "room"}
    again = made(SOURCE, room, OWNER, FIRST, written, begun=begun)
    assert {it.name: it.after for it in again.nodes} == pytest.approx({"room": 200 / 3, "source": 0.0})


def test_one_counts_though_the_last_move_of_another_pod_with_its_name_is_open() -> None:
    """Pods of a StatefulSet have the names of those before them."""
    room, db = build.node("room", cpu="1500m"), build.owner("StatefulSet", "db")
    pod = build.pod("db-0", on="source", of=db, cpu="1", metadata={"uid": "second"})
    older = build.thing(
        "PodMigration",
        "m",
        spec={"podRef": {"name": "db-0", "uid": "first"}, "targetNode": "source"},
        status={
            "phase": "InProgress",
            "step": "AwaitReplacement",
            "resolved": {
                "podUid": "first",
                "sourceNode": "gone",
                "targetNode": "source",
                "owner": db,
                "workload": db,
            },
            "replacement": {"name": "db-0", "uid": "second", "node": "source"},
        },
    )
    full = build.node("full", cpu="1")
    members = [
        pod,
        build.pod("db-1", on="full", of=db, cpu="1"),
        build.thing("StatefulSet", "db", spec={"replicas": 2}),
    ]
    objects = [build.node("source", spot=True, taints=LOST), room, full, *members, older]
    begun = made(*objects)
    assert of(begun) == {"db-0": "room"}
    again = made(*objects, begun=begun)
    assert {it.name: it.after for it in again.nodes}["room"] == pytest.approx(200 / 3)


@pytest.mark.parametrize(
    "left",
    [
        pytest.param([SOURCE, TARGET, SPARE, FIRST], id="nothing"),
        pytest.param([SOURCE, TARGET, SPARE], id="its pod is gone"),
        pytest.param([SOURCE, TARGET, SPARE, AGAIN], id="another pod has its name"),
        pytest.param([TARGET, SPARE], id="its pod and the node under it are gone"),
        pytest.param([SOURCE, SPARE, FIRST], id="its target is gone"),
        pytest.param([SPARE], id="everything is gone"),
    ],
)
def test_whatever_happens_to_it_others_are_planned(left: list[Node | Pod]) -> None:
    assert [*of(made(OWNER, OTHER, SECOND, *left, begun=BEGUN))] == ["web-2"]
