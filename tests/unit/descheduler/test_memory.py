"""Rests grow with failures in a row and end with a success; records go when nobody needs them."""

import random
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from cluster.objects import PodMigration
from descheduler import memory, resting
from descheduler.memory import Outcome
from policy.settings import Settings
from policy.settings_moves import Backoff, History
from policy.settings_strategies import SpotMix, SpotReclaim, Strategies
from tests.unit.descheduler import build
from tests.unit.descheduler.guarding import NOW

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
UID = "uid-shop-web"
WEB = f"shop/{UID}"


def stamp(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def move(
    ago: timedelta | None,
    phase: str = "Completed",
    *,
    landed: str = "b",
    on_target: bool | None = None,
    workload: str | None = UID,
    pod: str = "web-1",
    step: str = "",
    **metadata: Any,
) -> PodMigration:
    """A move from node a to node b."""
    made: PodMigration = build.thing(
        "PodMigration",
        f"m-{workload}-{ago}-{phase}",
        "shop",
        metadata=metadata,
        spec={"podRef": {"name": pod}},
        status={
            "phase": phase,
            "step": step,
            "finishedAt": None if ago is None else stamp(NOW - ago),
            "resolved": {
                "sourceNode": "a",
                "targetNode": "b",
                "workload": None if workload is None else {"kind": "Deployment", "name": "web", "uid": workload},
            },
            "replacement": {"name": "web-2", "node": landed} if landed else None,
            "onTarget": landed == "b" if on_target is None else on_target,
        },
    )
    return made


def failed(ago: timedelta, **more: Any) -> PodMigration:
    return move(ago, "Failed", landed="", **more)


OUTCOMES = {
    "on target": (move(MINUTE), Outcome.HELPED),
    "elsewhere": (move(MINUTE, landed="c"), Outcome.HELPED),
    "back on the source": (move(MINUTE, landed="a"), Outcome.BOUNCED),
    "no replacement to be seen": (move(MINUTE, landed=""), Outcome.HELPED),
    "failed": (failed(MINUTE), Outcome.FAILED),
    "failed with a replacement on the source": (move(MINUTE, "Failed", landed="a"), Outcome.FAILED),
    "cancelled": (move(MINUTE, "Cancelled", landed="a"), Outcome.NOTHING),
}


@pytest.mark.parametrize(("record", "expected"), OUTCOMES.values(), ids=OUTCOMES.keys())
def test_outcomes(record: PodMigration, expected: Outcome) -> None:
    assert memory.outcome(record) is expected


BOUNCED = move(MINUTE, landed="a")
COOLDOWNS: dict[str, tuple[list[PodMigration], dict[str, timedelta]]] = {
    "nothing yet": ([], {}),
    "a success": ([move(MINUTE)], {}),
    "a failure": ([failed(MINUTE)], {WEB: 5 * MINUTE}),
    "a bounce": ([BOUNCED], {WEB: 5 * MINUTE}),
    "a failure that is over": ([failed(5 * MINUTE)], {}),
    "two in a row": ([failed(9 * MINUTE), failed(MINUTE)], {WEB: 10 * MINUTE}),
    "a bounce and a failure": ([failed(9 * MINUTE), BOUNCED], {WEB: 10 * MINUTE}),
    "three in a row, told in any order": ([failed(3 * MINUTE), failed(2 * MINUTE), BOUNCED], {WEB: 20 * MINUTE}),
    "a success between": ([failed(9 * MINUTE), move(4 * MINUTE), failed(MINUTE)], {WEB: 5 * MINUTE}),
    "a success last": ([failed(9 * MINUTE), failed(4 * MINUTE), move(MINUTE)], {}),
    "a cancelled one between": ([failed(9 * MINUTE), move(4 * MINUTE, "Cancelled"), BOUNCED], {WEB: 10 * MINUTE}),
    "a cancelled one last": ([failed(2 * MINUTE), move(MINUTE, "Cancelled")], {WEB: 5 * MINUTE - MINUTE}),
    "one that is open": ([failed(2 * MINUTE), move(MINUTE, "InProgress")], {WEB: 5 * MINUTE - MINUTE}),
    "as long as it gets": ([failed(n * MINUTE) for n in range(1, 9)], {WEB: 6 * HOUR}),
    "no longer than that": ([failed(n * MINUTE) for n in range(1, 2000)], {WEB: 6 * HOUR}),
    "two workloads": (
        [failed(MINUTE), failed(MINUTE, workload="x"), failed(2 * MINUTE, workload="x")],
        {WEB: 5 * MINUTE, "shop/x": 10 * MINUTE},
    ),
    "a pod on its own": ([failed(MINUTE, workload=None, pod="solo")], {"shop/solo": 5 * MINUTE}),
    "a pod that was copied": ([move(MINUTE, landed="a", workload=None, pod="solo")], {"shop/web-2": 5 * MINUTE}),
    "a pod whose copy was removed": ([move(MINUTE, "Failed", workload=None, pod="solo")], {"shop/solo": 5 * MINUTE}),
    "a copy that fails when it is alone": (
        [move(MINUTE, "Failed", workload=None, pod="solo", step="AwaitReplacement")],
        {"shop/web-2": 5 * MINUTE},
    ),
    "one that is being deleted": (
        [failed(MINUTE, deletionTimestamp=stamp(NOW), finalizers=["x"])],
        {},
    ),
    "one without a time": ([move(None, "Failed", creationTimestamp=stamp(NOW - MINUTE))], {WEB: 5 * MINUTE}),
}


@pytest.mark.parametrize(("records", "rests"), COOLDOWNS.values(), ids=COOLDOWNS.keys())
def test_cooldowns(records: list[PodMigration], rests: dict[str, timedelta]) -> None:
    """Each rest is counted from a move that ended a minute ago."""
    expected = {uid: NOW - MINUTE + rest for uid, rest in rests.items()}
    assert memory.cooldowns(records, Settings(), NOW) == expected


def test_the_settings_say_how_long() -> None:
    settings = Settings(backoff=Backoff(initial=10 * MINUTE, factor=3.0, max=HOUR))
    records = [failed(3 * MINUTE), failed(2 * MINUTE), failed(MINUTE)]
    rests = [memory.cooldowns(records[-n:], settings, NOW)[WEB] - NOW + MINUTE for n in (1, 2, 3)]
    assert rests == [10 * MINUTE, 30 * MINUTE, HOUR]


def kept(records: list[PodMigration], **history: Any) -> list[PodMigration]:
    gone = memory.expired(records, Settings(history=History(**history)), NOW)
    return [it for it in records if it not in gone]


OLD, NEW, OPEN = move(25 * HOUR), move(23 * HOUR), move(99 * HOUR, "InProgress")
EXPIRED: dict[str, tuple[list[PodMigration], dict[str, Any], list[PodMigration] | None]] = {
    "too old": ([OLD, NEW], {}, [NEW]),
    "exactly as old as may be": ([move(24 * HOUR)], {}, []),
    "never an open one": ([OPEN], {"total": 0, "per_workload": 0}, [OPEN]),
    "an old failure whose rest is over": ([failed(25 * HOUR)], {}, []),
    "too many of a workload": (
        [move(3 * MINUTE), move(2 * MINUTE), move(MINUTE)],
        {"per_workload": 1},
        [move(MINUTE)],
    ),
    "each workload by itself": ([move(MINUTE), move(MINUTE, workload="x")], {"per_workload": 1}, None),
    "too many in all": (
        [move(MINUTE), move(2 * MINUTE, workload="x"), move(3 * MINUTE, workload="y")],
        {"total": 2},
        [move(MINUTE), move(2 * MINUTE, workload="x")],
    ),
    "first those that nobody needs": (
        [failed(3 * MINUTE), move(2 * MINUTE, "Cancelled"), move(MINUTE, "Cancelled")],
        {"per_workload": 1},
        [failed(3 * MINUTE)],
    ),
    "of all workloads too": ([failed(3 * MINUTE), move(MINUTE, workload="x")], {"total": 1}, [failed(3 * MINUTE)]),
    "the number is the number": ([failed(2 * MINUTE), failed(MINUTE)], {"total": 1}, [failed(MINUTE)]),
}


@pytest.mark.parametrize(("records", "history", "stay"), EXPIRED.values(), ids=EXPIRED.keys())
def test_what_goes(records: list[PodMigration], history: dict[str, Any], stay: list[PodMigration] | None) -> None:
    assert kept(records, **history) == (records if stay is None else stay)


def test_age_does_not_take_what_a_rest_is_counted_from() -> None:
    """Of seven failures in a row six are past their time while the rest lasts that all of them led to."""
    settings = Settings(history=History(history_ttl=6 * HOUR))
    records = [failed((7 + n) * HOUR) for n in range(6)] + [failed(HOUR)]
    before = memory.cooldowns(records, settings, NOW)
    assert before[WEB] == NOW - HOUR + timedelta(minutes=5 * 2**6)
    assert memory.expired(records, settings, NOW) == ()
    rested = before[WEB]
    assert memory.expired(records, settings, rested) == tuple(sorted(records[:6], key=memory.ended))


def interruption(ago: timedelta, phase: str = "Completed", **more: Any) -> PodMigration:
    made = move(ago, phase, **more)
    return msgspec.structs.replace(made, spec=msgspec.structs.replace(made.spec, strategy="SpotInterruption"))


def rests_after_interruptions(records: list[PodMigration]) -> set[str]:
    return set(resting.interrupted(build.state(*records), Settings().strategies.spot_reclaim.cool_down, NOW))


LATER = [move(timedelta(seconds=n)) for n in range(1, 11)]
FAILURES = [failed(timedelta(seconds=n)) for n in range(1, 11)]
INTERRUPTIONS: dict[str, tuple[list[PodMigration], int]] = {
    "ten later moves": ([interruption(5 * MINUTE), *LATER], 0),
    "which keep their number": ([interruption(5 * MINUTE), *LATER, move(6 * MINUTE)], 1),
    "ten failures, which are needed too": ([interruption(5 * MINUTE), *FAILURES], 0),
    "only the newest": ([interruption(5 * MINUTE), interruption(6 * MINUTE), *LATER], 1),
    "one that was cancelled took nothing": ([interruption(5 * MINUTE, "Cancelled"), *LATER], 1),
    "not beyond the rest": ([interruption(16 * MINUTE), *LATER], 1),
    "more workloads than are kept in all": ([interruption(MINUTE, workload=f"w-{n}") for n in range(1500)], 0),
}


@pytest.mark.parametrize(("records", "gone"), INTERRUPTIONS.values(), ids=INTERRUPTIONS.keys())
def test_the_rest_after_an_interruption_is_not_forgotten(records: list[PodMigration], gone: int) -> None:
    dropped = {it.metadata.name for it in memory.expired(records, Settings(), NOW)}
    left = [it for it in records if it.metadata.name not in dropped]
    assert rests_after_interruptions(left) == rests_after_interruptions(records)
    assert len(dropped) == gone


def test_the_longer_cool_down_counts() -> None:
    own = Strategies(spot_reclaim=SpotReclaim(cool_down=MINUTE), spot_mix=SpotMix(cool_down=HOUR))
    record = interruption(59 * MINUTE)
    assert memory.expired([record, *LATER], Settings(strategies=own), NOW) == ()
    assert memory.expired([record, *LATER], Settings(strategies=own), NOW + MINUTE) == (record,)


def test_the_oldest_go_first() -> None:
    records = [move(n * HOUR, workload=str(n)) for n in (26, 30, 28)]
    assert memory.expired(records, Settings(), NOW) == (records[1], records[2], records[0])


@pytest.mark.parametrize("seed", range(20))
def test_clearing_up_changes_no_rest_and_is_done_at_once(seed: int) -> None:
    rng = random.Random(seed)
    settings = Settings(history=History(history_ttl=6 * HOUR))
    records = [
        move(
            timedelta(seconds=rng.randrange(1, 12 * 3600)),
            rng.choice(["Completed", "Failed", "Failed", "Cancelled", "InProgress"]),
            landed=rng.choice(["a", "b"]),
            workload=rng.choice(["x", "y", "z"]),
        )
        for _ in range(60)
    ]
    gone = memory.expired(records, settings, NOW)
    left = [it for it in records if it not in gone]
    assert memory.cooldowns(left, settings, NOW) == memory.cooldowns(records, settings, NOW)
    assert memory.expired(left, settings, NOW) == ()
    assert len([it for it in left if it.status.phase != "InProgress"]) <= 30
