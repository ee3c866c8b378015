"""One seeded schedule: two or three candidates, each behind a way of its own, through partitions, stalls and
kills.
"""

import contextlib
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from cluster.election import Timing
from testbed import api, faults, proxy
from testbed.bed import ControlPlane
from testbed.waiting import NeverCame, eventually
from tests.integration.cluster import lease_oracle as oracle
from tests.integration.cluster.lease_candidate import Setup

ROOT = Path(__file__).parents[3]
TIMING = Timing(
    lease_seconds=2,
    renew_deadline=1.4,
    renew_period=0.35,
    poll_period=0.3,
    request_timeout=0.6,
    stop_grace=0.5,
)
ONE_RETRY = TIMING.poll_period * (1 + TIMING.jitter) + TIMING.request_timeout
MARGIN_SECONDS = 3.0
"""What many processes on few cores may add to any time measured from outside."""
HAND_OVER_SECONDS = 2.0
SETTLE_SECONDS = 40.0


@dataclass(slots=True)
class Result:
    """What one schedule showed."""

    seed: int
    problems: list[str] = field(default_factory=list)
    fail_overs: list[float] = field(default_factory=list)
    hand_overs: list[float] = field(default_factory=list)
    closest: float = float("inf")
    terms: int = 0
    acts: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Candidate:
    """A process and its way to the apiserver."""

    way: proxy.FaultProxy
    process: subprocess.Popen[bytes]
    diary: Path
    killed: bool = False

    def read(self) -> oracle.Diary:
        return oracle.read(self.diary)

    def heal(self) -> None:
        """Everything works again, and requests that hang are cut loose."""
        self.process.send_signal(signal.SIGCONT)
        self.way.rules.clear()
        self.way.accept()
        self.way.cut_all()

    def leads(self) -> bool:
        lines = self.read().lines
        answers = [line for line in lines if line[0] in {"P", "N"}]
        return bool(answers) and answers[-1][0] == "P" and time.monotonic() - float(answers[-1][1]) < 0.2


