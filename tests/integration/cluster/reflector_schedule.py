"""One seeded schedule: objects change while the way to the apiserver misbehaves, and a reflector looks on."""

import contextlib
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import urllib3

from cluster import auth, errors
from cluster.client import Client
from cluster.decode import Page
from cluster.meta import PartialObjectMetadata
from cluster.pace import Pace
from cluster.recovery import Tuning
from cluster.reflector import Reflector
from cluster.resources import CONFIGMAPS
from cluster.runtime import Runtime
from cluster.source import ClusterSource, Source, Stream
from cluster.store import Delta
from telemetry import logs, meter
from telemetry.catalogue import Log
from telemetry.metrics import Metric
from testbed import api, faults, proxy
from testbed.bed import ControlPlane
from testbed.waiting import NeverCame, eventually
from tests.integration.cluster import reflector_oracle as oracle

LABEL = "schedule"
ACTIVE_SECONDS = 8.0
"""How long objects change and faults happen."""
SETTLE_SECONDS = 60.0
"""By when the store must be right after the last fault; long, because the apiserver may be starting again."""
TUNING = Tuning(
    watch_seconds=4,
    silence_seconds=1.5,
    list_seconds=6,
    list_silence_seconds=1.5,
    healthy_seconds=1.0,
    pace=Pace(base=0.1, top=1.0),
    denied=Pace(base=0.3, top=1.0),
)
REQUESTS_PER_SECOND = 1 / (TUNING.pace.base * (1 - TUNING.pace.jitter))
"""No wait is shorter than this, so a reflector that obeys its own rules cannot send more; a busy loop
sends hundreds.
"""


@dataclass(slots=True)
class Forgetful:
    """A source whose next watch asks for a version long gone: the real server then answers 410 inside the
    stream.
    """

    inner: Source[PartialObjectMetadata]
    forget: threading.Event = field(default_factory=threading.Event)
    forgotten: int = 0
    trace: list[str] = field(default_factory=list)
    """Every request and every line as the reflector got it, for the report of a failure."""

    @property
    def name(self) -> str:
        return self.inner.name

    def pages(self) -> Iterator[Page[PartialObjectMetadata]]:
        self._note("list")
        for page in self.inner.pages():
            self._note(f"page at {page.resource_version} of {len(page.items)}, first {page.first}")
            yield page

    def watch(
        self, version: str, *, initial: bool, timeout_seconds: int, read_timeout: float
    ) -> AbstractContextManager[Stream]:
        if not initial and self.forget.is_set():
            self.forget.clear()
            self.forgotten += 1
            version = "1"
        self._note(f"watch from {version or 'the beginning'}")
        return self.inner.watch(version, initial=initial, timeout_seconds=timeout_seconds, read_timeout=read_timeout)

    def decode(self, line: bytes) -> tuple[str, PartialObjectMetadata | errors.ApiError]:
        kind, item = self.inner.decode(line)
        told = str(item) if isinstance(item, errors.ApiError) else " ".join(oracle.identity(item))
        self._note(f"{kind} {told}")
        return kind, item

    def _note(self, what: str) -> None:
        self.trace.append(f"{time.monotonic():.3f} {what}")


@dataclass(slots=True)
class Result:
    """What one schedule showed."""

    seed: int
    problems: list[str] = field(default_factory=list)
    requests: int = 0
    seconds: float = 0.0
    deltas: int = 0
    writes: int = 0
    relists: int = 0
    listed_at: int = 0
    """Version of the last list: what was written before it need not be seen."""
    checked: int = 0
    """Writes after it, each of which must have been seen."""
    gone_in_stream: int = 0
    faults: dict[str, int] = field(default_factory=dict)
    trace: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    @property
    def per_second(self) -> float:
        return self.requests / self.seconds


