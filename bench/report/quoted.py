"""Figures that documents quote, and where they stand: `python -m bench.report.quoted` writes them anew.

A document marks each as `<!-- =plan.small.pass -->0.3 ms<!-- / -->`, of which a reader sees the figure. So no page
can tell another one than the report, and a test says which page does.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any, Final

import msgspec

ROOT: Final = Path(__file__).parents[2]
RESULTS: Final = ROOT / "bench" / "results"
MARK: Final = re.compile(r"<!-- =(?P<name>[\w.-]+) -->(?P<text>.*?)<!-- / -->", re.DOTALL)
Found = Iterator[tuple[str, str]]


def documents(root: Path = ROOT) -> list[Path]:
    """Pages that may quote a figure."""
    return [*sorted(root.glob("*.md")), *sorted((root / "docs").glob("*.md"))]


def renewed(text: str, known: Mapping[str, str]) -> str:
    """The same text with the figures as they are known."""
    return MARK.sub(lambda it: f"<!-- ={it['name']} -->{known[it['name']]}<!-- / -->", text)


def figures(folder: Path = RESULTS) -> dict[str, str]:
    """By name, as they are quoted."""

    def read(name: str) -> Any:
        return msgspec.json.decode((folder / f"{name}.json").read_bytes())

    return {
        **dict(_plan(read("plan"))),
        **dict(_growth(read("growth"))),
        **dict(_scale(read("scale"))),
        **dict(_evictions(read("evictions"))),
        **dict(_quality(read("quality"))),
        **dict(_thrash(read("thrash"))),
        **dict(_interruption(read("interruption"))),
        **dict(_webhook(read("webhook"))),
        **dict(_extender(read("extender"))),
    }


def _plan(found: Any) -> Found:
    for size, it in zip(("small", "large"), found.values(), strict=False):
        yield f"plan.{size}.pass", f"{it['steady plan ms']:.1f} ms"
        yield f"plan.{size}.memory", f"{it['MiB resident']:.0f} MiB"
        yield f"plan.{size}.peak", f"{it['MiB peak']:.0f}"
        yield f"plan.{size}.event", f"{it['event to plan ms']:.0f} ms"
        yield f"plan.{size}.list", f"{it['list seconds']:.1f} s"
        yield f"plan.{size}.megabytes", f"{it['list MB']:.0f} MB"
        yield f"plan.{size}.sync", f"{it['sync seconds']:.1f} s"
        yield f"plan.{size}.over-list", f"{it['sync over LIST']:.2f}"
        yield f"plan.{size}.start", f"{it['sync seconds'] + it['first plan ms'] / 1000:.1f} s"
        yield f"plan.{size}.peer.pass", f"{it['peer cycle ms']:,.0f} ms"
        yield f"plan.{size}.peer.memory", f"{it['peer MiB resident']:,.0f} MiB"
        yield f"plan.{size}.peer.start", f"{it['peer first cycle seconds']:.1f} s"


def _growth(found: Any) -> Found:
    for nodes, it in found["sizes"].items():
        yield f"growth.{nodes}.pass", f"{it['steady plan ms']:.2g} ms"
        yield f"growth.{nodes}.event", f"{it['event to plan ms']:.0f} ms"
        yield f"growth.{nodes}.memory", f"{it['MiB resident']:.0f} MiB"
    yield "growth.per-pod", f"{found['sizes']['5000']['bytes per pod'] / 1000:.1f} kB"
    yield "growth.pass", f"{found['exponents']['steady plan ms']:.2f}"
    yield "growth.event", f"{found['exponents']['event to plan ms']:.2f}"
    yield "growth.pass.filled", f"{found['filled exponents']['steady plan ms']:.2f}"


def _scale(found: Any) -> Found:
    yield "scale.derived", f"{found['derived events per second']:.0f}"
    yield "scale.flood", f"{round(found['flood events per second'], -2):,.0f}"
    yield "scale.core", f"{found['share of a core']:.2f}"
    for name in ("lag p50", "lag p99", "lag p100", "plan p50"):
        yield f"scale.{name.replace(' ', '.')}", f"{found[f'{name} ms']:.3g} ms"


def _evictions(found: Any) -> Found:
    yield "evictions.rate", f"{found['evictions per second']:.0f}"
    yield "evictions.best", f"{found['in the best second']:.0f}"


def _quality(found: Any) -> Found:
    names = {"guided": "guided", "hot": "hot pool preferred", "unguided": "unguided", "peer": "sigs descheduler"}
    for name, variant in names.items():
        some = [it for it in found if it["variant"] == variant]
        if some:
            yield from ((f"quality.{name}.{key}", value) for key, value in _played(some))


def _played(some: list[Any]) -> Found:
    total = {key: sum(it[key] or 0 for it in some) for key in ("evictions", "fewest", "on_target")}
    over = sorted(it["evictions"] / it["fewest"] for it in some)
    yield "balanced", f"{sum(it['highest_after'] <= it['line'] + 1e-9 for it in some)} of {len(some)}"
    yield "evictions", f"{total['evictions']:,}"
    yield "fewest", f"{total['fewest']:,}"
    yield "over", f"{median(over):.2f}"
    yield "over.range", f"{over[0]:.2f} to {over[-1]:.2f}"
    yield "on-target", f"{total['on_target']:,} of {total['evictions']:,}"
    yield "bounced", f"{sum(it['bounced'] for it in some):,}"
    yield "again", f"{sum(it['moved_again'] for it in some):,}"
    yield "hit-again", f"{sum(it['hit_again'] for it in some):,}"
    yield "down", f"{sum(it['too_many_down'] for it in some):,}"
    yield "lost", f"{sum(it['lost'] for it in some):,.0f}"
    fullest = [max(it[f"highest_{when}"] for it in some) for when in ("before", "after")]
    yield "fullest", f"{fullest[0]:.1f} -> {fullest[1]:.1f}"
    least, most = (pick(it["seconds"] for it in some) for pick in (min, max))
    yield "seconds", f"{least:.0f}-{most:.0f}" if round(least) < round(most) else f"{least:.0f}"


def _thrash(found: Any) -> Found:
    for it in found:
        yield f"thrash.{'peer' if 'sigs' in it['variant'] else 'ours'}", f"{it['per_hour']:,.0f}"


def _interruption(found: Any) -> Found:
    for it in found:
        name = it["variant"].replace(" ", "-")
        yield f"interruption.{name}.first", "" if it["first_eviction"] is None else f"{it['first_eviction']:g}"
        yield f"interruption.{name}.most", f"{it['most_ready']:.1f}"
        yield f"interruption.{name}.all", f"{it['all_ready']:.1f}"
        yield f"interruption.{name}.lost", f"{it['lost']:,.1f}" if it["lost"] < 1000 else f"{it['lost']:,.0f}"
        yield f"interruption.{name}.worst", f"{it['worst']:.0f}"


def _webhook(found: Any) -> Found:
    for name, value in found["compared"].items():
        yield f"webhook.{re.sub(r'[^a-z0-9]+', '-', name.lower())}", f"{value['middle']:.2f}"
    rounds = found["rounds"]
    for name in sorted(rounds[0]["floods"]):
        key = re.sub(r"[^a-z0-9]+", "-", name.lower())
        yield f"webhook.{key}", f"{median(it['floods'][name]['requests/s'] for it in rounds):,.0f}"
    for name in rounds[0]["creations"]:
        added = [it["creations"][name]["p99_ms"] - it["creations"]["no webhook"]["p99_ms"] for it in rounds]
        yield f"webhook.added.{name.replace(' ', '-').lower()}", f"{median(added):.1f} ms"


def _extender(found: Any) -> Found:
    without = found["pods_per_second"]["no extender"]
    for name, values in found["pods_per_second"].items():
        key = name.replace(" ", "-")
        yield f"extender.{key}", _spread(values, "g")
        yield f"extender.{key}.over", _spread([a / b for a, b in zip(values, without, strict=True)], ".2f")
    for what in ("percent_on_spot", "percent_on_target"):
        for name, values in found[what].items():
            key = re.sub(r"[^a-z0-9]+", "-", name.lower())
            yield f"extender.{what.rpartition('_')[2]}.{key}", _spread(values, "g")


def _spread(values: list[float], form: str) -> str:
    return f"{median(values):{form}} ({min(values):{form}} to {max(values):{form}})"


def main() -> int:
    """Write every page whose figures have changed."""
    known = figures()
    for path in documents():
        before = path.read_text()
        after = renewed(before, known)
        if after != before:
            path.write_text(after)
            sys.stdout.write(f"{path.relative_to(ROOT)}: {len(MARK.findall(after))} figures\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
