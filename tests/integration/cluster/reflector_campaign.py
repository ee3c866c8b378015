"""Many schedules at once: `python -m tests.integration.cluster.reflector_campaign --schedules 200 --seed 1`.

Starts a control plane of its own, restarts its apiserver now and then, and prints one line per failure
and a summary.
"""

import secrets
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from testbed import bed as beds
from testbed.bed import ControlPlane
from tests.integration.cluster import campaign_bed, reflector_schedule
from tests.integration.cluster.reflector_schedule import Result


def run(
    bed: ControlPlane, seeds: Sequence[int], *, parallel: int, folder: Path, restart_every: float | None = None
) -> list[Result]:
    """All schedules, with a restart of the apiserver every so many seconds if wanted."""
    namespace = f"reflector-{secrets.token_hex(3)}"
    bed.api().create("namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    done = threading.Event()
    restarter = threading.Thread(target=_restart, args=(bed, restart_every, done))
    restarter.start()
    try:
        with ThreadPoolExecutor(parallel) as pool:
            return list(pool.map(lambda seed: reflector_schedule.run(bed, namespace, seed, folder), seeds))
    finally:
        done.set()
        restarter.join()
        bed.api().delete("namespaces", namespace)


def _restart(bed: ControlPlane, every: float | None, done: threading.Event) -> None:
    hard = True
    while every is not None and not done.wait(every):
        bed.restart("kube-apiserver", grace_seconds=0.0 if hard else beds.STOP_GRACE_SECONDS)
        hard = not hard


def summary(results: Sequence[Result], seconds: float) -> str:
    """The figures of a campaign."""
    faults = sum((Counter(result.faults) for result in results), Counter())
    failed = [result for result in results if result.problems]
    allowed = reflector_schedule.REQUESTS_PER_SECOND
    rates = sorted(result.per_second for result in results)
    lines = [f"seed {result.seed}: {line}" for result in failed for line in sorted([*result.trace, *result.said])]
    lines += [f"seed {result.seed}: {problem}" for result in failed for problem in result.problems[:5]]
    lines += [
        f"schedules {len(results)}, failed {len(failed)}, wall {seconds:.0f} s",
        f"writes {sum(r.writes for r in results)}, deltas {sum(r.deltas for r in results)}",
        f"writes checked one by one {sum(r.checked for r in results)}",
        f"of them without a second list {sum(r.checked for r in results if not r.relists)}",
        f"relists {sum(r.relists for r in results)}, 410 in stream {sum(r.gone_in_stream for r in results)}",
        f"requests {sum(r.requests for r in results)}",
        f"requests per second: median {rates[len(rates) // 2]:.2f}, max {rates[-1]:.2f}, allowed {allowed:.1f}",
        "faults " + ", ".join(f"{name} {count}" for name, count in sorted(faults.items())),
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    """Parse, run, print."""
    parser = campaign_bed.options(__doc__, schedules=200, parallel=16)
    parser.add_argument("--restart-every", type=float, default=45.0, help="seconds; 0 means never")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        with campaign_bed.control_plane(options.home, Path(folder) / "bed") as bed:
            began = time.monotonic()
            results = run(
                bed,
                campaign_bed.seeds(options),
                parallel=options.parallel,
                folder=Path(folder),
                restart_every=options.restart_every or None,
            )
        sys.stdout.write(summary(results, time.monotonic() - began) + "\n")
    return 1 if any(result.problems for result in results) else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
