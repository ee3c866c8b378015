"""Many elections at once: `python -m tests.integration.cluster.lease_campaign --schedules 100 --seed 1`."""

import secrets
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from testbed.bed import ControlPlane
from tests.integration.cluster import campaign_bed, lease_schedule
from tests.integration.cluster.lease_schedule import Result


def run(bed: ControlPlane, seeds: Sequence[int], *, parallel: int, folder: Path) -> list[Result]:
    """All schedules."""
    namespace = f"lease-{secrets.token_hex(3)}"
    bed.api().create("namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    try:
        with ThreadPoolExecutor(parallel) as pool:
            return list(pool.map(lambda seed: lease_schedule.run(bed, namespace, seed, folder), seeds))
    finally:
        bed.api().delete("namespaces", namespace)


def summary(results: Sequence[Result], seconds: float) -> str:
    """The figures of a campaign."""
    failed = [result for result in results if result.problems]
    lines = [f"seed {result.seed}: {problem}" for result in failed for problem in result.problems[:5]]
    fail_overs = [t for result in results for t in result.fail_overs]
    prompt = lease_schedule.TIMING.lease_seconds + lease_schedule.ONE_RETRY
    acts = sum((Counter(result.acts) for result in results), Counter())
    lines += [
        f"schedules {len(results)}, failed {len(failed)}, wall {seconds:.0f} s",
        f"terms {sum(r.terms for r in results)}, closest change of leader {min(r.closest for r in results):.3f} s",
        _spread("fail-over", fail_overs),
        f"fail-overs within the lease and one retry ({prompt:.2f} s): {sum(t <= prompt for t in fail_overs)}",
        _spread("hand-over", [t for r in results for t in r.hand_overs]),
        "acts " + ", ".join(f"{name} {count}" for name, count in sorted(acts.items())),
    ]
    return "\n".join(lines)


def _spread(name: str, times: Sequence[float]) -> str:
    ordered = sorted(times)
    if not ordered:
        return f"{name} none"
    return f"{name} {len(ordered)}: median {ordered[len(ordered) // 2]:.2f} s, max {ordered[-1]:.2f} s"


def main(arguments: Sequence[str]) -> int:
    """Parse, run, print."""
    options = campaign_bed.options(__doc__, schedules=100, parallel=6).parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        with campaign_bed.control_plane(options.home, Path(folder) / "bed") as bed:
            began = time.monotonic()
            results = run(
                bed,
                campaign_bed.seeds(options),
                parallel=options.parallel,
                folder=Path(folder),
            )
        sys.stdout.write(summary(results, time.monotonic() - began) + "\n")
    return 1 if any(result.problems for result in results) else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
