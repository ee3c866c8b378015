"""Names with units, closed label sets, and numbers that cannot grow without bound."""

import re
from typing import Any

import pytest
from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families

from telemetry import meter, metrics
from telemetry.metrics import LABELS, Kind, Metric


@pytest.mark.parametrize("metric", list(Metric), ids=lambda metric: metric.name)
def test_declarations(metric: Metric) -> None:
    spec = metric.value
    assert re.fullmatch(r"[a-z][a-z0-9_]+", spec.name)
    assert spec.name.endswith("_total") == (spec.kind is Kind.COUNTER)
    assert (spec.kind is Kind.HISTOGRAM) == bool(spec.buckets)
    if spec.kind is Kind.HISTOGRAM:
        assert spec.name.endswith("_seconds")
        assert list(spec.buckets) == sorted(set(spec.buckets))
    assert set(spec.labels.values()) <= set(LABELS)
    assert spec.meaning.endswith(".")
    assert spec.series <= 5000, "the largest is requests by resource, verb and answer"


def test_no_label_names_a_pod_or_a_node() -> None:
    names = {name for metric in Metric for name in metric.value.labels}
    assert not names & {"pod", "node", "name", "workload"}
    named = {metric for metric in Metric if set(metric.value.labels.values()) & set(metrics.BOUNDED)}
    assert named == {Metric.NAMESPACE_SPOT_SHARE}, "and a namespace one that is bounded"


def test_names_of_the_cluster_are_set_as_a_whole_and_bounded() -> None:
    numbers = meter.Meter(strict=False)
    for first in range(0, 1000, 200):
        numbers.fill(Metric.NAMESPACE_SPOT_SHARE, {f"ns-{first + n}": 0.5 for n in range(200)})
    shown = numbers.render()[1].count(b"spotshift_namespace_spot_share_ratio{")
    assert shown == Metric.NAMESPACE_SPOT_SHARE.value.series == 51
    numbers.fill(Metric.NAMESPACE_SPOT_SHARE, {"only": 0.25})
    assert numbers.render()[1].count(b"spotshift_namespace_spot_share_ratio{") == 1
    assert numbers.read(Metric.NAMESPACE_SPOT_SHARE, namespace="only") == 0.25


@pytest.mark.parametrize("metric", [Metric.NODES, Metric.SPOT_SHARE, Metric.PASSES_FAILED])
def test_only_such_gauges_are_filled(metric: Metric) -> None:
    with pytest.raises(meter.MisuseError):
        meter.Meter(strict=True).fill(metric, {})


def test_too_many_names_are_a_misuse() -> None:
    with pytest.raises(meter.MisuseError):
        meter.Meter(strict=True).fill(Metric.NAMESPACE_SPOT_SHARE, {str(n): 0.0 for n in range(52)})


def test_a_series_that_was_looked_up_once_counts_like_any_other() -> None:
    numbers = meter.Meter(strict=True)
    count, observe = (
        numbers.counting(Metric.ADMISSIONS, result="patched"),
        numbers.observing(Metric.ADMISSION_SECONDS),
    )
    for _ in range(2):
        count(1)
        observe(0.002)
    numbers.inc(Metric.ADMISSIONS, result="patched")
    numbers.observe(Metric.ADMISSION_SECONDS, 0.002)
    assert numbers.read(Metric.ADMISSIONS, result="patched") == numbers.read(Metric.ADMISSION_SECONDS) == 3
    assert b'spotshift_admission_seconds_bucket{le="0.0025"} 3.0' in numbers.render()[1]


def test_no_series_of_another_kind_is_looked_up() -> None:
    strict, lenient = meter.Meter(strict=True), meter.Meter(strict=False)
    with pytest.raises(meter.MisuseError):
        strict.counting(Metric.ADMISSION_SECONDS)
    with pytest.raises(meter.MisuseError):
        strict.observing(Metric.ADMISSIONS, result="patched")
    before = lenient.render()[1]
    lenient.counting(Metric.ADMISSION_SECONDS)(1)
    lenient.observing(Metric.ADMISSIONS, result="patched")(1)
    assert lenient.render()[1] == before, "in production it is counted nowhere"


