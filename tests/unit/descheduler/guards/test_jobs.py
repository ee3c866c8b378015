"""Pods that run to their end: never moved for a better place, and only carefully for a drain."""

from datetime import timedelta
from typing import Any

import pytest

from descheduler import plan
from descheduler.proposal import Move, Urgency
from descheduler.reasons import Code
from policy import keys
from policy.settings import Settings
from policy.settings_strategies import NodeMaintenance, Strategies
from policy.values import INT32_MAX
from tests.unit.descheduler import build
from tests.unit.descheduler.guarding import NOW, OURS, Given, pod

WORKER = pod("work-1", of=build.owner("Job", "work", "shop"), spec={"restartPolicy": "Never"})


def stamp(ago: timedelta) -> str:
    return (NOW - ago).strftime("%Y-%m-%dT%H:%M:%SZ")


def job(**more: Any) -> Any:
    return build.thing("Job", "work", "shop", **more)


def cordoned(ago: timedelta, key: str = keys.UNSCHEDULABLE_TAINT) -> Any:
    labels = {OURS.maintenance: "true"}
    return build.node("a", labels=labels, taints=[{"key": key, "effect": "NoSchedule", "timeAdded": stamp(ago)}])


def timeout(length: timedelta) -> Settings:
    return Settings(strategies=Strategies(node_maintenance=NodeMaintenance(job_timeout=length)))


MINUTES = timedelta(minutes=1)
LABELLED = build.node("a", labels={OURS.maintenance: "true"})
MEDIK8S = build.node(
    "a", taints=[{"key": "medik8s.io/drain", "effect": "NoSchedule", "timeAdded": stamp(61 * MINUTES)}]
)
LAST = [{"key": keys.UNSCHEDULABLE_TAINT, "effect": "NoSchedule", "timeAdded": "9999-12-31T23:59:59Z"}]
WAITING = {
    "cordoned in the last year there is": (build.node("a", taints=LAST), Settings(), "jobTimeout is 1h"),
    "drained since the last year there is": (
        build.node(
            "a", labels={OURS.maintenance: "true"}, annotations={OURS.maintenance_since: "9999-12-31T23:59:59Z"}
        ),
        Settings(),
        "jobTimeout is 1h",
    ),
    "the drain has no time yet": (LABELLED, Settings(), "jobTimeout is 1h"),
    "just cordoned": (cordoned(59 * MINUTES), Settings(), "until 2026-02-01T12:01:00Z"),
    "cordoned long enough": (cordoned(60 * MINUTES), Settings(), None),
    "our taint": (cordoned(60 * MINUTES, OURS.draining), Settings(), None),
    "our taint, just set": (cordoned(1 * MINUTES, OURS.draining), Settings(), "until"),
    "a signal with its own time": (MEDIK8S, Settings(), None),
    "longer by the settings": (cordoned(61 * MINUTES), timeout(timedelta(hours=2)), "jobTimeout is 2h"),
    "not at all by the settings": (LABELLED, timeout(timedelta()), None),
    "on a node that is not known": (None, Settings(), "to end by itself"),
}


@pytest.mark.parametrize(("node", "settings", "says"), WAITING.values(), ids=WAITING.keys())
def test_a_drain_waits_for_jobs(node: Any, settings: Settings, says: str | None) -> None:
    made = WORKER if node is not None else pod("work-1", on="gone", of=build.owner("Job", "work", "shop"))
    given = Given(
        pod=made,
        also=(job(), *([node] if node is not None else [])),
        settings=settings,
        voluntary="JOB",
        maintenance="JOB" if says else "",
    )
    given.check()
    assert all((says or "") in it.text for it in given.reasons()[Urgency.MAINTENANCE])


def rules(*found: Any) -> dict[str, Any]:
    return {"podFailurePolicy": {"rules": list(found)}}


def on_disruption(action: str, status: str = "True") -> dict[str, Any]:
    return {"action": action, "onPodConditions": [{"type": "DisruptionTarget", "status": status}]}


def on_exit(action: str, operator: str, *codes: int) -> dict[str, Any]:
    return {"action": action, "onExitCodes": {"operator": operator, "values": list(codes)}}


