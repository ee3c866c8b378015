"""Who measures what nodes and pods use: metrics.k8s.io and Prometheus, in the order that the settings want.

Asks and translates; nothing is kept but connections. All of them raise ApiError when they do not answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from cluster import errors
from cluster.client import Client
from cluster.objects import NodeMetrics, PodMetrics
from cluster.prometheus import Prometheus
from cluster.resources import NODEMETRICS, PODMETRICS
from descheduler import scraped
from policy.settings_strategies import ResourceOptimization, UsageSource

REQUEST_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What was measured, and by whom."""

    nodes: Sequence[NodeMetrics]
    pods: Sequence[PodMetrics]
    by: UsageSource = UsageSource.METRICS


class Source(Protocol):
    """Who measures. Raises ApiError."""

    def ask(self) -> Answer: ...


class MetricsApi:
    """metrics.k8s.io."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def ask(self) -> Answer:
        """Two lists."""
        nodes = self._client.list(NODEMETRICS, type=NodeMetrics, timeout=REQUEST_SECONDS)
        pods = self._client.list(PODMETRICS, type=PodMetrics, timeout=REQUEST_SECONDS)
        return Answer(nodes.items, pods.items)


class PrometheusApi:
    """The series of the kubelets, from Prometheus."""

    def __init__(self, address: str) -> None:
        self._prometheus = Prometheus(address, timeout=REQUEST_SECONDS)

    def ask(self) -> Answer:
        """One query for each series. A Prometheus that has none of them measures nothing."""
        found = scraped.read(self._prometheus.query)
        if not found.nodes:
            raise errors.NotFound("Prometheus has no container series with the label node, or instance, of a node")
        return Answer(found.nodes, found.pods, UsageSource.PROMETHEUS)


class Sources:
    """Those of a cluster. The settings may name others at any time; for one thread."""

    def __init__(self, metrics: Source, prometheus: Callable[[str], Source] = PrometheusApi) -> None:
        """`prometheus` makes the source of an address."""
        self._metrics = metrics
        self._connect = prometheus
        self._known: tuple[str, Source] | None = None

    def ask(self, own: ResourceOptimization) -> Answer:
        """The first of those the settings name that answers. Raises the ApiError of the last one."""
        *others, last = self._named(own)
        for source in others:
            try:
                return source.ask()
            except errors.ApiError:
                continue
        return last.ask()

    def _named(self, own: ResourceOptimization) -> list[Source]:
        """Who asks although requests are to count, wants to show what is used: the cluster's own answer."""
        found = [] if own.source is UsageSource.PROMETHEUS else [self._metrics]
        if own.source in {UsageSource.AUTO, UsageSource.PROMETHEUS} and own.prometheus_url:
            found.append(self._prometheus(own.prometheus_url))
        return found or [self._metrics]

    def _prometheus(self, address: str) -> Source:
        if self._known is None or self._known[0] != address:
            self._known = address, self._connect(address)
        return self._known[1]
