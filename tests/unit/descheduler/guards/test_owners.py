"""Who a pod belongs to, and what would come in its place."""

from typing import Any

import pytest

from policy import keys
from policy.settings import Placement, Settings
from policy.values import Rescheduling
from tests.unit.descheduler import build
from tests.unit.descheduler.guarding import OURS, Given, deployment, namespace, pod, replica_set

ON = {OURS.rescheduling: "enabled"}
OPT_IN = Settings(placement=Placement(rescheduling=Rescheduling.DISABLED))


def alone(**more: Any) -> Any:
    return pod("job-less", **{"of": None, "labels": ON, **more})


def claim(*modes: str) -> Any:
    return build.thing("PersistentVolumeClaim", "data", "shop", spec={"accessModes": list(modes)})


VOLUME = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}
HOST_PORT = {"containers": [{"name": "main", "ports": [{"containerPort": 80, "hostPort": 8080}]}]}


def nobody(made: Any, says: str, *also: Any, **more: Any) -> Given:
    code = "NO_CONTROLLER"
    return Given(pod=made, also=also, voluntary=code, maintenance=code, interruption=code, says=says, **more)


OWNERS = {
    "a Deployment": Given(pod=pod()),
    "a kind that nobody knows": Given(pod=pod(of=build.owner("CloneSet", "web", "shop"))),
    "a ReplicaSet that was not seen yet": Given(pod=pod(of=build.owner("ReplicaSet", "new", "shop"))),
    "a Deployment without a ReplicaSet between": nobody(
        pod(of=build.owner("Deployment", "web", "shop"), labels={keys.under().rescheduling: "enabled"}),
        "Deployment web makes ReplicaSets",
    ),
    "a CronJob without a Job between": nobody(
        pod(of={**build.owner("CronJob", "night", "shop"), "apiVersion": "batch/v1"}), "CronJob night makes Jobs"
    ),
    "a Deployment of somebody else": Given(
        pod=pod(of={**build.owner("Deployment", "web", "shop"), "apiVersion": "example.com/v1"})
    ),
    "a DaemonSet": Given(
        pod=pod(of=build.owner("DaemonSet", "agent", "shop")),
        voluntary="DAEMONSET",
        maintenance="DAEMONSET",
        interruption="DAEMONSET",
        says="DaemonSet agent would put it back on a",
    ),
    "a DaemonSet whose pods the autoscaler may stop": Given(
        pod=pod(of=build.owner("DaemonSet", "agent", "shop"), annotations={keys.ENABLE_DS_EVICTION: "true"}),
        voluntary="DAEMONSET",
        maintenance="DAEMONSET",
        interruption="DAEMONSET",
    ),
    "the kubelet, by annotation": Given(
        pod=pod(annotations={keys.MIRROR_POD: "abc"}),
        voluntary="MIRROR",
        maintenance="MIRROR",
        interruption="MIRROR",
        says=keys.MIRROR_POD,
    ),
    "the kubelet, by owner": Given(
        pod=pod(of=build.owner("Node", "a", "")),
        voluntary="MIRROR",
        maintenance="MIRROR",
        interruption="MIRROR",
        says="Node a",
    ),
    "nobody": nobody(alone(labels={}), f"{OURS.rescheduling}: enabled on the pod"),
    "an owner that does not control it": nobody(
        alone(labels={}, metadata={"ownerReferences": [{**build.owner("Tenant", "t"), "controller": False}]}),
        "nothing",
    ),
    "nobody, opted in": Given(pod=alone()),
    "nobody, opted in against the settings": Given(pod=alone(), settings=OPT_IN),
    "nobody, opted in by the namespace": nobody(alone(labels={}), "on the pod", namespace(labels=ON)),
    "nobody, host port": nobody(alone(spec=HOST_PORT), "host port 8080"),
    "nobody, host name": nobody(alone(spec={"hostname": "mail"}), "mail in DNS"),
    "nobody, subdomain": nobody(alone(spec={"subdomain": "mx"}), "mx in DNS"),
    "nobody, a claim for one": nobody(alone(spec=VOLUME), "claim data", claim("ReadWriteOnce")),
    "nobody, a claim that was not seen": nobody(alone(spec=VOLUME), "claim data"),
    "nobody, a claim for many": Given(pod=alone(spec=VOLUME), also=(claim("ReadWriteMany"),)),
}


@pytest.mark.parametrize("given", OWNERS.values(), ids=OWNERS.keys())
def test_who_would_replace_it(given: Given) -> None:
    given.check()


def rollout(updated: int, *, total: int = 2, paused: bool = False, observed: int = 1, revision: str = "2") -> Any:
    return deployment(
        metadata={"generation": 1, "annotations": {keys.DEPLOYMENT_REVISION: revision}},
        spec={"paused": paused},
        status={"observedGeneration": observed, "replicas": total, "updatedReplicas": updated},
    )


def revised(revision: str) -> Any:
    return replica_set(annotations={keys.DEPLOYMENT_REVISION: revision})


