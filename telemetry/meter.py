"""Keeps the numbers of the declared metrics in a registry of its own and renders them for a scraper.

The only module that knows prometheus_client. A label value outside its closed set raises where `strict` is
set (in every test) and is counted as "other" in production, so a forgotten value can neither break a pass nor
grow the number of series.
"""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet

import prometheus_client as prom
from prometheus_client import exposition
from prometheus_client.metrics import MetricWrapperBase

from telemetry import metrics
from telemetry.metrics import Kind, Metric, Spec


class MisuseError(Exception):
    """A caller left the closed sets; only raised by strict meters."""


class Meter:
    """One per process, made by the composition root and handed down. Safe from any thread."""

    def __init__(
        self, *, strict: bool, more: Mapping[str, AbstractSet[str]] | None = None, process: bool = False
    ) -> None:
        """`more` widens sets that only the process knows at its start, such as third-party strategies.

        `process` adds the standard process and garbage-collection metrics; off in tests, where many meters
        live.
        """
        self._strict = strict
        self._sets = {name: values | set((more or {}).get(name, ())) for name, values in metrics.LABELS.items()}
        self._registry = prom.CollectorRegistry(auto_describe=True)
        self._series = {metric: _declare(metric.value, self._registry) for metric in Metric}
        self._found: dict[tuple[object, ...], MetricWrapperBase] = {}
        """Series that were asked for, by how: looking one up anew costs several times as much as counting."""
        if process:
            prom.ProcessCollector(registry=self._registry)
            prom.PlatformCollector(registry=self._registry)
            prom.GCCollector(registry=self._registry)

    def inc(self, metric: Metric, amount: float = 1.0, **labels: str) -> None:
        """Count up; counters only."""
        found = self._find(metric, Kind.COUNTER, labels)
        if isinstance(found, prom.Counter):
            found.inc(amount)

    def counting(self, metric: Metric, **labels: str) -> Callable[[float], None]:
        """What `inc` does to one series, for whoever counts it thousands of times a second: looked up once."""
        found = self._find(metric, Kind.COUNTER, labels)
        return found.inc if isinstance(found, prom.Counter) else _nowhere

    def observing(self, metric: Metric, **labels: str) -> Callable[[float], None]:
        """The same for `observe`."""
        found = self._find(metric, Kind.HISTOGRAM, labels)
        return found.observe if isinstance(found, prom.Histogram) else _nowhere

    def set(self, metric: Metric, value: float, **labels: str) -> None:
        """Set a gauge."""
        found = self._find(metric, Kind.GAUGE, labels)
        if isinstance(found, prom.Gauge):
            found.set(value)

    def fill(self, metric: Metric, values: Mapping[str, float]) -> None:
        """Set a gauge whose one label is a name in the cluster, as a whole: what is not told any more is gone. More
        names than the set may have are a misuse; in production they are left out.
        """
        spec, found = metric.value, self._series[metric]
        bound = metrics.BOUNDED.get(next(iter(spec.labels.values()), ""), 0)
        if len(spec.labels) != 1 or not bound or not isinstance(found, prom.Gauge):
            raise MisuseError(f"{metric.name} is not a gauge by names in the cluster")
        if len(values) > bound + 1 and self._strict:
            raise MisuseError(f"{metric.name}: {len(values)} names, at most {bound} and {metrics.OTHER}")
        found.clear()
        for name, value in list(values.items())[: bound + 1]:
            found.labels(name).set(value)

    def follow(self, metric: Metric, read: Callable[[], float], **labels: str) -> None:
        """Let a gauge ask at scrape time, so it cannot be stale: depths, and whether the lease is held."""
        found = self._find(metric, Kind.GAUGE, labels)
        if isinstance(found, prom.Gauge):
            found.set_function(read)

    def observe(self, metric: Metric, value: float, **labels: str) -> None:
        """Put one duration into a histogram."""
        found = self._find(metric, Kind.HISTOGRAM, labels)
        if isinstance(found, prom.Histogram):
            found.observe(value)

    def read(self, metric: Metric, **labels: str) -> float:
        """Current value of a counter or gauge, or the number of observations; for tests and status pages."""
        suffix = "_count" if metric.value.kind is Kind.HISTOGRAM else ""
        return self._registry.get_sample_value(metrics.PREFIX + metric.value.name + suffix, labels) or 0.0

    def render(self, accept: str = "") -> tuple[str, bytes]:
        """Content type and body in the format the scraper asks for."""
        encode, content_type = exposition.choose_encoder(accept)
        return content_type, encode(self._registry)

    def _find(self, metric: Metric, kind: Kind, labels: Mapping[str, str]) -> MetricWrapperBase | None:
        known = self._found.get((metric, kind, *labels.items()))
        if known is not None:
            return known
        spec = metric.value
        if spec.kind is not kind or set(labels) != set(spec.labels):
            if self._strict:
                raise MisuseError(
                    f"{metric.name} is a {spec.kind} with labels {sorted(spec.labels)}, got {sorted(labels)}"
                )
            return None
        found = self._series[metric]
        if labels:
            values = [self._value(metric, spec.labels[name], labels[name]) for name in spec.labels]
            found = found.labels(*values)
            if any(value not in self._sets[spec.labels[name]] for name, value in labels.items()):
                return found  # counted as "other"; whatever it was called must not be kept
        self._found[metric, kind, *labels.items()] = found
        return found

    def _value(self, metric: Metric, chosen: str, value: str) -> str:
        if value in self._sets[chosen] or value == metrics.OTHER:
            return value
        if self._strict:
            raise MisuseError(f"{metric.name}: {value!r} is not in the set {chosen}")
        return metrics.OTHER


def _nowhere(value: float) -> None:
    """Where a misuse is counted that production must not fail by."""
    del value


def _declare(spec: Spec, registry: prom.CollectorRegistry) -> MetricWrapperBase:
    name = metrics.PREFIX + spec.name
    labels = tuple(spec.labels)
    if spec.kind is Kind.COUNTER:
        return prom.Counter(name, spec.meaning, labels, registry=registry)
    if spec.kind is Kind.GAUGE:
        return prom.Gauge(name, spec.meaning, labels, registry=registry)
    return prom.Histogram(name, spec.meaning, labels, registry=registry, buckets=spec.buckets)
