"""Each key once, one worker per key, fair, delayed, backed off, and shut down in two ways."""

import functools
import random
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster import queue_metrics
from cluster.pace import Pace
from cluster.workers import Workers
from cluster.workqueue import Schedule, Signal, WorkQueue
from telemetry.metrics import Metric
from tests.unit.cluster.surroundings import Clock, World, until

STEADY = Pace(base=1.0, top=300.0, jitter=0.0)


def make(clock: Clock, seen: list[tuple[Signal, float]] | None = None) -> WorkQueue[str]:
    def observe(signal: Signal, value: float, /) -> None:
        if seen is not None:
            seen.append((signal, value))

    return WorkQueue(clock=clock, rng=random.Random(1), pace=STEADY, observer=observe)


def test_a_key_is_in_the_queue_at_most_once() -> None:
    queue = make(Clock())
    for key in ("a", "b", "a", "a"):
        queue.add(key)
    assert [queue.get(0), queue.get(0), queue.get(0)] == ["a", "b", None]


def test_a_key_that_is_worked_on_is_served_again_afterwards_and_not_before() -> None:
    queue = make(Clock())
    queue.add("a")
    assert queue.get(0) == "a"
    queue.add("a")
    queue.add("a")
    assert queue.get(0) is None, "one worker per key"
    queue.done("a")
    assert queue.get(0) == "a"
    queue.done("a")
    assert queue.get(0) is None


def test_a_noisy_key_goes_to_the_end() -> None:
    queue = make(Clock())
    for key in ("noisy", "b", "c"):
        queue.add(key)
    served = []
    for _ in range(6):
        served.append(taken := queue.get(0))
        assert taken is not None
        queue.add(taken)
        queue.done(taken)
    assert served == ["noisy", "b", "c", "noisy", "b", "c"]


def test_delayed_keys_come_when_they_are_due_in_that_order() -> None:
    clock = Clock()
    queue = make(clock)
    queue.add_after("late", 10)
    queue.add_after("soon", 5)
    queue.add_after("late", 3)
    queue.add_after("late", 60)
    assert queue.get(0) is None
    clock.now += 20
    assert [queue.get(0), queue.get(0), queue.get(0)] == ["late", "soon", None], (
        "the earliest of several times counts"
    )


def test_an_immediate_add_does_not_cancel_a_delayed_one() -> None:
    clock = Clock()
    queue = make(clock)
    queue.add_after("a", 10)
    queue.add("a")
    assert queue.get(0) == "a"
    queue.done("a")
    assert queue.get(0) is None
    clock.now += 10
    assert queue.get(0) == "a"


def test_back_off_per_key_and_forgetting() -> None:
    queue = make(Clock())
    assert [queue.retry("a") for _ in range(4)] == [1, 2, 4, 8]
    assert queue.retry("b") == 1, "keys do not share their failures"
    assert queue.failures("a") == 4
    queue.forget("a")
    assert queue.retry("a") == 1
    assert [queue.retry("c") for _ in range(2000)][-1] == 300, "bounded, and no overflow"


def test_jitter_spreads_around_the_curve() -> None:
    pace = Pace(base=1.0, top=8.0, jitter=0.2)
    rng = random.Random(3)
    delays = [pace.delay(10, rng) for _ in range(500)]
    assert 6.4 <= min(delays) < 6.6
    assert 9.4 < max(delays) <= 9.6


@pytest.mark.parametrize(
    ("base", "top", "jitter"), [(0, 1, 0), (2, 1, 0), (1, 2, 1)], ids=["zero", "upside down", "wild"]
)
def test_impossible_paces_are_refused(base: float, top: float, jitter: float) -> None:
    with pytest.raises(ValueError, match="a pace needs"):
        Pace(base, top, jitter)


def test_what_the_observer_is_told() -> None:
    clock, seen = Clock(), list[tuple[Signal, float]]()
    queue = make(clock, seen)
    queue.add("a")
    queue.add("a")
    clock.now += 2
    queue.get(0)
    clock.now += 3
    queue.done("a")
    queue.retry("a")
    assert seen == [
        (Signal.ADDED, 1),
        (Signal.WAITED_SECONDS, 2),
        (Signal.DEPTH, 0),
        (Signal.WORKED_SECONDS, 3),
        (Signal.RETRIED, 1),
    ]