NONE_LEFT = {"backoffLimit": 0}
FAILURES = {
    "retries left": (job(spec={"backoffLimit": 3}, status={"failed": 2}), None),
    "retries used up": (job(spec={"backoffLimit": 3}, status={"failed": 3}), "backoffLimit 3 of Job work is used up"),
    "no retries": (job(spec=NONE_LEFT), "backoffLimit 0"),
    "no retries, disruptions ignored": (job(spec={**NONE_LEFT, **rules(on_disruption("Ignore"))}), None),
    "no retries, undisrupted ignored": (
        job(spec={**NONE_LEFT, **rules(on_disruption("Ignore", "False"))}),
        "backoffLimit",
    ),
    "disruptions counted": (job(spec=rules(on_disruption("Count"))), None),
    "disruptions counted, no retries": (job(spec={**NONE_LEFT, **rules(on_disruption("Count"))}), "backoffLimit 0"),
    "disruptions fail the Job": (job(spec=rules(on_disruption("FailJob"))), "with FailJob"),
    "disruptions fail the index": (job(spec=rules(on_disruption("FailIndex"))), "with FailIndex"),
    "own exit code first": (
        job(spec={**NONE_LEFT, **rules(on_exit("FailJob", "In", 42), on_disruption("Ignore"))}),
        None,
    ),
    "exit code of a stopped container first": (
        job(spec=rules(on_exit("FailJob", "In", 143), on_disruption("Ignore"))),
        "with FailJob",
    ),
    "all exit codes but one first": (
        job(spec=rules(on_exit("FailJob", "NotIn", 42), on_disruption("Ignore"))),
        "with FailJob",
    ),
    "exit codes counted first": (
        job(spec={**NONE_LEFT, **rules(on_exit("Count", "NotIn", 42), on_disruption("Ignore"))}),
        "backoffLimit 0",
    ),
    "exit code ignored is no promise": (
        job(spec={**NONE_LEFT, **rules(on_exit("Ignore", "In", 143))}),
        "backoffLimit",
    ),
    "the first of two rules": (job(spec=rules(on_disruption("FailJob"), on_disruption("Ignore"))), "with FailJob"),
    "not seen": (None, "Job work takes the loss of a pod is not known"),
}


@pytest.mark.parametrize(("owner", "says"), FAILURES.values(), ids=FAILURES.keys())
def test_a_drain_does_not_fail_a_job(owner: Any, says: str | None) -> None:
    given = Given(
        pod=WORKER,
        also=(cordoned(61 * MINUTES), *([owner] if owner is not None else [])),
        voluntary="JOB",
        maintenance="JOB_WOULD_FAIL" if says else "",
    )
    given.check()
    assert all((says or "") in it.text for it in given.reasons()[Urgency.MAINTENANCE])


INDEXED = {
    "none": ("", None),
    "one left": ("1", None),
    "used up": ("2", "backoffLimitPerIndex 2"),
    "odd": ("x", None),
    "thousands of digits": ("9" * 5000, None),
}


@pytest.mark.parametrize(("failures", "says"), INDEXED.values(), ids=INDEXED.keys())
def test_an_index_has_retries_of_its_own(failures: str, says: str | None) -> None:
    annotations = {keys.JOB_INDEX_FAILURE_COUNT: failures} if failures else {}
    made = pod("work-1", of=build.owner("Job", "work", "shop"), annotations=annotations)
    given = Given(
        pod=made,
        also=(cordoned(61 * MINUTES), job(spec={"backoffLimitPerIndex": 2, "backoffLimit": INT32_MAX})),
        voluntary="JOB",
        maintenance="JOB_WOULD_FAIL" if says else "",
    )
    given.check()


def test_a_limit_of_the_whole_job_counts_beside_that_of_an_index() -> None:
    limits = {"backoffLimitPerIndex": 2, "backoffLimit": 3}
    given = Given(
        pod=pod("work-1", of=build.owner("Job", "work", "shop")),
        also=(cordoned(61 * MINUTES), job(spec=limits, status={"failed": 3})),
        voluntary="JOB",
        maintenance="JOB_WOULD_FAIL",
    )
    given.check()
    assert all("backoffLimit 3 of" in it.text for it in given.reasons()[Urgency.MAINTENANCE])


def test_a_step_of_a_workflow_counts_as_a_job() -> None:
    step = pod("step", of=build.owner("Workflow", "build", "shop"), spec={"restartPolicy": "OnFailure"})
    Given(pod=step, voluntary="JOB", maintenance="JOB JOB_WOULD_FAIL", says="Workflow build").check()


# ---- several pods of one Job

DRAINED = cordoned(61 * MINUTES)
DRAINING = Settings(enabled_strategies=("NodeMaintenance",))
STAYING = {Code.JOB_WOULD_FAIL, Code.ALREADY_MIGRATING, Code.TERMINATING}
TRACKED = "batch.kubernetes.io/job-tracking"


def worker(name: str, on: str = "a", *, index: str = "", metadata: Any = None, **more: Any) -> Any:
    notes = {keys.JOB_COMPLETION_INDEX: index} if index else {}
    meta = {"finalizers": [TRACKED], "annotations": notes, **(metadata or {})}
    owner = build.owner("Job", "work", "shop")
    return pod(name, on=on, of=owner, metadata=meta, spec={"restartPolicy": "Never"}, **more)


