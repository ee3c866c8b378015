"""The figures of each benchmark as rows of one table: ours, the peer's, their ratio, and the target if there is one.

Pure: from what a benchmark wrote as JSON. Nothing is measured or rounded away here but for the eye.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from bench.scale.__main__ import TARGET_MS
from bench.stopping import TARGET_SECONDS

SIGS: Final = "sigs descheduler"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    figure: str
    ours: str
    peer: str = ""
    ratio: str = ""
    target: str = ""
    met: bool | None = None
    """None where nothing was promised."""


Rows = Callable[[Any], Iterator[Row]]


def decode(found: Any) -> Iterator[Row]:
    """Beside the official client."""
    for figure, limit, ours, theirs, unit in (
        ("times faster", 20, "our seconds", "official seconds", "s"),
        ("times faster, gc off", 20, "our seconds, gc off", "official seconds, gc off", "s"),
        ("times smaller", 8, "our MiB kept", "official MiB kept", "MiB"),
    ):
        ratio = found[figure]["middle"]
        mine, peers = (f"{found[it]['middle']:.3g} {unit}" if it in found else "" for it in (ours, theirs))
        name = f"decoding pods: {figure}"
        yield Row(name, mine, f"official client {peers}", f"{ratio:.1f}", f">= {limit}", ratio >= limit)
    event, held = found["microseconds per event"]["middle"], found["fleet MiB resident"]["middle"]
    yield Row("one watch event", f"{event:.1f} us", target="< 40 us", met=event < 40)
    count = found["fleet pods"]["middle"]
    yield Row(f"memory with {count:.0f} pods decoded", f"{held:.0f} MiB", target="< 200 MiB", met=held < 200)


def plan(found: Any) -> Iterator[Row]:
    """Beside the sigs descheduler, on one apiserver."""
    for size, it in found.items():
        times, smaller = it.get("times faster"), it.get("times smaller")
        large = it["pods"] >= 150_000
        yield Row(
            f"{size}: a pass in which nothing has changed",
            f"{it['steady plan ms']:.1f} ms",
            _peer(it, "peer cycle ms", "ms"),
            f"{times:.1f}" if times else "",
            ">= 20 times faster",
            times >= 20 if times else None,
        )
        yield Row(
            f"{size}: memory",
            f"{it['MiB resident']:.0f} MiB",
            _peer(it, "peer MiB resident", "MiB"),
            f"{smaller:.1f}" if smaller else "",
            ">= 10 times smaller" if large else "",
            smaller >= 10 if large and smaller else None,
        )
        over = it["sync over LIST"]
        bare = f"one bare LIST {it['list seconds']:.1f} s"
        yield Row(f"{size}: first sync", f"{it['sync seconds']:.1f} s", bare, f"{over:.2f}", "<= 1.3", over <= 1.3)
        event = it["event to plan ms"]
        yield Row(f"{size}: event to plan", f"{event:.0f} ms", target="<= 250 ms", met=event <= 250)


def _peer(found: Mapping[str, float], name: str, unit: str) -> str:
    return f"{SIGS} {found[name]:.0f} {unit}" if name in found else ""


def quality(found: Any) -> Iterator[Row]:
    """Guided moves beside the sigs descheduler's on the same start."""
    guided, theirs = ([it for it in found if it["variant"] == name] for name in ("guided", SIGS))
    if not guided:
        return
    ours, peers = ([it["evictions"] / it["fewest"] for it in some] for some in (guided, theirs))
    name = "moves over the fewest after which nobody is too full, median"
    kept = median(ours) <= 1.05 and max(ours) <= 1.1
    shown = f"{median(ours):.3f}, worst {max(ours):.3f}"
    yield Row(name, shown, _of(peers, ".1f"), target="<= 1.05, worst 1.1", met=kept)
    for name, key in (
        ("pods back on a full node", "bounced"),
        ("pods moved twice", "moved_again"),
        ("workloads hit twice", "hit_again"),
    ):
        count = sum(it[key] for it in guided)
        yield Row(name, str(count), _sum(theirs, key), target="0", met=count == 0)
    yield Row("evictions", str(sum(it["evictions"] for it in guided)), _sum(theirs, "evictions"))
    balanced = (sum(map(_is_balanced, some)) for some in (guided, theirs))
    mine, other = (f"{count} of {len(some)}" for count, some in zip(balanced, (guided, theirs), strict=True))
    yield Row(
        "balanced clusters", mine, _named(other, theirs), target="all", met=mine == f"{len(guided)} of {len(guided)}"
    )
    yield Row("seconds until balanced, median", _until_balanced(guided), _named(_until_balanced(theirs), theirs))
    if "lost" in guided[0]:
        lost = f"{sum(it['lost'] for it in guided):.0f}"
        yield Row("Ready-replica-seconds lost", lost, _sum(theirs, "lost"))


def _until_balanced(results: Sequence[Mapping[str, Any]]) -> str:
    """Who never got there was stopped, which is no time until anything."""
    if not results:
        return ""
    middle = median(it["seconds"] for it in results)
    return f"{middle:.0f}" if any(map(_is_balanced, results)) else f"not within {middle:.0f}"


def _is_balanced(result: Mapping[str, Any]) -> bool:
    return bool(result["highest_after"] <= result["line"] + 1e-9)


def _of(values: Sequence[float], form: str) -> str:
    return f"{SIGS} {median(values):{form}}" if values else ""


def _sum(results: Sequence[Mapping[str, Any]], key: str) -> str:
    return _named(f"{sum(it.get(key, 0) for it in results):.0f}", results)


def _named(told: str, results: Sequence[object]) -> str:
    return f"{SIGS} {told}" if results else ""


