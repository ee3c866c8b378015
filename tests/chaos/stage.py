"""Everything of one run, and the one thread that looks: what was seen, whether it was right, and when it is quiet."""

import base64
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

import urllib3

from testbed import kubelet
from testbed.api import Api, ApiError
from testbed.pods import ACCOUNT_VOLUME
from testbed.pytest_plugin import make_namespace
from testbed.waiting import patient
from tests.chaos import settled
from tests.chaos.admission import Admission
from tests.chaos.asking import Asking, Refused
from tests.chaos.bodies import NAMESPACE
from tests.chaos.budgets import Budgets
from tests.chaos.doing import Doer
from tests.chaos.evictions import Evictions, was_evicted
from tests.chaos.leaders import Leaders
from tests.chaos.model import Act, Kind, Model
from tests.chaos.past import Past
from tests.chaos.product import DESCHEDULER, Product
from tests.chaos.records import Moves
from tests.chaos.replicas import Replicas
from tests.chaos.timeline import Timeline
from tests.chaos.watching import Audit, Seen, Watcher

TICK_SECONDS: Final = 0.1
METRICS_SECONDS: Final = 5.0
SETTLE_SECONDS: Final = 240.0
"""Until everything has come to rest: far more than it takes, because rests and time-outs of many moves add up."""
STEADY_SECONDS: Final = 3.0
"""It stays so."""
SETTLING_TICK_SECONDS: Final = 0.4


