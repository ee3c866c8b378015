"""`python -m bench.quality [--smoke] [--json FILE]`: the product beside the sigs descheduler, on the same start.

20 nodes with some 300 pods of mixed sizes, four of the nodes at 90 percent or more and the others at 40 or less. The
full nodes hold the image of every pod, so the scheduler likes them. Ours is installed from its manifests; `unguided`
is the same with the webhook scaled to nothing, `hot pool preferred` has pods that prefer the full nodes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec

from bench.quality import scene, stage
from bench.quality.scene import Sizes
from bench.quality.stage import Stage
from bench.quality.watched import Watched

FULL, SMOKE = Sizes(20, 4, 300), Sizes(6, 1, 60)
SEEDS, SMOKE_SEEDS = (1, 2, 3, 4, 5), (1,)
GUIDED, HOT, UNGUIDED, PEER = "guided", "hot pool preferred", "unguided", "sigs descheduler"
QUIET_SECONDS = 5.0
TIMEOUT_SECONDS = 120.0
ENDED = {"Completed", "Failed", "Cancelled"}


@dataclass(frozen=True, slots=True)
class Result:
    """One scene played once."""

    variant: str
    seed: int
    pods: int
    fewest: int
    """Moves without which somebody stays too full."""
    evictions: int
    on_target: int | None
    """Of ours, by its own records; None for others."""
    bounced: int
    """New pods on a node that was over the line already when they came."""
    moved_again: int
    hit_again: int
    """Workloads that lost a pod which had only just come."""
    too_many_down: int
    """Workloads that had more pods down at once than allowed."""
    highest_before: float
    highest_after: float
    line: float
    seconds: float
    lost: float = 0.0
    """Seconds of Ready replicas that were missing."""
    beside: tuple[str, ...] = ()
    """Moves of ours that ended otherwise than planned, in words."""

    @property
    def balanced(self) -> bool:
        return self.highest_after <= self.line + 1e-9


def play(on: Stage, seed: int, variant: str) -> Result:
    """Lay the scene out, let somebody act until it is quiet, and count."""
    wanted = scene.make(on.sizes, seed)
    on.lay_out(wanted, prefers_hot=variant == HOT)
    watched = Watched(on.kube, stage.NAMESPACE, {it.name: len(it.nodes) for it in wanted.workloads})
    watched.start()
    every = scene.names(on.sizes)
    before = watched.held(every)
    line = scene.line(before)
    watched.line = line.act
    if variant != PEER:
        on.mode("enforce")

    def quiet() -> bool:
        still_open = any(it.get("status", {}).get("phase") not in ENDED for it in on.moves())
        level = max(map(scene.load, watched.held(every).values())) <= line.act
        return level and watched.settled() and not still_open

    with on.peer(line) if variant == PEER else nullcontext():
        seconds = stage.wait_quiet(quiet, seconds=QUIET_SECONDS, timeout=TIMEOUT_SECONDS)
    watched.close()
    on.mode("observe")
    moves = [it["status"] for it in on.moves()]
    result = Result(
        variant=variant,
        seed=seed,
        pods=wanted.pods,
        fewest=scene.fewest(before),
        evictions=len(watched.left),
        on_target=None if variant == PEER else sum(bool(it.get("onTarget")) for it in moves),
        bounced=watched.onto_full,
        moved_again=watched.again,
        hit_again=len(watched.hit_again),
        too_many_down=sum(count > 0 for count in watched.over.values()),
        highest_before=max(map(scene.load, before.values())),
        highest_after=max(map(scene.load, watched.held(every).values())),
        line=line.act,
        seconds=seconds,
        lost=round(watched.lost, 1),
        beside=tuple(_told(it) for it in moves if not it.get("onTarget")),
    )
    on.clear()
    return result


def _told(status: Mapping[str, Any]) -> str:
    resolved, landed = status.get("resolved", {}), status.get("replacement", {})
    way = f"{resolved.get('sourceNode')} -> {resolved.get('targetNode')}, landed {landed.get('node')}"
    return f"{status.get('phase')}: {way}: {status.get('message')}"


def run(sizes: Sizes, seeds: Sequence[int], variants: Sequence[str]) -> Iterator[Result]:
    """All variants on one control plane.

    Unguided comes last, because its webhook does not come back; and once: it balances none, so each takes its whole
    time.
    """
    with stage.stage(sizes) as made:
        for variant in variants:
            if variant == UNGUIDED:
                made.stop("spotshift-webhook")
            for seed in seeds[:1] if variant == UNGUIDED else seeds:
                yield play(made, seed, variant)


def totals(results: Sequence[Result]) -> Mapping[str, float | bool | str]:
    """Over all seeds of one variant."""
    evictions, fewest = sum(it.evictions for it in results), sum(it.fewest for it in results)
    known = [it.on_target for it in results if it.on_target is not None]
    return {
        "balanced": f"{sum(it.balanced for it in results)} of {len(results)}",
        "evictions": evictions,
        "at least needed": fewest,
        "times the bound": round(evictions / fewest, 3),
        "on target": f"{sum(known)} of {evictions}" if known else "-",
        "onto a full node": sum(it.bounced for it in results),
        "moved again": sum(it.moved_again for it in results),
        "workloads hit again": sum(it.hit_again for it in results),
        "workloads with too many down": sum(it.too_many_down for it in results),
        "Ready-replica-seconds lost": round(sum(it.lost for it in results), 1),
        "fullest node, percent": f"{max(it.highest_before for it in results):.1f} -> "
        f"{max(it.highest_after for it in results):.1f}",
        "seconds": f"{min(it.seconds for it in results):.0f}-{max(it.seconds for it in results):.0f}",
    }


def table(results: Sequence[Result]) -> str:
    """One column for each variant."""
    variants = list(dict.fromkeys(it.variant for it in results))
    columns = {name: totals([it for it in results if it.variant == name]) for name in variants}
    lines = ["| | " + " | ".join(variants) + " |", "|---" * (len(variants) + 1) + "|"]
    rows = columns[variants[0]]
    lines += [f"| {row} | " + " | ".join(str(columns[name][row]) for name in variants) + " |" for row in rows]
    return "\n".join(lines)


def misses(results: Sequence[Result]) -> list[str]:
    """What the guided moves promise and did not keep."""
    guided = [it for it in results if it.variant == GUIDED]
    evictions, on_target = sum(it.evictions for it in guided), sum(it.on_target or 0 for it in guided)
    checks = {
        "every cluster is balanced": all(it.balanced for it in guided),
        "nothing goes back onto a full node": not any(it.bounced for it in guided),
        "99 percent on target": on_target >= 0.99 * evictions,
        "at most 1.1 times the fewest moves": evictions <= 1.1 * sum(it.fewest for it in guided),
        "nothing is moved twice": not any(it.moved_again for it in guided),
        "never more down than allowed": not any(it.too_many_down for it in guided),
    }
    return [name for name, kept in checks.items() if not kept]


def main(arguments: Sequence[str] | None = None) -> int:
    """Play, print, and end with 1 if a promise was not kept."""
    parser = argparse.ArgumentParser(prog="python -m bench.quality", description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="one small scene, ours alone")
    parser.add_argument("--seeds", type=int, nargs="+", help="instead of 1 to 5")
    parser.add_argument("--variants", nargs="+", choices=(GUIDED, HOT, PEER, UNGUIDED), help="not all of them")
    parser.add_argument("--json", type=Path, help="write every single result to this file")
    asked = parser.parse_args(arguments)
    sizes = SMOKE if asked.smoke else FULL
    seeds = asked.seeds or (SMOKE_SEEDS if asked.smoke else SEEDS)
    variants = [it for it in (GUIDED, HOT, PEER, UNGUIDED) if it in (asked.variants or ())]
    results = []
    for result in run(sizes, seeds, variants or ([GUIDED] if asked.smoke else [GUIDED, HOT, PEER, UNGUIDED])):
        results.append(result)
        print(msgspec.json.encode(asdict(result)).decode(), flush=True)
    print(table(results))
    if asked.json:
        asked.json.write_bytes(msgspec.json.format(msgspec.json.encode([asdict(it) for it in results])))
    missed = misses(results)
    for promise in missed:
        print(f"not kept: {promise}")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
