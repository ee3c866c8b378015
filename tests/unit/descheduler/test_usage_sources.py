"""Who is asked for usage, in which order, and what becomes of the answers of Prometheus."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cluster import errors
from cluster.prometheus import Sample
from descheduler import listing, scraped
from descheduler.measuring import Measuring
from descheduler.usage import Samples
from descheduler.usage_sources import Answer, PrometheusApi, Sources
from policy.settings import Settings
from policy.settings_strategies import ResourceOptimization, Strategies, UsageSource
from tests.unit.cluster import fake_api
from tests.unit.cluster.surroundings import World

PAGE = Path(__file__).parents[3] / "docs" / "strategies.md"
AT = datetime(2026, 6, 1, 12, tzinfo=UTC)
GIB = 1 << 30
Rows = Iterable[Sample]


def row(value: float, **labels: str) -> Sample:
    return Sample(labels, value)


def on(node: str, pod: str, value: float) -> Sample:
    return row(value, node=node, namespace="default", pod=pod, instance="10.0.0.1:10250")


TAKEN = (row(AT.timestamp(), node="n0", instance="10.0.0.1:10250"), row(AT.timestamp(), node="n1"))
USED: Mapping[str, Rows] = {
    scraped.NODE_CPU: (row(3.5, node="n0"), row(0.5, node="n1")),
    scraped.NODE_MEMORY: (row(8 * GIB, node="n0"), row(GIB, node="n1")),
    scraped.POD_CPU: (on("n0", "a", 1.25), on("n0", "b", 0.5)),
    scraped.POD_MEMORY: (on("n0", "a", 2 * GIB), on("n0", "b", GIB)),
    scraped.TAKEN_AT: TAKEN,
}


def read(changed: Mapping[str, Rows] = {}) -> Samples:
    found, made = scraped.read({**USED, **changed}.__getitem__), Samples()
    made.add_nodes(found.nodes)
    made.set_pods(found.pods)
    return made


def test_answers_of_prometheus_have_the_shapes_of_the_metrics_api() -> None:
    found = read()
    assert found.node("n0") == (3500, 8 * GIB)
    assert found.node("n1") == (500, GIB)
    assert found.pod(("default", "a")) == (1250, 2 * GIB)
    assert found.age("n0", AT + timedelta(seconds=7)) == timedelta(seconds=7)


WITHOUT_ROOT: dict[str, Rows] = {scraped.NODE_CPU: (), scraped.NODE_MEMORY: ()}
FOR_NODE: dict[str, tuple[dict[str, Rows], tuple[float, float] | None]] = {
    "no root cgroup: its pods": (WITHOUT_ROOT, (1750, 3 * GIB)),
    "no memory of the root cgroup: its pods": ({scraped.NODE_MEMORY: ()}, (1750, 3 * GIB)),
    "a pod that left counts no longer": (
        {**WITHOUT_ROOT, scraped.POD_MEMORY: (on("n0", "a", 2 * GIB),)},
        (1250, 2 * GIB),
    ),
    "a pod on two nodes": (
        {
            **WITHOUT_ROOT,
            scraped.POD_CPU: (on("n0", "a", 1.0), on("n1", "a", 2.0)),
            scraped.POD_MEMORY: (on("n0", "a", 5.0), on("n1", "a", 6.0)),
        },
        (1000, 5),
    ),
    "the name as instance": (
        {
            scraped.NODE_CPU: (row(2, instance="n0"),),
            scraped.NODE_MEMORY: (row(7, instance="n0"),),
            scraped.TAKEN_AT: (row(AT.timestamp(), instance="n0"),),
        },
        (2000, 7),
    ),
    "scraped twice": (
        {scraped.NODE_CPU: (row(2, node="n0", instance="a"), row(1, node="n0", instance="b"))},
        (2000, 8 * GIB),
    ),
    "never heard of": ({scraped.TAKEN_AT: ()}, None),
    "a time that is none": ({scraped.TAKEN_AT: (row(1e30, node="n0"),)}, None),
    "no label": (
        {**dict.fromkeys((scraped.POD_CPU, scraped.POD_MEMORY), ()), scraped.NODE_CPU: (row(2), row(2, node=""))},
        None,
    ),
    "pods without a label": ({**WITHOUT_ROOT, scraped.POD_CPU: (row(2, node="n0", pod="a"),)}, None),
    "more than there is": ({**WITHOUT_ROOT, scraped.POD_CPU: (on("n0", "a", 1e300),)}, None),
}


@pytest.mark.parametrize(("changed", "expected"), FOR_NODE.values(), ids=FOR_NODE.keys())
def test_what_a_node_uses(changed: dict[str, Rows], expected: tuple[float, float] | None) -> None:
    assert read(changed).node("n0") == expected


def test_a_prometheus_without_such_series_does_not_answer() -> None:
    empty = fake_api.Answer(body={"status": "success", "data": {"resultType": "vector", "result": []}})
    with fake_api.running() as api:
        api.script = lambda _: empty
        with pytest.raises(errors.NotFound):
            PrometheusApi(api.url).ask()
        assert [it.query["query"] for it in api.seen] == list(scraped.QUERIES)


def test_the_queries_are_the_documented_ones() -> None:
    assert "\n".join(scraped.QUERIES) in PAGE.read_text()


# ---- who is asked


@dataclass
class Asked:
    """Both sources; those in `silent` do not answer."""

    silent: Collection[str] = ()
    order: list[str] = field(default_factory=list)
    used: float = 1.0

    def source(self, name: str, by: UsageSource) -> "One":
        return One(lambda: self._answer(name, by))

    def prometheus(self, address: str) -> "One":
        return self.source(address, UsageSource.PROMETHEUS)

    @property
    def sources(self) -> Sources:
        return Sources(self.source("metrics", UsageSource.METRICS), self.prometheus)

    def _answer(self, name: str, by: UsageSource) -> Answer:
        self.order.append(name)
        if name in self.silent:
            raise errors.Unreachable(f"no answer of {name}")
        cpu, memory = (row(self.used, node="n0"),), (row(5.0, node="n0"),)
        at = (row(AT.timestamp() + len(self.order), node="n0"),)
        asked = {**USED, scraped.NODE_CPU: cpu, scraped.NODE_MEMORY: memory, scraped.TAKEN_AT: at}
        return Answer(scraped.read(asked.__getitem__).nodes, (), by)


@dataclass
class One:
    ask: Callable[[], Answer]


def own(source: UsageSource, address: str = "") -> ResourceOptimization:
    return ResourceOptimization(source=source, prometheus_url=address)


ADDRESS = "http://prom"
ORDER: dict[str, tuple[ResourceOptimization, set[str], list[str], UsageSource | None]] = {
    "auto": (own(UsageSource.AUTO, ADDRESS), set(), ["metrics"], UsageSource.METRICS),
    "auto, no metrics": (
        own(UsageSource.AUTO, ADDRESS),
        {"metrics"},
        ["metrics", ADDRESS],
        UsageSource.PROMETHEUS,
    ),
    "auto, nobody": (own(UsageSource.AUTO, ADDRESS), {"metrics", ADDRESS}, ["metrics", ADDRESS], None),
    "auto without an address": (own(UsageSource.AUTO), {"metrics"}, ["metrics"], None),
    "metrics": (own(UsageSource.METRICS, ADDRESS), {"metrics"}, ["metrics"], None),
    "prometheus": (own(UsageSource.PROMETHEUS, ADDRESS), set(), [ADDRESS], UsageSource.PROMETHEUS),
    "prometheus is silent": (own(UsageSource.PROMETHEUS, ADDRESS), {ADDRESS}, [ADDRESS], None),
}


@pytest.mark.parametrize(("settings", "silent", "order", "by"), ORDER.values(), ids=ORDER.keys())
def test_the_first_that_answers(
    settings: ResourceOptimization, silent: set[str], order: list[str], by: UsageSource | None
) -> None:
    asked = Asked(silent)
    if by is None:
        with pytest.raises(errors.Unreachable, match=order[-1]):
            asked.sources.ask(settings)
    else:
        assert asked.sources.ask(settings).by is by
    assert asked.order == order


@dataclass
class Desk:
    """Measuring under settings that change."""

    asked: Asked = field(default_factory=Asked)
    world: World = field(default_factory=World)
    own: ResourceOptimization = field(default_factory=ResourceOptimization)

    def __post_init__(self) -> None:
        self.measuring = Measuring(self.asked.sources, self._settings, runtime=self.world.runtime)

    def _settings(self) -> Settings:
        return Settings(strategies=Strategies(resource_optimization=self.own))

    def ask(self, *, used: float = 1.0, silent: Collection[str] = ()) -> Samples | None:
        self.asked.used, self.asked.silent = used, silent
        self.measuring.ask()
        return self.measuring.usage()


def cpu(found: Samples | None) -> float:
    measured = None if found is None else found.node("n0")
    assert measured is not None
    return measured.cpu


def test_settings_may_name_another_source_at_any_time() -> None:
    """No mean over what two sources said, and nothing is forgotten before the other one answers."""
    desk = Desk()
    assert cpu(desk.ask(used=1)) == 1000
    assert cpu(desk.ask(used=3)) == 2000
    desk.own = own(UsageSource.PROMETHEUS, ADDRESS)
    assert cpu(desk.ask(silent={ADDRESS})) == 2000
    assert cpu(desk.ask(used=4)) == 4000
    desk.own = own(UsageSource.PROMETHEUS, "http://other")
    assert cpu(desk.ask(used=5)) == 5000
    assert desk.asked.order == ["metrics", "metrics", ADDRESS, ADDRESS, "http://other"]


def test_a_source_that_stands_in_continues_the_mean() -> None:
    desk = Desk(own=own(UsageSource.AUTO, ADDRESS))
    assert cpu(desk.ask(used=1)) == 1000
    assert cpu(desk.ask(used=3, silent={"metrics"})) == 2000


def test_who_answers_is_told_once_for_each_change() -> None:
    desk = Desk(own=own(UsageSource.PROMETHEUS, "http://reader:secret@prom"))
    silent = {"http://reader:secret@prom"}
    for now in (silent, silent, (), (), silent, silent):
        desk.ask(silent=now)
    assert desk.world.events() == ["USAGE_UNKNOWN", "USAGE_MEASURED", "USAGE_UNKNOWN"]
    assert desk.world.lines[1]["cause"] == "prometheus"
    assert "secret" not in str(desk.world.lines)


def test_a_command_asks_the_same_sources() -> None:
    """Two fakes: the cluster, without a metrics server, and Prometheus."""

    def prometheus(seen: fake_api.Seen) -> fake_api.Answer:
        rows = [{"metric": dict(it.labels), "value": [0, str(it.value)]} for it in USED[seen.query["query"]]]
        return fake_api.Answer(body={"status": "success", "data": {"resultType": "vector", "result": rows}})

    with fake_api.running() as cluster, fake_api.running() as other:
        cluster.script, other.script = lambda _: fake_api.status(404, "NotFound"), prometheus

        def found(chosen: ResourceOptimization) -> Samples | None:
            settings = Settings(strategies=Strategies(resource_optimization=chosen))
            return listing.usage(cluster.client(), settings)

        assert cpu(found(own(UsageSource.AUTO, other.url))) == 3500
        assert cpu(found(own(UsageSource.PROMETHEUS, other.url))) == 3500
        assert found(own(UsageSource.METRICS, other.url)) is None
        assert found(own(UsageSource.PROMETHEUS, "http://127.0.0.1:1")) is None