@dataclass(slots=True)
class Stage:
    """One run."""

    product: Product
    kube: Api
    timeline: Timeline
    model: Model = field(default_factory=Model)
    violations: list[tuple[float, str]] = field(default_factory=list)
    acts: Counter[Kind] = field(default_factory=Counter)
    settle_seconds: float = SETTLE_SECONDS
    quiet_points: int = 0
    longest_settling: float = 0.0

    watcher: Watcher = field(init=False)
    audit: Audit = field(init=False)
    moves: Moves = field(default_factory=Moves)
    evictions: Evictions = field(init=False)
    replicas: Replicas = field(init=False)
    budgets: Budgets = field(init=False)
    leaders: Leaders = field(init=False)
    admission: Admission = field(init=False)
    doer: Doer = field(init=False)
    _tokens: dict[str, str] = field(default_factory=dict)
    _metrics_at: float = 0.0
    _broken: float = 0.0
    """Until when the settings may keep a process from starting."""

    def __post_init__(self) -> None:
        make_namespace(self.kube, NAMESPACE)
        running = self.product.running
        self.watcher, self.audit = Watcher(self.kube, Past.of(running)), Audit(running.layout.audit_log)
        self.evictions = Evictions(self.moves)
        self.replicas = Replicas(self.moves, NAMESPACE)
        self.budgets = Budgets(self.moves, self.evictions)
        self.leaders = Leaders(self._pod_of, self.product.resumed)
        self.admission = Admission(self.product.excused)
        self.doer = Doer(self.kube, self.product, self.model, self.timeline.tell, Asking(self._rest))
        self.watcher.start()

    # ---- doing

    def do(self, act: Act) -> None:
        """One act, and what the watchers have to know of it."""
        self.timeline.tell(str(act))
        self.acts[act.kind] += 1
        if act.kind in {Kind.CREATE, Kind.SCALE}:
            self.replicas.want(act.subject, getattr(act.given, "replicas", act.given), time.time())
        if act.kind is Kind.CONFIGURE:
            self._broken = float("inf") if act.subject == "broken" else time.time() + 10.0
        try:
            self.doer.do(act)
        except Refused as refusal:
            self._wrong([f"{act}: {refusal}"])

    def wait(self, until: float) -> None:
        """Look until then, or until something is wrong."""
        while not self.violations and time.monotonic() < until:
            self.look()
            time.sleep(min(TICK_SECONDS, max(until - time.monotonic(), 0)))

    def settle(self) -> None:
        """A quiet point: everything comes to rest, and is as users left it."""
        began, steady = time.monotonic(), 0.0
        deadline = began + patient(self.settle_seconds)
        problems = ["nobody has looked yet"]
        while not self.violations and (not steady or time.monotonic() < steady + STEADY_SECONDS):
            self.look()
            problems = self._problems()
            steady = 0.0 if problems else steady or time.monotonic()
            if problems and time.monotonic() > deadline:
                self._wrong([f"at rest: {it}" for it in problems])
            time.sleep(SETTLING_TICK_SECONDS)
        self._wrong(self.product.defects()[:3])
        took = time.monotonic() - began
        self.quiet_points += 1
        self.longest_settling = max(self.longest_settling, took)
        self.timeline.tell(f"quiet after {took:.0f} s")

    def _problems(self) -> list[str]:
        if self.product.down or self.product.stopped:
            return [f"{', '.join(self.product.down) or self.product.stopped} is not Ready"]
        if self.evictions.unjudged or self.replicas.unjudged:
            return ["what was done last is not judged yet"]
        try:
            return settled.problems(self.kube, self.model)
        except (ApiError, urllib3.exceptions.HTTPError) as lost:
            return [str(lost)]

    def _rest(self) -> None:
        self.look()
        time.sleep(TICK_SECONDS)

    # ---- looking

    def look(self) -> None:
        """Take in what was seen, and say what is wrong."""
        now = time.time()
        for seen in self.watcher.new():
            self._wrong(self._see(seen), at=seen.at)
        for request in self.audit.new():
            self.evictions.grant(request)
            self._wrong(self.leaders.see(request), at=request.at)
        self._wrong(self.watcher.failures())
        for look in (self.evictions.look, self.replicas.look, self.budgets.look):
            self._wrong(look(now))
        ended = self.product.keep(now)
        if ended and now > self._broken:
            self._wrong(f"{name} ended by itself" for name in ended)
        for name in self.product.revive(now):
            self.timeline.tell(f"{name} had ended and is started again")
        if now > self._metrics_at + METRICS_SECONDS:
            self._metrics_at = now
            self._wrong(self._admission(now))

    def _see(self, seen: Seen) -> Iterator[str]:
        sight: dict[str, Callable[[Seen], Iterator[str]]] = {
            "podmigrations": self._move,
            "pods": self._pod,
            "deployments": self.replicas.see,
            "statefulsets": self.replicas.see,
            "poddisruptionbudgets": self.budgets.see,
        }
        return sight[seen.resource](seen) if seen.resource in sight else iter(())

    def _move(self, seen: Seen) -> Iterator[str]:
        history = self.moves.histories.get(seen.uid, [])
        before = (history[-1].phase, history[-1].step) if history else None
        found = list(self.moves.see(seen))
        entry = self.moves.histories[seen.uid][-1]
        if not seen.gone and before != (entry.phase, entry.step):
            what = f"{entry.name} {entry.strategy or 'by hand'} {entry.mode} of {entry.pod}"
            message = seen.object.get("status", {}).get("message", "") if not entry.open else ""
            self.timeline.tell(f"    {what}: {entry.phase} {entry.step} {message}", at=seen.at)
        return iter(found)

    def _pod(self, seen: Seen) -> Iterator[str]:
        if was_evicted(seen.object) and seen.uid not in self.evictions.known:
            where = seen.object["spec"].get("nodeName", "")
            self.timeline.tell(f"    pod {seen.name} ({seen.uid}) is evicted from {where}", at=seen.at)
        return self.evictions.see(seen)

    def _admission(self, now: float) -> Iterator[str]:
        try:
            page = str(self.kube.request("GET", "/metrics")["text"])
        except (ApiError, urllib3.exceptions.HTTPError):
            return iter(())
        return self.admission.see(page, now)

    def _wrong(self, found: Iterable[str], *, at: float | None = None) -> None:
        for problem in found:
            when = time.time() if at is None else at
            self.violations.append((when, problem))
            self.timeline.tell(f"VIOLATION {problem}", at=when)

    def _pod_of(self, credential: str) -> str:
        """Tokens are renewed, so they are read again when there is a new one."""
        if credential not in self._tokens:
            for pod, _ in self.product.members(DESCHEDULER):
                path = kubelet.folder(self.product.running) / pod.name / "volumes" / ACCOUNT_VOLUME / "token"
                payload = path.read_text().split(".")[1]
                claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
                self._tokens[claims["jti"]] = pod.name
        return self._tokens.get(credential, credential)