def run(bed: ControlPlane, namespace: str, seed: int, folder: Path) -> Result:
    """The whole schedule, from an almost empty collection to the verdict."""
    rng = random.Random(seed)
    result = Result(seed)
    log: list[Delta[PartialObjectMetadata]] = []
    runtime, numbers = _runtime(seed, result)
    writer = Writer(bed.api(), namespace, seed, random.Random(seed + 1))
    with _way(bed, seed) as way:
        config = way.kubeconfig(folder / f"kubeconfig-{namespace}-{seed}")
        client = Client(auth.connect(config), timeout=1.5, rate_limit=None)
        source = Forgetful(_source(client, namespace, seed, rng))
        reflector = Reflector(source, log.append, runtime=runtime, tuning=TUNING, streaming=rng.random() < 0.6)
        began = time.monotonic()
        writer.populate(rng.randrange(6))
        trouble = Trouble(way, source, rng, relisting=seed % 2 == 0)
        changing = threading.Thread(target=writer.work, args=(ACTIVE_SECONDS,), name=f"writer-{seed}")
        reflector.start()
        changing.start()
        trouble.make(ACTIVE_SECONDS)
        changing.join()
        way.cut_all()
        writer.finish()
        _await_same(bed, namespace, reflector, result)
        result.seconds = time.monotonic() - began
        _stop(reflector, result)
        result.requests = len(way.requests)
        client.close()
    result.deltas, result.writes, result.gone_in_stream = len(log), writer.writes, source.forgotten
    result.trace = source.trace
    relists = [
        numbers.read(Metric.REFLECTOR_RELISTS, resource="configmaps", cause=cause) for cause in ("gone", "stuck")
    ]
    result.relists = int(sum(relists))
    _count_faults(trouble.used, result)
    _check_history(reflector, log, result)
    _check_losses(writer, log, result)
    bound = REQUESTS_PER_SECOND * result.seconds
    if result.requests > bound:
        result.problems.append(f"{result.requests} requests in {result.seconds:.1f} s, at most {bound:.0f} allowed")
    return result


@contextlib.contextmanager
def _way(bed: ControlPlane, seed: int) -> Iterator[proxy.FaultProxy]:
    way = proxy.FaultProxy(bed, faults.Rules(random.Random(seed)))
    way.start()
    try:
        yield way
    finally:
        way.stop()


def _source(client: Client, namespace: str, seed: int, rng: random.Random) -> Source[PartialObjectMetadata]:
    return ClusterSource(
        client,
        CONFIGMAPS,
        PartialObjectMetadata,
        namespace=namespace,
        label_selector=f"{LABEL}={seed}",
        metadata_only=rng.random() < 0.5,
        page_size=rng.choice([2, 3, 500]),
        timeout=1.5,
    )


def _stop(reflector: Reflector[PartialObjectMetadata], result: Result) -> None:
    began = time.monotonic()
    if not reflector.stop():
        result.problems.append(f"stop took {time.monotonic() - began:.2f} s")


def _count_faults(used: list[faults.Rule], result: Result) -> None:
    for rule in used:
        name = type(rule.fault).__name__
        name += str(rule.fault.status) if isinstance(rule.fault, faults.Answer) else ""
        result.faults[name] = result.faults.get(name, 0) + rule.hits


def _check_losses(writer: "Writer", log: list[Delta[PartialObjectMetadata]], result: Result) -> None:
    """Every acknowledged write after the last list must have been seen; of what a list shows, only the outcome."""
    result.checked = sum(int(version) > result.listed_at for version in writer.versions)
    lost = oracle.unseen(writer.versions, log, since=result.listed_at)
    result.problems += [f"version {version} was written and never seen" for version in lost]


def _await_same(
    bed: ControlPlane, namespace: str, reflector: Reflector[PartialObjectMetadata], result: Result
) -> None:
    """The store becomes equal to a fresh list."""
    kube = bed.api()

    def difference() -> set[object]:
        try:
            fresh = oracle.identities(kube.list("configmaps", namespace, labels=f"{LABEL}={result.seed}"))
        except urllib3.exceptions.HTTPError as down:
            raise AssertionError("the apiserver is being restarted") from down
        held = {key: oracle.identity(item) for key, item in reflector.store.snapshot().items()}
        return set(fresh.items()) ^ set(held.items())

    try:
        eventually(
            difference, until=lambda found: not found and reflector.synced, timeout=SETTLE_SECONDS, what="the same"
        )
    except NeverCame as never:
        result.problems.append(f"store and list differ: {never}")


def _check_history(
    reflector: Reflector[PartialObjectMetadata], log: list[Delta[PartialObjectMetadata]], result: Result
) -> None:
    """The log is a possible history, and it leads to the store."""
    state, broken = oracle.replayed(log)
    result.problems += broken
    if state != {key: oracle.identity(item) for key, item in reflector.store.snapshot().items()}:
        result.problems.append("the log does not lead to the store")


def _runtime(seed: int, result: Result) -> tuple[Runtime, meter.Meter]:
    def note(line: logs.Line) -> None:
        if line["event"] in (Log.REFLECTOR_SYNCED.name, Log.REFLECTOR_RELISTED.name):
            result.listed_at = int(str(line["version"]))
        result.said.append(f"{time.monotonic():.3f} {line['event']} {line.get('error', '')} {line.get('cause', '')}")
        if line["event"] == Log.INTERNAL_ERROR.name:
            result.problems.append(str(line))

    numbers = meter.Meter(strict=True)
    log = logs.Logger(note, now=lambda: datetime.now(UTC), strict=True)
    return Runtime(time.monotonic, lambda: datetime.now(UTC), random.Random(seed), log, numbers), numbers


