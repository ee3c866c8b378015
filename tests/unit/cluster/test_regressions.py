"""Defects that a review found, each as small as it can be shown."""

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cluster import errors, eventlog
from cluster.calls import Caller
from cluster.eventlog import EventLog, Limits, Said, Subject, Topic
from cluster.recovery import Course, Outcome, Phase, Tuning, after
from cluster.tokens import FileToken
from cluster.workers import run
from cluster.workqueue import WorkQueue
from telemetry import scrub
from telemetry.probes import Health
from tests.unit.cluster.surroundings import World

ROOT = Path(__file__).parents[3]
MANY_THREADS = """
import sys, threading
from cluster.decode import Decoders
from cluster.pod import Pod
sys.setswitchinterval(1e-6)
gate = threading.Barrier(8)
def work():
    gate.wait()
    Decoders().of(Pod).decode(b'{"metadata": {"name": "a"}}')
threads = [threading.Thread(target=work) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""


@pytest.mark.parametrize("attempt", range(6))
def test_decoders_can_be_made_by_many_threads(attempt: int) -> None:
    """Without the lock one process in three dies of a segmentation fault inside the decoder library."""
    done = subprocess.run([sys.executable, "-c", MANY_THREADS], cwd=ROOT, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def said(note: str = "no node fits") -> Said:
    subject = Subject("v1", "Pod", "web", "default")
    return Said(subject, Topic("Refused", "Plan"), note, datetime(2026, 1, 1, tzinfo=UTC), None)


def test_a_series_may_be_forgotten_while_it_is_sent() -> None:
    events = EventLog(Limits(), prefix="p")
    events.offer(said(), 0.0)
    events.offer(said(), 1.0)
    for send in events.due(10_000.0):
        events.forget(send.said)
    assert list(events.due(20_000.0)) == []


def test_half_a_surrogate_does_not_stop_an_event() -> None:
    assert eventlog.cut("key \ud800x") == "key ?x"


@pytest.mark.parametrize("asked", ["99999999999", "86400"])
def test_no_server_can_send_us_away_for_a_day(asked: str) -> None:
    error = errors.from_response(429, {"Retry-After": asked}, b"{}")
    world = World()
    step = after(Course(listing=None), Outcome(Phase.WATCH, 1.0, error=error), tuning=Tuning(), rng=world.runtime.rng)
    assert step.delay <= 10 * Tuning().pace.top * 1.2


@pytest.mark.parametrize("asked", ["inf", "nan", "-3"])
def test_an_impossible_wait_is_no_wait(asked: str) -> None:
    assert errors.from_response(503, {"Retry-After": asked}, b"{}").retry_after is None


def test_a_watch_that_costs_a_list_each_time_backs_off() -> None:
    course, lists, seconds = Course(listing=None), 0, 0.0
    world = World()
    rng = world.runtime.rng
    while seconds < 600:
        if course.listing is not None:
            lists += 1
        phase = course.phase
        failed = errors.ServerError("boom", status=500) if phase is Phase.WATCH else None
        step = after(course, Outcome(phase, 0.1, progressed=True, error=failed), tuning=Tuning(), rng=rng)
        course, seconds = step.course, seconds + 0.1 + step.delay
    assert lists < 40


@pytest.mark.parametrize("content", [b"one\ntwo", b"\xff\xfe", b"sp ace", b""])
def test_a_bad_token_file_keeps_the_last_good_token(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "token"
    path.write_bytes(b"good")
    token = FileToken(path, clock=lambda: 0.0)
    path.write_bytes(content)
    assert token.authorization() == "Bearer good"
    token.reload()
    assert token.authorization() == "Bearer good"


def test_a_worker_survives_who_tells_of_failures() -> None:
    world = World()
    queue: WorkQueue[str] = WorkQueue(clock=world.clock, rng=world.runtime.rng)
    handled = []

    def handle(key: str) -> None:
        handled.append(key)
        if key == "bad":
            raise RuntimeError("broken work")
        queue.shut_down(drain=False)

    def failed(key: str, error: Exception, seconds: float) -> None:
        raise RuntimeError(f"broken telling of {key}")

    queue.add("bad")
    queue.add("good")
    run(queue, handle, failed)
    assert handled == ["bad", "good"]


def test_no_thread_left_is_an_answer_too(monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    caller = Caller(threading.Condition())
    monkeypatch.setattr(threading.Thread, "start", refuse)
    for _ in range(10):  # more than may hang: none of them is counted as hanging
        with pytest.raises(errors.Unreachable, match="no thread for the request") as refusal:
            caller.start(lambda: 1)
    assert not refusal.value.maybe_applied


SECRETS = {
    "query": "GET /x?access_token=abcd1234efgh",
    "yaml": "client_secret: abcd1234efgh",
    "camel": "apiToken=abcd1234efgh",
    "environment": "AWS_SECRET_ACCESS_KEY=abcd1234efgh",
    "address": "http://admin:abcd1234efgh@prometheus:9090",
}


@pytest.mark.parametrize("text", SECRETS.values(), ids=SECRETS.keys())
def test_secrets_of_many_spellings_are_redacted(text: str) -> None:
    assert "abcd1234efgh" not in scrub.text(text)


def test_settings_are_logged_whole_but_for_secrets() -> None:
    many: dict[str, object] = {f"setting{n}": n for n in range(400)}
    many |= {"strategies.thirdParty.X.args.apiToken": "abcd", "nested": [[1], [2]]}
    logged = scrub.flat(many)
    assert isinstance(logged, dict)
    assert len(logged) == 402
    assert logged["strategies.thirdParty.X.args.apiToken"] == scrub.REDACTED


def test_a_ready_check_may_share_its_name_with_a_live_one() -> None:
    health = Health()
    health.ready("lease", lambda: "not yet")
    health.live("lease", lambda: None)
    assert health.readiness().failed == (("lease", "not yet"),)