def gone(name: str, *, counted: bool = False, **more: Any) -> Any:
    """One that was told to stop; the Job controller takes its finalizer when it has counted it."""
    meta = {"deletionTimestamp": stamp(MINUTES), "finalizers": [] if counted else [TRACKED]}
    return worker(name, metadata=meta, **more)


def move(name: str, phase: str = "InProgress") -> Any:
    return build.thing(
        "PodMigration", f"move-{name}", "shop", spec={"podRef": {"name": name}}, status={"phase": phase}
    )


def moved(*objects: Any, begun: tuple[Move, ...] = ()) -> list[str]:
    """Names of the pods that a plan moves off the drained node; what stays is told that it would cost the Job."""
    made = plan.make(build.state(DRAINED, build.node("b"), *objects, settings=DRAINING), DRAINING, NOW, begun=begun)
    for refusal in made.refusals:
        assert {it.code for it in refusal.reasons} & STAYING, refusal
    return sorted(it.pod.metadata.name for it in made.moves)


SIX = tuple(worker(f"work-{number}") for number in range(6))
TWO_RETRIES = {"backoffLimit": 2}
SEVERAL = {
    "as many as retries": ((job(spec=TWO_RETRIES), *SIX), 2),
    "less those used": ((job(spec=TWO_RETRIES, status={"failed": 1}), *SIX), 1),
    "disruptions ignored": ((job(spec={**NONE_LEFT, **rules(on_disruption("Ignore"))}), *SIX), 6),
    "one is moving": ((job(spec=TWO_RETRIES), *SIX, move("work-0")), 1),
    "the move of one has ended": ((job(spec=TWO_RETRIES), *SIX, move("work-0", "Failed")), 2),
    "one is being deleted": ((job(spec=TWO_RETRIES), *SIX[1:], gone("work-0")), 1),
    "its move is under way, too": ((job(spec=TWO_RETRIES), *SIX[1:], gone("work-0"), move("work-0")), 1),
    "it is counted": ((job(spec=TWO_RETRIES, status={"failed": 1}), *SIX[1:], gone("work-0", counted=True)), 1),
    "it is about to be counted": (
        (
            job(spec=TWO_RETRIES, status={"uncountedTerminatedPods": {"failed": [gone("work-0").metadata.uid]}}),
            *SIX[1:],
            gone("work-0"),
        ),
        1,
    ),
    "one that is gone is about to be counted": (
        (job(spec=TWO_RETRIES, status={"uncountedTerminatedPods": {"failed": ["u"]}}), *SIX),
        1,
    ),
    "the like in another namespace": (
        (job(spec=TWO_RETRIES), *SIX, gone("work-0", namespace="else")),
        2,
    ),
    "one of another Job": (
        (job(spec=TWO_RETRIES), *SIX, pod("other", metadata={"deletionTimestamp": stamp(MINUTES)})),
        2,
    ),
}


@pytest.mark.parametrize(("objects", "moves"), SEVERAL.values(), ids=SEVERAL.keys())
def test_pods_of_one_job_share_its_retries(objects: tuple[Any, ...], moves: int) -> None:
    assert len(moved(*objects)) == moves


def test_moves_that_are_being_written_down_count() -> None:
    objects = (job(spec=TWO_RETRIES), *SIX)
    made = plan.make(build.state(DRAINED, build.node("b"), *objects, settings=DRAINING), DRAINING, NOW)
    assert [it.pod.metadata.name for it in made.moves] == ["work-0", "work-1"]
    assert moved(*objects, begun=made.moves[:1]) == ["work-1"]
    assert moved(*objects, begun=made.moves) == []


def test_each_index_has_retries_of_its_own_for_all_of_its_pods() -> None:
    limited = job(spec={"backoffLimitPerIndex": 1})
    assert len(moved(limited, *(worker(f"work-{it}", index=str(it)) for it in range(4)))) == 4
    again = [worker("work-0", index="0"), worker("work-1", index="1"), gone("work-0-old", index="0")]
    assert moved(limited, *again) == ["work-1"]
    assert len(moved(limited, worker("odd-0"), worker("odd-1"))) == 1, "they do not say which index they are of"


def test_a_pod_that_is_told_to_stop_has_nothing_more_to_lose() -> None:
    """The machine asks about it until it is gone, and its own failure may be counted by then."""
    given = Given(
        pod=gone("work-1", counted=True),
        also=(DRAINED, job(spec={"backoffLimit": 1}, status={"failed": 1})),
        voluntary="TERMINATING JOB",
        maintenance="TERMINATING",
        interruption="TERMINATING",
    )
    given.check()
