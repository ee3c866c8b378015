"""Threads for what cannot wait: rank before arrival, and an end that leaves nothing half done."""

import queue
import threading

from descheduler.crew import Crew, Rank
from testbed.waiting import eventually


def test_the_most_urgent_goes_first() -> None:
    crew, done = Crew(preparing=1), queue.SimpleQueue[str]()
    begun, go = threading.Event(), threading.Event()

    def hold() -> None:
        begun.set()
        go.wait(10)

    crew.at(Rank.FOLLOW).submit(hold)
    assert begun.wait(10)
    for rank in (Rank.FOLLOW, Rank.CREATE, Rank.MARK):
        for turn in ("first", "second"):
            crew.at(rank).submit(done.put, f"{rank.name} {turn}")
    crew.at(Rank.EVICT).submit(done.put, "eviction")
    assert done.get(timeout=10) == "eviction", "which waits for nothing of that"
    go.set()
    order = [done.get(timeout=10) for _ in range(6)]
    assert order == [f"{rank} {turn}" for rank in ("MARK", "CREATE", "FOLLOW") for turn in ("first", "second")]
    crew.stop()


def test_after_the_end_nothing_is_begun() -> None:
    crew, done = Crew(evicting=2), queue.SimpleQueue[str]()
    begun, go = threading.Semaphore(0), threading.Event()

    def hold() -> None:
        begun.release()
        go.wait(10)
        done.put("finished")

    before = threading.active_count()
    for _ in range(2):
        crew.at(Rank.EVICT).submit(hold)
        assert begun.acquire(timeout=10)
    crew.at(Rank.EVICT).submit(done.put, "begun")
    crew.stop()
    go.set()
    assert [done.get(timeout=10) for _ in range(2)] == ["finished"] * 2
    eventually(threading.active_count, until=lambda count: count <= before, what="the threads to end")
    assert done.empty()


def test_work_that_fails_does_not_take_its_thread_along() -> None:
    crew, done = Crew(preparing=1), queue.SimpleQueue[str]()
    failed = crew.at(Rank.MARK).submit(int, "nonsense")
    crew.at(Rank.FOLLOW).submit(done.put, "next")
    assert done.get(timeout=10) == "next"
    assert isinstance(failed.exception(10), ValueError)
    crew.stop()


def test_what_only_one_may_touch_is_done_by_one_at_a_time() -> None:
    crew, done = Crew(evicting=4), queue.SimpleQueue[str]()
    inside, most = threading.Semaphore(1), threading.Event()

    def touch(name: str) -> None:
        if not inside.acquire(blocking=False):
            most.set()
        done.put(name)
        inside.release()

    for number in range(50):
        crew.at(Rank.EVICT, alone="budget").submit(touch, f"{number}")
    assert [done.get(timeout=10) for _ in range(50)] == [f"{number}" for number in range(50)]
    assert not most.is_set()
    crew.at(Rank.EVICT, alone="budget").submit(done.put, "again")
    assert done.get(timeout=10) == "again", "nobody is left in front"
    crew.stop()


def test_others_pass_by_who_waits_for_the_end_of_another() -> None:
    crew, done = Crew(evicting=2), queue.SimpleQueue[str]()
    begun, go = threading.Event(), threading.Event()

    def hold() -> None:
        begun.set()
        go.wait(10)

    crew.at(Rank.EVICT, alone="one").submit(hold)
    assert begun.wait(10)
    crew.at(Rank.EVICT, alone="one").submit(done.put, "waits")
    crew.at(Rank.EVICT, alone="other").submit(done.put, "passes")
    assert done.get(timeout=10) == "passes"
    go.set()
    assert done.get(timeout=10) == "waits"
    crew.stop()