@dataclass(slots=True)
class Election:
    """All candidates of a schedule, the dead ones included."""

    bed: ControlPlane
    namespace: str
    seed: int
    folder: Path
    rng: random.Random
    result: Result
    stack: contextlib.ExitStack
    living: list[Candidate] = field(default_factory=list)
    dead: list[Candidate] = field(default_factory=list)
    pause: threading.Event = field(default_factory=threading.Event)
    started: int = 0

    @property
    def name(self) -> str:
        return f"lease-{self.seed}"

    def start(self) -> None:
        """One more candidate."""
        self.started += 1
        identity = f"{self.seed}-{self.started}"
        way = proxy.FaultProxy(self.bed, faults.Rules(random.Random(self.seed)))
        way.start()
        self.stack.callback(way.stop)
        diary = self.folder / f"diary-{self.namespace}-{identity}"
        ca = str(self.bed.layout.ca.pair.cert)
        setup = Setup(way.server, ca, self.namespace, self.name, identity, str(diary), TIMING)
        told = self.folder / f"setup-{self.namespace}-{identity}"
        told.write_bytes(msgspec.json.encode(setup))
        command = [sys.executable, "-m", "tests.integration.cluster.lease_candidate", str(told)]
        process = subprocess.Popen(command, cwd=ROOT)
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)
        candidate = Candidate(way, process, diary)
        self.living.append(candidate)
        eventually(lambda: candidate.read().lines, timeout=30, interval=0.05, what="a running candidate")

    def bury(self, candidate: Candidate, *, killed: bool) -> None:
        """It is gone; another takes its place under a new name."""
        candidate.killed = killed
        code = candidate.process.wait(timeout=10)
        if not killed and code != 0:
            self.result.problems.append(f"{candidate.diary.name} ended with {code}")
        self.living.remove(candidate)
        self.dead.append(candidate)

    def leader(self) -> Candidate:
        """Wait until exactly one leads."""
        return eventually(
            lambda: [candidate for candidate in self.living if candidate.leads()],
            until=lambda found: len(found) == 1,
            timeout=SETTLE_SECONDS,
            interval=0.05,
            what="a leader",
        )[0]

    # ---- noise

    def annoy(self, seconds: float) -> None:
        """Random trouble for random candidates."""
        end = time.monotonic() + seconds
        acts = [self._cut_off, self._cut_off, self._stall, self._meddle, self._lose_answers]
        while time.monotonic() < end:
            act = self.rng.choice(acts)
            self._count(act.__name__.strip("_"))
            act(self.rng.choice(self.living))
            self.pause.wait(self.rng.uniform(0.05, 0.6))

    def _cut_off(self, candidate: Candidate) -> None:
        way = candidate.way
        if self.rng.random() < 0.3:
            way.refuse()
            return
        chosen: list[faults.Fault] = [
            faults.Blackhole(),
            faults.Hold(None),
            faults.Answer(self.rng.choice([429, 500, 503, 403]), retry_after=1),
            faults.Slow(100),
            faults.Delay(self.rng.uniform(0.1, 2.0)),
        ]
        way.rules.add(self.rng.choice(chosen), probability=self.rng.choice([0.6, 1.0]))

    def _lose_answers(self, candidate: Candidate) -> None:
        """The write takes effect and nobody hears of it."""
        candidate.way.rules.add(faults.Cut(None), verb=self.rng.choice(["update", "create", None]), count=2)

    def _stall(self, candidate: Candidate) -> None:
        candidate.process.send_signal(signal.SIGSTOP)
        self.pause.wait(self.rng.uniform(0.1, 1.5 * TIMING.lease_seconds))
        candidate.process.send_signal(signal.SIGCONT)

    def _meddle(self, candidate: Candidate) -> None:
        """Somebody edits or deletes the lease."""
        kube = self.bed.api()
        with contextlib.suppress(api.ApiError):
            match self.rng.randrange(5):
                case 0:
                    kube.delete("leases", self.name, self.namespace)
                case 1:
                    self._edit({"spec": {"holderIdentity": ""}})
                case 2:
                    self._edit({"spec": {"holderIdentity": "somebody-else"}})
                case 3:
                    self._edit({"spec": {"holderIdentity": candidate.diary.name.removeprefix(self._prefix)}})
                case _:
                    self._edit({"metadata": {"annotations": {"touched": str(time.monotonic())}}})

    @property
    def _prefix(self) -> str:
        return f"diary-{self.namespace}-"

    def _edit(self, body: api.Object) -> None:
        self.bed.api().patch("leases", self.name, body, self.namespace)

    # ---- what is measured

    def heal(self) -> None:
        for candidate in self.living:
            candidate.heal()

    def hand_over(self) -> None:
        """SIGTERM to the leader while all is well."""
        self._replace(lambda leader: leader.process.send_signal(signal.SIGTERM), self.result.hand_overs, ends=True)

    def kill(self) -> None:
        """SIGKILL to the leader while all is well."""
        self._replace(lambda leader: leader.process.kill(), self.result.fail_overs, ends=True, killed=True)

    def stall_leader(self) -> None:
        """SIGSTOP to the leader, and later SIGCONT: it must not go on as if nothing had happened."""
        self._replace(lambda leader: leader.process.send_signal(signal.SIGSTOP), self.result.fail_overs, ends=False)

    def isolate_leader(self) -> None:
        """The apiserver accepts its requests and never answers."""
        self._replace(self._swallow, self.result.fail_overs, ends=False)

    def _swallow(self, leader: Candidate) -> None:
        leader.way.rules.add(faults.Blackhole())
        leader.way.cut_all()

    def _replace(
        self, strike: Callable[[Candidate], None], into: list[float], *, ends: bool, killed: bool = False
    ) -> None:
        leader = self.leader()
        self._wait_polls()
        at = time.monotonic()
        strike(leader)
        others = [candidate for candidate in self.living if candidate is not leader]
        found = eventually(
            lambda: [since for c in others if (since := c.read().leads_since(at)) is not None],
            timeout=SETTLE_SECONDS,
            interval=0.02,
            what="another leader",
        )
        into.append(min(found) - at)
        if ends:
            self.bury(leader, killed=killed)
            self.start()

    def _wait_polls(self) -> None:
        """Until every standby has surely looked at the lease since it was healed."""
        self.pause.wait(TIMING.lease_seconds)

    def _count(self, act: str) -> None:
        self.result.acts[act] = self.result.acts.get(act, 0) + 1


def run(bed: ControlPlane, namespace: str, seed: int, folder: Path) -> Result:
    """The whole schedule and the verdict."""
    result = Result(seed)
    rng = random.Random(seed)
    with contextlib.ExitStack() as stack:
        election = Election(bed, namespace, seed, folder, rng, result, stack)
        try:
            for _ in range(rng.choice([2, 3])):
                election.start()
            for _ in range(2):
                election.leader()
                election.annoy(rng.uniform(1.5, 4.0))
                election.heal()
                probe = rng.choice(
                    [election.hand_over, election.kill, election.stall_leader, election.isolate_leader]
                )
                election._count(probe.__name__)
                probe()
                election.heal()
            election.leader()
        except NeverCame as never:
            result.problems.append(str(never))
        election.heal()
        for candidate in list(election.living):
            candidate.process.send_signal(signal.SIGTERM)
            with contextlib.suppress(ValueError):
                election.bury(candidate, killed=False)
        _judge(election)
    return result


def _judge(election: Election) -> None:
    result = election.result
    everybody = [*election.living, *election.dead]
    diaries = {candidate.diary.name: candidate for candidate in everybody}
    read = [candidate.read() for candidate in everybody]
    result.problems += oracle.overlaps(read)
    result.closest = oracle.closest(read)
    for diary in read:
        result.problems += oracle.broken_terms(diary, killed=diaries[diary.who].killed)
        result.terms += sum(line[0] == "S" for line in diary.lines)
    slow = [t for t in result.fail_overs if t > TIMING.lease_seconds + ONE_RETRY + MARGIN_SECONDS]
    result.problems += [f"fail-over took {t:.2f} s" for t in slow]
    result.problems += [f"hand-over took {t:.2f} s" for t in result.hand_overs if t > HAND_OVER_SECONDS]
