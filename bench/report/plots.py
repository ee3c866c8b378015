"""Which plots are drawn of which figures.   Pure: JSON in, SVG out, by the name of the file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from statistics import median
from typing import Any, Final

from bench.report import svg
from bench.report.rows import SIGS

Plot = tuple[str, str, str]
"""Name of the file, what it shows, and the SVG."""


def plan(found: Any) -> Iterator[Plot]:
    for it in found.values():
        if "peer cycle ms" not in it:
            continue
        size, name = f"{it['nodes']:,.0f} nodes, {it['pods']:,.0f} pods", f"plan-{it['nodes']:.0f}"
        cycle = {"spotshift": it["steady plan ms"], SIGS: it["peer cycle ms"]}
        memory = {"spotshift": it["MiB resident"], SIGS: it["peer MiB resident"]}
        yield _bars(f"{name}-cycle", f"A pass in which nothing has changed, {size}", cycle, "ms")
        yield _bars(f"{name}-memory", f"Memory, {size}", memory, "MiB")


def growth(found: Any) -> Iterator[Plot]:
    sizes = sorted((int(nodes), it) for nodes, it in found["sizes"].items())
    series = {
        name: [(it["pods"], it[figure]) for _, it in sizes]
        for figure, name in (
            ("steady plan ms", "pass, ms"),
            ("event to plan ms", "event, ms"),
            ("MiB resident", "MiB"),
        )
    }
    title = "How cost grows with the cluster"
    yield "growth", title, svg.lines(title, series, across="pods (thirty on each node)", up="ms, MiB")


def quality(found: Any) -> Iterator[Plot]:
    variants = list(dict.fromkeys(it["variant"] for it in found))

    def mean(variant: str, key: str) -> float:
        values = [it[key] for it in found if it["variant"] == variant]
        return float(sum(values)) / len(values)

    evictions = {name: mean(name, "evictions") for name in variants}
    yield _bars("quality-evictions", "Evictions until four full nodes are relieved, mean of the seeds", evictions, "")
    bounced = {name: mean(name, "bounced") for name in variants}
    yield _bars("quality-bounced", "Pods that came back onto a full node, mean of the seeds", bounced, "")


def thrash(found: Any) -> Iterator[Plot]:
    values = {it["variant"]: it["per_hour"] for it in found}
    yield _bars("thrash", "Evictions per hour when nothing fits on spot", values, "")


def interruption(found: Any) -> Iterator[Plot]:
    lost = {it["variant"]: it["lost"] for it in found}
    yield _bars("interruption-lost", "Ready-replica-seconds lost with a spot node", lost, "s")


def webhook(found: Any) -> Iterator[Plot]:
    floods: dict[str, dict[float, list[float]]] = {}
    for one in found["rounds"]:
        for name, it in one["floods"].items():
            who, _, count = name.rpartition(", ")
            floods.setdefault(who, {}).setdefault(float(count.split()[0]), []).append(it["requests/s"])
    series = {who: [(count, median(values)) for count, values in sorted(by.items())] for who, by in floods.items()}
    title = "Reviews answered each second, on one core"
    yield "webhook", title, svg.lines(title, series, across="connections", up="requests/s")


def throughput(found: Any) -> Iterator[Plot]:
    names = sorted(found["rounds"][0], key=lambda it: it != "spotshift")
    values = {name: median(one[name] for one in found["rounds"]) for name in names}
    yield _bars("throughput", "Pods that an API server creates each second", values, "")


def _bars(name: str, title: str, values: Mapping[str, float], unit: str) -> Plot:
    return name, title, svg.bars(title, values, unit)


BY_NAME: Final[Mapping[str, Callable[[Any], Iterator[Plot]]]] = {
    "plan": plan,
    "growth": growth,
    "quality": quality,
    "thrash": thrash,
    "interruption": interruption,
    "webhook": webhook,
    "throughput": throughput,
}
