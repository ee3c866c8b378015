"""The table is whole: every guard has an example that it holds, every code a guard or a place in the planner."""

from datetime import UTC, datetime, timedelta

import pytest

from descheduler.guards import GUARDS, Guard
from descheduler.guards.case import Case
from descheduler.proposal import Urgency
from descheduler.reasons import Code
from policy.settings import Settings
from tests.unit.descheduler import build
from tests.unit.descheduler.guarding import NOW, Given, pod
from tests.unit.descheduler.guards import test_circumstances as circumstances
from tests.unit.descheduler.guards import test_jobs as jobs
from tests.unit.descheduler.guards import test_owners as owners
from tests.unit.descheduler.guards import test_wishes as wishes

LATER = NOW + timedelta(minutes=1)
EXAMPLES = {
    "mirror": owners.OWNERS["the kubelet, by annotation"],
    "daemonset": owners.OWNERS["a DaemonSet"],
    "terminating": circumstances.CIRCUMSTANCES["terminating"],
    "already_migrating": Given(pod=pod(), also=(circumstances.MOVING["this pod"][0],)),
    "just_moved": Given(pod=pod(), also=(circumstances.STANDING_IN,)),
    "being_evicted": wishes.FOREIGN["eviction-in-progress"],
    "no_controller": owners.OWNERS["nobody"],
    "opted_out_by_owner": wishes.OWN_KEY["disabled on the workload"],
    "opted_out_by_node": wishes.OWN_KEY["disabled on the node"],
    "opted_out_by_settings": wishes.OWN_KEY["disabled by the settings"],
    "misread_of_owner": wishes.OWN_KEY["a word that cannot be read is a no"],
    "misread_of_node": wishes.OWN_KEY["one on the node"],
    "excluded_namespace": circumstances.CIRCUMSTANCES["excluded namespace"],
    "safe_to_evict": wishes.FOREIGN["safe-to-evict false"],
    "never_evict": wishes.FOREIGN["evict false"],
    "prefers_to_stay": wishes.FOREIGN["prefer-no-eviction"],
    "moved_by_another": wishes.FOREIGN["request-evict-only"],
    "do_not_disrupt": wishes.FOREIGN["do-not-disrupt true"],
    "job": Given(pod=jobs.WORKER),
    "job_may_finish": Given(pod=jobs.WORKER, also=(jobs.job(),)),
    "job_would_fail": Given(pod=jobs.WORKER, also=(jobs.job(spec=jobs.NONE_LEFT),)),
    "statefulset_moving": Given(
        pod=owners.member(), also=(owners.statefulset(replicas=2), *owners.MEMBERS["another moving"][0])
    ),
    "statefulset_unready": Given(pod=owners.member(), also=(owners.statefulset(replicas=2),)),
    "tied_to_silence": Given(
        pod=owners.member(), also=(build.node("a", ready=False), owners.statefulset(replicas=2))
    ),
    "pending_revision": Given(pod=pod(), also=(owners.rollout(1),)),
    "local_storage": Given(pod=circumstances.stored(circumstances.SCRATCH)),
    "pinned": Given(pod=pod(spec=circumstances.selecting(kubernetes_io__hostname="a"))),
    "foreign_scheduler": circumstances.CIRCUMSTANCES["another scheduler"],
    "resource_claims": circumstances.CIRCUMSTANCES["claimed devices"],
    "priority_too_high": circumstances.CIRCUMSTANCES["system priority"],
    "too_young": circumstances.CIRCUMSTANCES["young"],
    "not_ready": circumstances.CIRCUMSTANCES["not ready"],
    "cooling_down": Given(pod=pod(), cooldowns={circumstances.WEB: LATER}),
    "copy_failed": Given(pod=pod(of=None, labels=circumstances.ON), cooldowns={"shop/web-1": LATER}),
    "copy_serves": Given(pod=pod(of=None, labels=circumstances.ON), also=circumstances.KEPT),
    "outside_window": Given(
        pod=pod(), settings=Settings(windows=(circumstances.NIGHT,)), now=datetime(2026, 2, 1, tzinfo=UTC)
    ),
}
OF_THE_PLANNER = {
    Code.NO_NODE_FITS,
    Code.PDB_NO_BUDGET,
    Code.PDB_MULTIPLE,
    Code.SINGLE_REPLICA,
    Code.ALREADY_THERE,
    Code.MODE_UNSUITED,
    Code.REPLICAS_CONTESTED,
    Code.NO_QUOTA,
    Code.LIMIT_TOTAL,
    Code.LIMIT_NODE,
    Code.LIMIT_NAMESPACE,
    Code.LIMIT_WORKLOAD,
    Code.NO_IMPROVEMENT,
    Code.METRICS_STALE,
}


def test_every_guard_has_an_example() -> None:
    assert [guard.name for guard in GUARDS] == list(EXAMPLES)


def test_every_code_is_of_a_guard_or_of_the_planner() -> None:
    assert {guard.code for guard in GUARDS} == set(Code) - OF_THE_PLANNER


@pytest.mark.parametrize("guard", GUARDS, ids=[guard.name for guard in GUARDS])
def test_a_guard_holds_its_example_and_not_a_plain_pod(guard: Guard) -> None:
    given = EXAMPLES[guard.name]
    assert guard.check(Case(given.pod, given.context())) is not None
    plain = Given(pod=pod())
    assert guard.check(Case(plain.pod, plain.context())) is None


@pytest.mark.parametrize("urgency", Urgency)
@pytest.mark.parametrize("guard", GUARDS, ids=[guard.name for guard in GUARDS])
def test_a_guard_holds_in_its_columns_only(guard: Guard, urgency: Urgency) -> None:
    given = EXAMPLES[guard.name]
    text = guard.check(Case(given.pod, given.context()))
    said = [(it.code, it.text) for it in given.reasons()[urgency]]
    assert ((guard.code, text) in said) == guard.holds(urgency)


def test_what_is_urgent_is_held_back_by_nothing_more() -> None:
    """A drain may do all that a voluntary move may, but for Jobs, which it waits for; an interruption all of that."""
    for guard in GUARDS:
        assert guard.voluntary or guard.name in {"job_may_finish", "job_would_fail"}
        assert guard.maintenance or not guard.interruption


def test_all_reasons_are_told_at_once() -> None:
    busy = pod(
        ready=False,
        labels={wishes.KEY: "disabled"},
        spec={"schedulerName": "volcano", "priority": 2_000_000_001, "volumes": [circumstances.SCRATCH]},
        status={"startTime": "2026-02-01T11:59:00Z"},
    )
    Given(
        pod=busy,
        also=(build.node("a", annotations=wishes.OFF),),
        cooldowns={circumstances.WEB: LATER},
        voluntary="OPTED_OUT OPTED_OUT LOCAL_STORAGE FOREIGN_SCHEDULER PRIORITY_TOO_HIGH "
        "TOO_YOUNG NOT_READY COOLING_DOWN",
        maintenance="OPTED_OUT",
    ).check()