def test_draining_serves_what_is_due_and_refuses_the_rest() -> None:
    seen: list[tuple[Signal, float]] = []
    queue = make(Clock(), seen)
    queue.add("a")
    queue.add_after("b", 5)
    queue.shut_down(drain=True)
    queue.add("c")
    queue.add_after("d", 0)
    assert [queue.get(), queue.get()] == ["a", None]
    assert [value for signal, value in seen if signal is Signal.DROPPED] == [1, 1, 1]


def test_dropping_forgets_everything() -> None:
    queue = make(Clock())
    queue.add("a")
    queue.shut_down(drain=False)
    assert queue.get() is None
    assert queue.join(0)


def test_the_observer_may_call_the_queue() -> None:
    queue: WorkQueue[str] = WorkQueue(
        clock=Clock(), rng=random.Random(1), observer=lambda _signal, _value: lengths.append(len(queue))
    )
    lengths: list[int] = []
    queue.add("a")
    assert lengths == [1]


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("add"), st.integers(0, 4)),
            st.tuples(st.just("later"), st.integers(0, 4)),
            st.tuples(st.just("take"), st.just(0)),
            st.tuples(st.just("done"), st.integers(0, 4)),
            st.tuples(st.just("tick"), st.integers(1, 5)),
        )
    )
)
def test_schedule_never_hands_out_a_key_twice_and_loses_none(steps: list[tuple[str, int]]) -> None:
    schedule: Schedule[int] = Schedule()
    now, working, wanted = 0.0, set[int](), set[int]()
    for step, value in steps:
        if step == "add":
            schedule.add(value, now)
            wanted.add(value)
        elif step == "later":
            schedule.add_at(value, now + 3)
            wanted.add(value)
        elif step == "tick":
            now += value
            schedule.advance(now)
        elif step == "take" and (taken := schedule.take(now)) is not None:
            assert taken[0] not in working
            working.add(taken[0])
            wanted.discard(taken[0])
        elif step == "done" and value in working:
            schedule.done(value, now)
            working.discard(value)
    for key in working:
        schedule.done(key, now)
    schedule.advance(now + 10)
    rest = set()
    while (taken := schedule.take(now + 10)) is not None:
        rest.add(taken[0])
    assert wanted <= rest