def thrash(found: Any) -> Iterator[Row]:
    """Pods that would rather be where no room is."""
    by = {it["variant"]: it for it in found}
    ours, theirs = by["spotshift"], by.get(SIGS)
    peer = f"{SIGS} {theirs['per_hour']:.0f}" if theirs else ""
    name = "evictions per hour when nothing fits on spot"
    yield Row(name, f"{ours['per_hour']:.0f}", peer, target="0", met=ours["evictions"] == 0)


def interruption(found: Any) -> Iterator[Row]:
    """A lost spot node."""
    ours, *others = found
    for name, key in (
        ("first eviction after the notice, s", "first_eviction"),
        ("all Ready elsewhere, s", "all_ready"),
    ):
        told = ", ".join(f"{it['variant']} {_or_never(it[key])}" for it in others)
        yield Row(f"lost spot node: {name}", _or_never(ours[key]), told)
    told = ", ".join(f"{it['variant']} {it['lost']:.0f}" for it in others)
    least = min((it["lost"] for it in others), default=None)
    met = None if least is None else ours["lost"] <= least
    name = "lost spot node: Ready-replica-seconds lost"
    yield Row(name, f"{ours['lost']:.0f}", told, target="the least", met=met)


def _or_never(value: float | None) -> str:
    return "never" if value is None else f"{value:g}"


def webhook(found: Any) -> Iterator[Row]:
    """Beside two webhooks in Go."""
    wanted = {
        "requests/s beside lean Go": (">= 1", lambda it: it >= 1),
        "requests/s beside lean Go, every pod new": ("", None),
        "requests/s beside controller-runtime": ("", None),
        "p99 beside lean Go": ("< 1", lambda it: it < 1),
        "p99 ms at 500 requests/s": ("< 5", lambda it: it < 5),
        "added p99 beside lean Go": ("< 1.2", lambda it: it < 1.2),
        "added p99 beside controller-runtime": ("< 1.2", lambda it: it < 1.2),
    }
    for name, (target, judge) in wanted.items():
        value = found["compared"][name]
        figure, _, peer = name.partition(" beside ")
        told = f"{value['middle']:.2f} ({value['least']:.2f} to {value['most']:.2f})"
        ours, ratio = ("", told) if peer else (told, "")
        met = judge(value["middle"]) if judge else None
        yield Row(f"webhook: {figure}", ours, peer, ratio, target, met)


def throughput(found: Any) -> Iterator[Row]:
    """Pods created by an API server each second."""
    rounds = found["rounds"]
    ours = median(one["spotshift"] for one in rounds)
    for name, ratio in found["ours over"].items():
        peer = f"{name} {median(one[name] for one in rounds):.0f}"
        yield Row("pods created each second", f"{ours:.0f}", peer, f"{ratio['middle']:.2f}")


def growth(found: Any) -> Iterator[Row]:
    """From 100 to 5,000 nodes."""
    sizes = sorted(found["sizes"].items(), key=lambda it: int(it[0]))
    for figure, power in found["exponents"].items():
        told = ", ".join(f"{nodes} nodes {it[figure]:.3g}" for nodes, it in (sizes[0], sizes[-1]))
        steady = figure == "steady plan ms"
        target, met = ("exponent < 1", power < 1) if steady else ("", None)
        yield Row(f"growth by nodes: {figure}", told, "", f"exponent {power:.2f}", target, met)
        filled = found["filled exponents"][figure]
        yield Row(f"growth by pods on the same nodes: {figure}", "", "", f"exponent {filled:.2f}")


def scale(found: Any) -> Iterator[Row]:
    """The events of the largest cluster."""
    size = f"{found['nodes']:.0f} nodes, {found['pods']:.0f} pods, {found['told events per second']:.0f} events/s"
    lag = found["lag p99 ms"]
    minutes = found["seconds"] / 60
    yield Row(f"{size}, {minutes:g} min: lag p99", f"{lag:.0f} ms", target=f"< {TARGET_MS:g} ms", met=lag < TARGET_MS)
    yield Row("a pass under these events, median", f"{found['plan p50 ms']:.1f} ms")
    yield Row("events that one leader takes each second", f"{found['flood events per second']:.0f}")


def evictions(found: Any) -> Iterator[Row]:
    """What one leader carries out."""
    told = f"{found['evictions per second']:.0f}, best second {found['in the best second']:.0f}"
    yield Row(f"evictions each second, {found['evictions']:.0f} pods", told)


def stopping(found: Any) -> Iterator[Row]:
    """SIGTERM to exit. A webhook with a connection of an API server waits for it, so that no review is lost."""
    for name, seconds in found.items():
        worst = max(seconds)
        target = f"< {TARGET_SECONDS:g} s"
        yield Row(
            f"SIGTERM to exit, nobody connected: {name}, worst",
            f"{worst:.2f} s",
            target=target,
            met=worst < TARGET_SECONDS,
        )


def extender(found: Any) -> Iterator[Row]:
    """What the scheduler loses by asking."""
    without, asked = (found["pods_per_second"][name] for name in ("no extender", "asked by names"))
    ratio = f"{median(ours / theirs for ours, theirs in zip(asked, without, strict=True)):.2f}"
    peer = f"no extender {median(without):.0f}"
    yield Row("pods scheduled each second with the extender", f"{median(asked):.0f}", peer, ratio)


BY_NAME: Final[Mapping[str, Rows]] = {
    "decode": decode,
    "plan": plan,
    "growth": growth,
    "scale": scale,
    "evictions": evictions,
    "quality": quality,
    "thrash": thrash,
    "interruption": interruption,
    "webhook": webhook,
    "throughput": throughput,
    "extender": extender,
    "stopping": stopping,
}
