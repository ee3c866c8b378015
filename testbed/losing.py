"""The last act of `make demo`: every spot node gets its two-minute notice, and new ones come later."""

from collections.abc import Sequence

from rich.console import Console

from testbed import bed, objects, picture, settings, summary
from testbed.api import Api, Object
from testbed.objects import CAPACITY
from testbed.picture import NODE_CPU_MILLIS
from testbed.watching import all_ready, on, watch

NOTICE = {"key": "aws-node-termination-handler/spot-itn", "value": "demo", "effect": "NoSchedule"}
"""What the handler of the platform puts on a node that is about to be taken away."""


def play(client: Api, console: Console, app: str) -> int:
    """0 if every pod left in time, and those of the app came back when there was spot again."""
    settings.apply(
        client,
        limits={"minPodAge": "0s", "perNode": 20, "perWorkload": 6},
        enabledStrategies=["SpotInterruption", "SpotReclaim"],
        strategies={"SpotReclaim": {"minStay": "0s", "coolDown": "0s"}},  # 10m and 15m by default
    )
    spot = [it["metadata"]["name"] for it in client.list("nodes") if it["metadata"]["labels"][CAPACITY] == "spot"]
    wanted = len(client.list("pods", "default"))
    console.print(f"Every spot node gets its notice: {', '.join(spot)} will be gone in two minutes.")
    for name in spot:
        client.patch("nodes", name, {"spec": {"taints": [NOTICE]}})
    left = watch(client, console, (app,), lambda pods: all_ready(pods, wanted) and not on(spot, pods))
    console.print(
        f"All {wanted} pods are Ready on on-demand nodes {left.seconds:.1f} s after the notice."
        if left.reached
        else "Not every pod left in time."
    )
    fresh = _exchange(client, spot)
    console.print(f"The nodes are gone, and new ones have come: {', '.join(fresh)}.")
    count = len(picture.of(app, left.pods))

    def returned(pods: Sequence[Object]) -> bool:
        if not all_ready(pods, wanted) or len(on(fresh, picture.of(app, pods))) != count:
            return False
        return all(it.ended for it in summary.moves(client))

    back = watch(client, console, (app,), returned)
    on_spot = len(on(fresh, picture.of(app, back.pods)))
    console.print(f"{on_spot} of {count} pods of deployment/{app} are back on spot after {back.seconds:.1f} s.")
    return 0 if left.reached and back.reached else 1


def _exchange(client: Api, gone: list[str]) -> list[str]:
    """Take these nodes away and bring as many new ones."""
    for name in gone:
        client.delete("nodes", name)
    fresh = objects.pool("new-", on_demand=0, spot=len(gone), cpu=f"{NODE_CPU_MILLIS}m")
    bed.add_nodes(client, fresh)
    return [it["metadata"]["name"] for it in fresh]