@dataclass(slots=True)
class Writer:
    """Changes the objects directly, past the proxy, and remembers the versions the server acknowledged."""

    kube: api.Api
    namespace: str
    seed: int
    rng: random.Random
    writes: int = 0
    versions: list[str] = field(default_factory=list)

    def populate(self, count: int) -> None:
        for n in range(count):
            self._try(self._create, f"s{self.seed}-{n}")

    def work(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        pause = threading.Event()
        while time.monotonic() < end:
            name = f"s{self.seed}-{self.rng.randrange(5)}"
            acts = [self._create, self._change, self._change, self._delete, self._swap, self._relabel]
            self._try(self.rng.choice(acts), name)
            pause.wait(self.rng.expovariate(25))

    def finish(self) -> None:
        """One last object: who has seen it has seen everything before it, and is not right by coincidence."""
        eventually(
            lambda: self._try(self._create, f"s{self.seed}-last"),
            timeout=SETTLE_SECONDS,
            what="an apiserver that takes the last object",
        )

    def _try(self, act: Callable[[str], None], name: str) -> bool:
        """The dice choose what is impossible now and then, and the apiserver may be away."""
        with contextlib.suppress(api.ApiError, urllib3.exceptions.HTTPError):
            act(name)
            self.writes += 1
            return True
        return False

    def _create(self, name: str) -> None:
        meta = {"name": name, "labels": {LABEL: str(self.seed)}}
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": meta,
            "data": {"a": "x" * self.rng.randrange(900)},
        }
        self._note(self.kube.create("configmaps", body, self.namespace))

    def _change(self, name: str) -> None:
        value = {"data": {"n": str(self.rng.random())}}
        self._note(self.kube.patch("configmaps", name, value, self.namespace))

    def _delete(self, name: str) -> None:
        self.kube.delete("configmaps", name, self.namespace)

    def _swap(self, name: str) -> None:
        self._delete(name)
        self._create(name)

    def _relabel(self, name: str) -> None:
        """Out of the selector and back: a deletion and an addition for the watcher, of the same UID."""
        for value in ("elsewhere", str(self.seed)):
            changed = self.kube.patch("configmaps", name, {"metadata": {"labels": {LABEL: value}}}, self.namespace)
        self._note(changed)

    def _note(self, item: api.Object) -> None:
        if item["metadata"]["labels"].get(LABEL) == str(self.seed):
            self.versions.append(item["metadata"]["resourceVersion"])


@dataclass(slots=True)
class Trouble:
    """Does one nasty thing after the other to one way."""

    way: proxy.FaultProxy
    source: Forgetful
    rng: random.Random
    relisting: bool
    """Whether the server may forget our position. Where it never does, every single write must be seen."""
    used: list[faults.Rule] = field(default_factory=list)
    pause: threading.Event = field(default_factory=threading.Event)

    def make(self, seconds: float) -> None:
        """Until the time is up."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            acts = [*[self._rule] * 5, self.way.cut_all, self._refuse, *([self._forget] if self.relisting else [])]
            act = self.rng.choice(acts)
            act()
            self.pause.wait(min(left, self.rng.uniform(0.05, 0.5)))
            if self.rng.random() < 0.5:
                self.way.rules.clear()
        self.way.rules.clear()

    def _rule(self) -> None:
        verb: faults.Verb | None = self.rng.choice(["list", "watch", None])
        chance, count = self.rng.choice([0.5, 1.0]), self.rng.choice([1, 2, 5, None])
        fault = _fault(self.rng)
        if fault == faults.Answer(410) and not self.relisting:
            fault = faults.Cut(0)
        self.used.append(self.way.rules.add(fault, verb=verb, probability=chance, count=count))
        if self.rng.random() < 0.4:
            self.way.cut_all()

    def _refuse(self) -> None:
        self.way.refuse()
        self.pause.wait(self.rng.uniform(0.05, 0.8))
        self.way.accept()

    def _forget(self) -> None:
        self.source.forget.set()
        self.way.cut_all()


def _fault(rng: random.Random) -> faults.Fault:
    some = rng.choice([None, 0, rng.randrange(1, 1500)])
    choices: list[faults.Fault] = [
        *[faults.Cut(some)] * 2,
        *[faults.Hold(some)] * 2,
        faults.Slow(rng.choice([300, 3000])),
        faults.Delay(rng.uniform(0.05, 1.0)),
        faults.Blackhole(),
        faults.Answer(410),
        faults.Answer(429, retry_after=1),
        faults.Answer(rng.choice([500, 503, 504])),
        faults.Answer(rng.choice([401, 403])),
    ]
    return rng.choice(choices)