ROLLOUTS = {
    "done": (rollout(2), revised("2"), None),
    "not taken up": (rollout(2, observed=0), revised("2"), "since its change 1"),
    "half way": (rollout(1, total=3), revised("2"), "is rolling out: 1 of 2"),
    "old pods still there": (rollout(2, total=3), revised("1"), "is rolling out: 2 of 2"),
    "paused before anything happened": (rollout(2, paused=True), revised("2"), None),
    "paused with a change nobody made pods of": (rollout(0, paused=True), revised("2"), "paused"),
    "paused half way, old pod": (rollout(1, paused=True), revised("1"), "paused"),
    "paused half way, new pod": (rollout(1, paused=True), revised("2"), None),
    "paused half way, revisions unknown": (rollout(1, paused=True), replica_set(), "paused"),
    "scaled to nothing": (
        deployment(spec={"replicas": 0}, status={"replicas": 0, "updatedReplicas": 0}),
        revised("2"),
        None,
    ),
}


@pytest.mark.parametrize(("above", "owner", "says"), ROLLOUTS.values(), ids=ROLLOUTS.keys())
def test_rollouts_of_deployments(above: Any, owner: Any, says: str | None) -> None:
    held = "PENDING_REVISION" if says else ""
    Given(pod=pod(), also=(above, owner), voluntary=held, says=says or "").check()


def statefulset(*, replicas: int = 1, old: str = "r1", new: str = "r1", **more: Any) -> Any:
    base = {
        "metadata": {"generation": 1},
        "spec": {
            "replicas": replicas,
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
        },
        "status": {"observedGeneration": 1, "currentRevision": old, "updateRevision": new},
    }
    return build.thing("StatefulSet", "db", "shop", **build.merged(base, more))


def member(number: int = 0, revision: str = "r1", **more: Any) -> Any:
    labels = {keys.CONTROLLER_REVISION_HASH: revision}
    return pod(f"db-{number}", **{"of": build.owner("StatefulSet", "db", "shop"), "labels": labels, **more})


def partition(number: int) -> dict[str, Any]:
    return {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": number}}}


UPDATES = {
    "done": (statefulset(), member(), None),
    "not taken up": (statefulset(status={"observedGeneration": 0}), member(), "since its change 1"),
    "under way, old pod": (statefulset(new="r2"), member(), "between revision r1 and r2"),
    "under way, new pod": (statefulset(new="r2"), member(revision="r2"), "between revision r1 and r2"),
    "on delete": (statefulset(new="r2", spec={"updateStrategy": {"type": "OnDelete"}}), member(), "between"),
    "below the partition": (statefulset(new="r2", spec=partition(3)), member(2), None),
    "below the partition, but new": (statefulset(new="r2", spec=partition(3)), member(2, "r2"), "between"),
    "above the partition, new": (statefulset(new="r2", spec=partition(3)), member(3, "r2"), None),
    "above the partition, still old": (statefulset(new="r2", spec=partition(3)), member(3), "between"),
    "numbered by label": (
        statefulset(new="r2", spec=partition(3)),
        member(0, labels={keys.CONTROLLER_REVISION_HASH: "r1", keys.POD_INDEX: "5"}),
        "between",
    ),
}


@pytest.mark.parametrize(("owner", "made", "says"), UPDATES.values(), ids=UPDATES.keys())
def test_updates_of_statefulsets(owner: Any, made: Any, says: str | None) -> None:
    held = "PENDING_REVISION" if says else ""
    Given(pod=made, also=(owner,), voluntary=held, says=says or "").check()


def migration(name: str, *, phase: str = "InProgress", **status: Any) -> Any:
    return build.thing(
        "PodMigration", f"m-{name}", "shop", spec={"podRef": {"name": name}}, status={"phase": phase, **status}
    )


RESOLVED = {"workload": {"kind": "StatefulSet", "name": "db", "uid": "uid-shop-db"}}
MEMBERS = {
    "all Ready": ((member(1),), "", "", ""),
    "another not Ready": ((member(1, ready=False),), "STATEFULSET_BUSY", "", "db-1 of StatefulSet db is not Ready"),
    "another missing": ((), "STATEFULSET_BUSY", "", "has 1 of 2 pods"),
    "another moving": ((member(1), migration("db-1")), "STATEFULSET_BUSY", "STATEFULSET_BUSY", "db-1 of StatefulSet"),
    "another moving, already gone": (
        (migration("db-1", resolved=RESOLVED),),
        "STATEFULSET_BUSY STATEFULSET_BUSY",
        "STATEFULSET_BUSY",
        "db-1 of StatefulSet db is moving",
    ),
    "another has moved": ((member(1), migration("db-1", phase="Completed")), "", "", ""),
    "a pod of another set moving": ((member(1), pod("web-9"), migration("web-9")), "", "", ""),
}


@pytest.mark.parametrize(("also", "voluntary", "maintenance", "says"), MEMBERS.values(), ids=MEMBERS.keys())
def test_members_of_a_statefulset_go_one_at_a_time(
    also: tuple[Any, ...], voluntary: str, maintenance: str, says: str
) -> None:
    everything = (statefulset(replicas=2), *also)
    Given(pod=member(), also=everything, voluntary=voluntary, maintenance=maintenance, says=says).check()


def test_a_member_that_is_not_ready_itself_holds_only_itself() -> None:
    given = Given(pod=member(ready=False), also=(statefulset(replicas=2), member(1)), voluntary="NOT_READY")
    given.check()
