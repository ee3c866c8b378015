"""Where and how a pod runs: youth, readiness, windows, storage, selectors, moves under way."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from descheduler.proposal import Urgency
from descheduler.reasons import Code
from policy import keys
from policy.settings import Settings
from policy.settings_moves import Limits
from policy.windows import Day, Kind, Window
from tests.unit.descheduler import build
from tests.unit.descheduler.guarding import NOW, OURS, Given, deployment, namespace, pod
from tests.unit.descheduler.test_interruption import ITN, REBALANCE, text

ON = {OURS.rescheduling: "enabled"}
SHOP_EXCLUDED = Settings(excluded_namespaces=("shop",))


def aged(ago: timedelta | None, **more: Any) -> Any:
    start = None if ago is None else (NOW - ago).strftime("%Y-%m-%dT%H:%M:%SZ")
    return pod(status={"startTime": start}, **more)


def created(ago: timedelta) -> Any:
    return aged(None, metadata={"creationTimestamp": (NOW - ago).strftime("%Y-%m-%dT%H:%M:%SZ")})


def limits(**more: Any) -> Settings:
    return Settings(limits=Limits(**more))


LEAVING = {"deletionTimestamp": "2026-02-01T12:00:30Z"}
CIRCUMSTANCES = {
    "terminating": Given(
        pod=pod(metadata=LEAVING),
        voluntary="TERMINATING",
        maintenance="TERMINATING",
        interruption="TERMINATING",
        says="2026-02-01T12:00:30Z",
    ),
    "excluded namespace": Given(
        pod=pod(), settings=SHOP_EXCLUDED, voluntary="EXCLUDED_NAMESPACE", says="shop is among excludedNamespaces"
    ),
    "excluded namespace, pod opted in": Given(pod=pod(labels=ON), settings=SHOP_EXCLUDED),
    "excluded namespace, workload opted in": Given(
        pod=pod(), settings=SHOP_EXCLUDED, also=(deployment(metadata={"labels": ON}),)
    ),
    "excluded namespace, opted in itself": Given(pod=pod(), settings=SHOP_EXCLUDED, also=(namespace(labels=ON),)),
    "system priority": Given(
        pod=pod(spec={"priority": 2_000_000_000, "priorityClassName": "system-cluster-critical"}),
        voluntary="PRIORITY_TOO_HIGH",
        says="its priority is 2000000000 (system-cluster-critical), limits.priorityThreshold is 2000000000",
    ),
    "priority at the threshold of the settings": Given(
        pod=pod(spec={"priority": 10}), settings=limits(priority_threshold=10), voluntary="PRIORITY_TOO_HIGH"
    ),
    "priority below the threshold": Given(pod=pod(spec={"priority": 9}), settings=limits(priority_threshold=10)),
    "young": Given(
        pod=aged(timedelta(seconds=299)), voluntary="TOO_YOUNG", says="started 299s ago, limits.minPodAge is 5m"
    ),
    "old enough": Given(pod=aged(timedelta(seconds=300))),
    "young without a start": Given(pod=created(timedelta(seconds=1)), voluntary="TOO_YOUNG"),
    "old without a start": Given(pod=created(timedelta(hours=1))),
    "of no known age": Given(
        pod=aged(None, metadata={"creationTimestamp": None}), voluntary="TOO_YOUNG", says="not started"
    ),
    "youth does not count by the settings": Given(
        pod=aged(timedelta(seconds=1)), settings=limits(min_pod_age=timedelta())
    ),
    "not ready": Given(
        pod=pod(status={"conditions": [{"type": "Ready", "status": "False", "reason": "ContainersNotReady"}]}),
        voluntary="NOT_READY",
        says="Running and not Ready (ContainersNotReady)",
    ),
    "another scheduler": Given(
        pod=pod(spec={"schedulerName": "volcano"}), voluntary="FOREIGN_SCHEDULER", says="schedulerName is volcano"
    ),
    "the default scheduler by name": Given(pod=pod(spec={"schedulerName": "default-scheduler"})),
    "claimed devices": Given(
        pod=pod(spec={"resourceClaims": [{"name": "gpu", "resourceClaimName": "g"}]}),
        voluntary="RESOURCE_CLAIMS",
        says="gpu",
    ),
}


@pytest.mark.parametrize("given", CIRCUMSTANCES.values(), ids=CIRCUMSTANCES.keys())
def test_circumstances(given: Given) -> None:
    given.check()


def stored(*volumes: dict[str, Any], **annotations: str) -> Any:
    named = {"local": keys.SAFE_TO_EVICT_LOCAL_VOLUMES, "safe": keys.SAFE_TO_EVICT, "evict": keys.DESCHEDULER_EVICT}
    said = {named[key]: value for key, value in annotations.items()}
    return pod(spec={"volumes": list(volumes)}, annotations=said)


SCRATCH = {"name": "scratch", "emptyDir": {}}
SHM = {"name": "shm", "emptyDir": {"medium": "Memory"}}
LOGS = {"name": "logs", "hostPath": {"path": "/var/log"}}
SECRET = {"name": "secret", "secret": {"secretName": "s"}}
STORAGE = {
    "no volumes": (stored(), None),
    "a secret": (stored(SECRET), None),
    "emptyDir": (stored(SECRET, SCRATCH), "emptyDir volume scratch"),
    "emptyDir in memory": (stored(SHM), None),
    "hostPath": (stored(LOGS), "hostPath volume logs"),
    "emptyDir that may go": (stored(SCRATCH, local="scratch"), None),
    "hostPath that may go": (stored(LOGS, local="x, logs"), None),
    "one of two may go": (stored(SCRATCH, LOGS, local="scratch"), "hostPath volume logs"),
    "both may go": (stored(SCRATCH, LOGS, local="scratch,logs"), None),
    "safe to evict": (stored(SCRATCH, LOGS, safe="true"), None),
    "safe to evict nonsense": (stored(SCRATCH, safe="yes"), "scratch"),
    "evict": (stored(SCRATCH, evict=""), None),
    "evict true": (stored(SCRATCH, evict="true"), None),
}


@pytest.mark.parametrize(("made", "says"), STORAGE.values(), ids=STORAGE.keys())
def test_local_storage(made: Any, says: str | None) -> None:
    Given(pod=made, voluntary="LOCAL_STORAGE" if says else "", says=says or "").check()


def selecting(**labels: str) -> dict[str, Any]:
    return {"nodeSelector": {key.replace("__", "/").replace("_", "."): value for key, value in labels.items()}}


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    wanted = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return {"affinity": {"nodeAffinity": wanted}}


def rule(key: str, *values: str, operator: str = "In", of: str = "matchExpressions") -> dict[str, Any]:
    return {of: [{"key": key, "operator": operator, "values": list(values)}]}


PINS = {
    "no selector": ({}, None),
    "host name": (selecting(kubernetes_io__hostname="a"), "nodeSelector kubernetes.io/hostname=a"),
    "host name of another node": (selecting(kubernetes_io__hostname="b"), None),
    "a label that two nodes have": (selecting(disk="ssd"), None),
    "a label that only its node has": (selecting(gpu="yes"), "only a has what it asks for: nodeSelector gpu=yes"),
    "a label that no node has any more": (selecting(gone="yes"), None),
    "affinity to its host name": (
        required(rule(keys.HOSTNAME, "a")),
        "required node affinity (kubernetes.io/hostname In a)",
    ),
    "affinity to two host names": (required(rule(keys.HOSTNAME, "a", "b")), None),
    "affinity with a second choice": (required(rule(keys.HOSTNAME, "a"), rule("disk", "ssd")), None),
    "affinity away from the other": (required(rule(keys.HOSTNAME, "b", operator="NotIn")), "NotIn b"),
    "affinity to its name": (required(rule("metadata.name", "a", of="matchFields")), "metadata.name In a"),
    "selector and affinity": ({**selecting(disk="ssd"), **required(rule("gpu", "yes"))}, "nodeSelector disk=ssd and"),
    "preferred only": (
        {
            "affinity": {
                "nodeAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 1, "preference": rule(keys.HOSTNAME, "a")}
                    ]
                }
            }
        },
        None,
    ),
}


@pytest.mark.parametrize(("spec", "says"), PINS.values(), ids=PINS.keys())
def test_pins(spec: dict[str, Any], says: str | None) -> None:
    nodes = (build.node("a", labels={"disk": "ssd", "gpu": "yes"}), build.node("b", labels={"disk": "ssd"}))
    held = "PINNED" if says else ""
    Given(pod=pod(spec=spec), also=nodes, voluntary=held, says=says or "").check()


def test_a_node_without_an_object_is_no_place_to_go() -> None:
    """Pods name it, but the node itself was not seen."""
    pinned = pod(spec=selecting(gpu="yes"))
    Given(
        pod=pinned, also=(build.node("a", labels={"gpu": "yes"}), pod("web-2", on="ghost")), voluntary="PINNED"
    ).check()


def migration(
    *, uid: str = "", phase: str = "Pending", replacement: dict[str, str] | None = None, of: str = "web-1"
) -> Any:
    status = {"phase": phase, **({"replacement": replacement} if replacement else {})}
    return build.thing("PodMigration", "m1", "shop", spec={"podRef": {"name": of, "uid": uid}}, status=status)


OWN_UID = "uid-shop-web-1"
MOVING = {
    "this pod": (migration(uid=OWN_UID), "PodMigration m1 is moving it"),
    "a pod of this name": (migration(), "PodMigration m1 is moving it"),
    "an earlier pod of this name": (migration(uid="other"), None),
    "not taken up yet": (migration(uid=OWN_UID, phase=""), "m1"),
    "in progress": (migration(uid=OWN_UID, phase="InProgress"), "m1"),
    "completed": (migration(uid=OWN_UID, phase="Completed"), None),
    "failed": (migration(uid=OWN_UID, phase="Failed"), None),
    "cancelled": (migration(uid=OWN_UID, phase="Cancelled"), None),
    "another pod": (migration(of="web-0"), None),
}


@pytest.mark.parametrize(("record", "says"), MOVING.values(), ids=MOVING.keys())
def test_moves_under_way(record: Any, says: str | None) -> None:
    held = "ALREADY_MIGRATING" if says else ""
    Given(pod=pod(), also=(record,), voluntary=held, maintenance=held, interruption=held, says=says or "").check()


STANDING_IN = migration(of="web-0", replacement={"name": "web-1", "uid": OWN_UID})


def test_a_replacement_leaves_a_lost_node_before_its_own_move_is_over() -> None:
    held = "ALREADY_MIGRATING"
    Given(pod=pod(), also=(STANDING_IN,), voluntary=held, maintenance=held, says="is the replacement").check()


def test_a_member_of_a_statefulset_that_stands_in_for_itself_is_not_being_moved() -> None:
    record = migration(of="web-1", replacement={"name": "web-1", "uid": OWN_UID})
    Given(pod=pod(), also=(record,), voluntary="ALREADY_MIGRATING", maintenance="ALREADY_MIGRATING").check()


def test_a_migration_of_the_same_name_in_another_namespace_does_not_count() -> None:
    other = build.thing("PodMigration", "m1", "else", spec={"podRef": {"name": "web-1"}})
    Given(pod=pod(), also=(other,)).check()


LATER, EARLIER = NOW + timedelta(minutes=7), NOW
WEB = "shop/uid-shop-web"
RESTS = {
    "its workload": (pod(), {WEB: LATER}, "Deployment shop/web did not help; it rests until 2026-02-01T12:07:00Z"),
    "its workload, until now": (pod(), {WEB: EARLIER}, None),
    "another workload": (pod(), {"uid-shop-db": LATER}, None),
    "a pod on its own": (pod(of=None, labels=ON), {"shop/web-1": LATER}, "the last move of it"),
    "another pod on its own": (pod(of=None, labels=ON), {"shop/web-2": LATER}, None),
}


@pytest.mark.parametrize(("made", "cooldowns", "says"), RESTS.values(), ids=RESTS.keys())
def test_rests(made: Any, cooldowns: dict[str, datetime], says: str | None) -> None:
    held = "COOLING_DOWN" if says else ""
    copied = held if made.metadata.controller is None else ""
    Given(
        pod=made, cooldowns=cooldowns, voluntary=held, maintenance=copied, interruption=copied, says=says or ""
    ).check()


def test_a_drain_waits_before_it_copies_a_pod_again() -> None:
    given = Given(pod=pod(of=None, labels=ON), cooldowns={"shop/web-1": LATER})
    (reason,) = given.reasons()[Urgency.MAINTENANCE]
    assert reason.text == "the last move of it did not help; it is copied again after 2026-02-01T12:07:00Z"


def copied_in_vain(ago: timedelta) -> Any:
    """A move of it that failed so long ago."""
    status = {"phase": "Failed", "step": "RemoveCopy", "finishedAt": text(NOW - ago)}
    return build.thing("PodMigration", "m0", "shop", spec={"podRef": {"name": "web-1"}}, status=status)


def leaving(cause: str, ago: timedelta) -> Any:
    """Node a, with a sign that is so old."""
    return build.node("a", taints=[{"key": cause, "effect": "NoSchedule", "timeAdded": text(NOW - ago)}])


def silent(ago: timedelta) -> Any:
    """Node a, and it runs on spot."""
    made = build.node("a", ready=False, spot=True, zone="z")
    ready = msgspec.structs.replace(made.status.conditions[0], last_transition_time=NOW - ago)
    return msgspec.structs.replace(made, status=msgspec.structs.replace(made.status, conditions=(ready,)))


MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)
OTHERS = tuple(build.node(name, spot=True, zone="z") for name in ("b", "c", "d"))
LOST = {
    # the node, when a copy failed, and whether that holds the pod back
    "a deadline is ahead": (leaving(ITN, 90 * SECOND), MINUTE, False),
    "it has passed": (leaving(ITN, 10 * MINUTE), MINUTE, True),
    "none is known": (leaving(REBALANCE, 10 * MINUTE), MINUTE, True),
    "none is known, and the sign is newer": (leaving(REBALANCE, 30 * SECOND), MINUTE, False),
    "silent": (silent(10 * MINUTE), MINUTE, True),
    "silent only since then": (silent(MINUTE), 2 * MINUTE, False),
    "the node stays": (build.node("a"), MINUTE, True),
}


@pytest.mark.parametrize(("node", "ago", "held"), LOST.values(), ids=LOST.keys())
def test_a_lost_node_waits_before_a_pod_is_copied_again_if_it_may_stay(node: Any, ago: timedelta, held: bool) -> None:
    also = (node, *OTHERS, copied_in_vain(ago))
    found = Given(pod=pod(of=None, labels=ON), cooldowns={"shop/web-1": LATER}, also=also)
    said = {it.code for it in found.reasons()[Urgency.INTERRUPTION]}
    assert said == ({Code.COOLING_DOWN} if held else set())


def kept(phase: str = "Cancelled", uid: str = "uid-shop-web-1", **more: Any) -> tuple[Any, ...]:
    """A copy of the pod whose move is over."""
    status = {"phase": phase, "step": "RemoveCopy", "intent": {"copy": "rescheduled-web-1-1"}}
    move = build.thing("PodMigration", "m0", "shop", spec={"podRef": {"name": "web-1"}}, status=status)
    marks = {"annotations": {OURS.original_pod: uid}}
    return move, pod("rescheduled-web-1-1", of=None, on="b", metadata=marks, **more)


KEPT = kept()
COPIES = {
    "it serves": (KEPT, "its copy rescheduled-web-1-1, of an earlier move, still serves"),
    "it does not": (kept(ready=False), ""),
    "it is gone": (KEPT[:1], ""),
    "its move goes on": (kept("InProgress"), ""),
    "it is of another pod": (kept(uid="u-other"), ""),
}


@pytest.mark.parametrize(("also", "says"), COPIES.values(), ids=COPIES.keys())
def test_a_pod_whose_copy_serves_is_not_copied_again(also: tuple[Any, ...], says: str) -> None:
    given = Given(pod=pod(of=None, labels=ON), also=also)
    said = [it.text for it in given.reasons()[Urgency.INTERRUPTION] if it.code is Code.COOLING_DOWN]
    assert said == ([says] if says else [])


# Berlin puts its clocks forward on 2026-03-29 at 02:00 (01:00 UTC) and back on 2026-10-25 at 03:00 (01:00 UTC).
NIGHT = Window(type=Kind.ALLOW, start="02:30", end="04:00", time_zone="Europe/Berlin")
WORK = Window(type=Kind.DENY, days=(Day.SUNDAY,), start="02:15", end="02:45", time_zone="Europe/Berlin")
WINDOWS = {
    "before it opens": (NIGHT, datetime(2026, 2, 1, 1, 29, tzinfo=UTC), "before 2026-02-01T01:30:00Z"),
    "open": (NIGHT, datetime(2026, 2, 1, 1, 30, tzinfo=UTC), None),
    "closed again": (NIGHT, datetime(2026, 2, 1, 3, 0, tzinfo=UTC), "before 2026-02-02T01:30:00Z"),
    "forward: the minute before the hour that is skipped": (
        NIGHT,
        datetime(2026, 3, 29, 0, 59, tzinfo=UTC),
        "before 2026-03-29T01:00:00Z",
    ),
    "forward: half past two does not exist, three does": (NIGHT, datetime(2026, 3, 29, 1, 0, tzinfo=UTC), None),
    "forward: an hour earlier by UTC from then on": (NIGHT, datetime(2026, 3, 30, 0, 30, tzinfo=UTC), None),
    "back: half past two comes": (NIGHT, datetime(2026, 10, 25, 0, 30, tzinfo=UTC), None),
    "back: two o'clock again": (NIGHT, datetime(2026, 10, 25, 1, 10, tzinfo=UTC), "before 2026-10-25T01:30:00Z"),
    "back: half past two comes again": (NIGHT, datetime(2026, 10, 25, 1, 30, tzinfo=UTC), None),
    "denied, forward: the half hour does not exist": (WORK, datetime(2026, 3, 29, 1, 20, tzinfo=UTC), None),
    "denied, back: the half hour": (WORK, datetime(2026, 10, 25, 0, 20, tzinfo=UTC), "before 2026-10-25T00:45:00Z"),
    "denied, back: the half hour again": (
        WORK,
        datetime(2026, 10, 25, 1, 20, tzinfo=UTC),
        "before 2026-10-25T01:45:00Z",
    ),
}


@pytest.mark.parametrize(("window", "now", "says"), WINDOWS.values(), ids=WINDOWS.keys())
def test_windows(window: Window, now: datetime, says: str | None) -> None:
    settings = Settings(windows=(window,))
    Given(pod=pod(), settings=settings, now=now, voluntary="OUTSIDE_WINDOW" if says else "", says=says or "").check()