class Meeting:
    """Counts who is inside at the same time."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside: dict[str, int] = {}
        self.most_per_key = 0
        self.handled = 0

    def handle(self, key: str) -> float | None:
        with self.lock:
            self.inside[key] = self.inside.get(key, 0) + 1
            self.most_per_key = max(self.most_per_key, self.inside[key])
        with self.lock:
            self.inside[key] -= 1
            self.handled += 1
        return None


def real() -> WorkQueue[str]:
    import time

    return WorkQueue(clock=time.monotonic, rng=random.Random(1), pace=Pace(0.01, 0.05))


def test_many_threads_never_meet_on_a_key() -> None:
    queue, meeting = real(), Meeting()
    workers = Workers(queue, meeting.handle, lambda *_: None, count=8, name="w")
    workers.start()
    for n in range(2000):
        queue.add(f"k{n % 7}")
    assert workers.stop(drain=True, timeout=20)
    assert meeting.most_per_key == 1
    assert meeting.handled >= 7


def test_a_failure_is_told_and_retried_and_ends_no_worker() -> None:
    queue = real()
    tries: list[str] = []
    told: list[tuple[str, str]] = []

    def handle(key: str) -> float | None:
        tries.append(key)
        if len(tries) < 3:
            raise RuntimeError("not yet")
        return None

    workers = Workers(queue, handle, lambda key, error, _delay: told.append((key, str(error))), count=1, name="w")
    workers.start()
    queue.add("a")
    until(lambda: len(tries) == 3 and queue.failures("a") == 0)
    assert told == [("a", "not yet"), ("a", "not yet")]
    assert workers.stop(drain=True, timeout=20)


def test_a_handler_may_ask_to_come_back() -> None:
    queue = real()
    times: list[str] = []

    def handle(key: str) -> float | None:
        times.append(key)
        return 0.005 if len(times) < 4 else None

    workers = Workers(queue, handle, lambda *_: None, count=2, name="w")
    workers.start()
    queue.add("a")
    until(lambda: len(times) == 4)
    assert workers.stop(drain=True, timeout=20)


def test_a_delayed_key_finds_the_idle_worker_while_the_other_is_busy() -> None:
    """The worker that watched the clock leaves with another key; somebody else must watch from then on."""
    queue = real()
    release, done = threading.Event(), list[str]()

    def handle(key: str) -> float | None:
        if key == "long":
            release.wait(20)
        done.append(key)
        return None

    workers = Workers(queue, handle, lambda *_: None, count=2, name="w")
    workers.start()
    queue.add_after("delayed", 0.2)
    queue.add("long")
    until(lambda: "delayed" in done)
    assert "long" not in done
    release.set()
    assert workers.stop(drain=True, timeout=20)


def test_a_worker_that_does_not_end_is_told() -> None:
    queue, release = real(), threading.Event()

    def handle(_key: str) -> float | None:
        release.wait(20)
        return None

    workers = Workers(queue, handle, lambda *_: None, count=1, name="w")
    workers.start()
    queue.add("a")
    until(lambda: len(queue) == 0)
    assert not workers.stop(drain=False, timeout=0.01)
    release.set()
    assert workers.stop(drain=False, timeout=20)


def test_a_metered_queue_feeds_its_metrics() -> None:
    clock = Clock()
    world = World(clock=clock)
    queue: WorkQueue[str] = queue_metrics.metered("migrations", runtime=world.runtime, pace=STEADY)
    read = functools.partial(world.meter.read, queue="migrations")
    queue.add("a")
    queue.add("b")
    queue.add("a")
    assert (read(Metric.QUEUE_ADDED), read(Metric.QUEUE_DEPTH)) == (2, 2)
    clock.now += 2
    assert queue.get(0) == "a"
    assert (read(Metric.QUEUE_DEPTH), read(Metric.QUEUE_WAIT_SECONDS)) == (1, 1)
    clock.now += 3
    queue.retry("a")
    queue.done("a")
    assert (read(Metric.QUEUE_RETRIES), read(Metric.QUEUE_WORK_SECONDS)) == (1, 1)
    rendered = world.meter.render()[1]
    assert b'queue_wait_seconds_sum{queue="migrations"} 2.0' in rendered
    assert b'queue_work_seconds_sum{queue="migrations"} 3.0' in rendered
    queue.shut_down(drain=False)
    assert read(Metric.QUEUE_DEPTH) == 0, "asked for when it is scraped, so it cannot be stale"


@pytest.mark.parametrize(("now", "moved"), [(4.999, 0), (5.0, 1), (5.001, 1)], ids=["before", "exactly", "after"])
def test_a_key_is_due_from_its_very_time_on(now: float, moved: int) -> None:
    schedule: Schedule[str] = Schedule()
    schedule.add_at("a", 5.0)
    assert schedule.advance(now) == moved
    assert (schedule.take(now) is not None) == bool(moved)


def test_a_time_that_an_earlier_one_replaced_means_nothing_any_more() -> None:
    schedule: Schedule[str] = Schedule()
    schedule.add_at("a", 10.0)
    schedule.add_at("a", 5.0)
    assert schedule.advance(5.0) == 1
    schedule.take(5.0)
    schedule.done("a", 5.0)
    schedule.add_at("a", 20.0)
    assert schedule.advance(10.0) == 0, "10 was replaced by 5, and 20 is not yet"
    assert schedule.next_due() == 20.0
    assert schedule.advance(20.0) == 1


def test_a_delayed_key_wakes_a_worker_that_waits_without_a_time() -> None:
    queue, taken = real(), list[str | None]()
    worker = threading.Thread(target=lambda: taken.append(queue.get()), daemon=True)
    worker.start()
    until(lambda: getattr(queue._changed, "_waiters"), "the worker to wait")  # noqa: B009 - of the standard library
    queue.add_after("a", 0.01)
    try:
        until(lambda: taken == ["a"])
    finally:
        queue.shut_down(drain=False)
        worker.join(20)