def test_every_set_is_used_and_does_not_hold_other() -> None:
    assert {source for metric in Metric for source in metric.value.labels.values()} == set(LABELS)
    assert all(metrics.OTHER not in values for values in LABELS.values())


def test_numbers() -> None:
    numbers = meter.Meter(strict=True)
    numbers.inc(Metric.PROPOSALS, strategy="SpotMix")
    numbers.inc(Metric.PROPOSALS, 2, strategy="SpotMix")
    numbers.set(Metric.NODES, 7, capacity="spot")
    numbers.observe(Metric.PASS_SECONDS, 0.02)
    numbers.follow(Metric.LEADER, lambda: 1.0)
    assert numbers.read(Metric.PROPOSALS, strategy="SpotMix") == 3
    assert numbers.read(Metric.NODES, capacity="spot") == 7
    assert numbers.read(Metric.PASS_SECONDS) == 1
    assert numbers.read(Metric.LEADER) == 1


MISUSES: dict[str, tuple[str, tuple[Any, ...], dict[str, str]]] = {
    "value outside the set": ("inc", (Metric.PROPOSALS,), {"strategy": "Nonsense"}),
    "missing label": ("inc", (Metric.PROPOSALS,), {}),
    "unknown label": ("inc", (Metric.PASSES_FAILED,), {"strategy": "SpotMix"}),
    "wrong kind": ("set", (Metric.PROPOSALS, 1), {"strategy": "SpotMix"}),
    "observed counter": ("observe", (Metric.PASSES_FAILED, 1), {}),
}


@pytest.mark.parametrize(("verb", "arguments", "labels"), MISUSES.values(), ids=MISUSES.keys())
def test_misuse_raises_in_tests_and_only_there(verb: str, arguments: tuple[Any, ...], labels: dict[str, str]) -> None:
    with pytest.raises(meter.MisuseError):
        getattr(meter.Meter(strict=True), verb)(*arguments, **labels)
    getattr(meter.Meter(strict=False), verb)(*arguments, **labels)


def test_an_unknown_value_is_other_in_production() -> None:
    numbers = meter.Meter(strict=False)
    for n in range(1000):
        numbers.inc(Metric.PROPOSALS, strategy=f"made-up-{n}")
    assert numbers.read(Metric.PROPOSALS, strategy=metrics.OTHER) == 1000
    assert numbers.render()[1].count(b"spotshift_proposals_total{") == 1


def test_a_set_can_be_widened_at_the_start() -> None:
    numbers = meter.Meter(strict=True, more={"strategy": {"ThirdParty"}})
    numbers.inc(Metric.PROPOSALS, strategy="ThirdParty")
    assert numbers.read(Metric.PROPOSALS, strategy="ThirdParty") == 1


def test_meters_share_nothing_and_leave_the_global_registry_alone() -> None:
    before = {family.name for family in REGISTRY.collect()}
    one, other = meter.Meter(strict=True), meter.Meter(strict=True)
    one.inc(Metric.PASSES_FAILED)
    assert other.read(Metric.PASSES_FAILED) == 0
    assert {family.name for family in REGISTRY.collect()} == before


def test_what_is_rendered_can_be_parsed_and_carries_the_prefix() -> None:
    numbers = meter.Meter(strict=True)
    numbers.inc(Metric.PASSES_FAILED)
    content_type, body = numbers.render()
    assert content_type.startswith("text/plain")
    families = list(text_string_to_metric_families(body.decode()))
    assert families
    assert all(family.name.startswith(metrics.PREFIX) for family in families)
    assert numbers.render("application/openmetrics-text")[0].startswith("application/openmetrics-text")


def test_process_metrics_on_request() -> None:
    body = meter.Meter(strict=True, process=True).render()[1]
    assert b"process_resident_memory_bytes" in body
    assert b"python_gc_objects_collected_total" in body
