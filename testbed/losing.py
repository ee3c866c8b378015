"""The third part of `make demo`: every spot node gets its two-minute notice, and new ones come later."""

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext

from rich.console import Console
from rich.live import Live

from testbed import bed, objects, picture
from testbed.api import Api, Object
from testbed.levelling import SETTINGS, SYSTEM
from testbed.objects import CAPACITY
from testbed.picture import NODE_CPU_MILLIS

NOTICE = {"key": "aws-node-termination-handler/spot-itn", "value": "demo", "effect": "NoSchedule"}
"""What the handler of the platform puts on a node that is about to be taken away."""
POLICY = """\
apiVersion: spotshift.dev/v1alpha1
kind: Policy
reschedulingInterval: 1s      # 30s by default
limits: {minPodAge: 0s, perNode: 20, perWorkload: 6}
enabledStrategies: [SpotInterruption, SpotReclaim]
strategies:
  SpotReclaim: {minStay: 0s, coolDown: 0s}      # 10m and 15m by default, so that pods do not come and go
"""
TIMEOUT_SECONDS = 180.0


def play(client: Api, console: Console, app: str) -> int:
    """0 if every pod left in time, and those of the app came back when there was spot again."""
    client.patch("configmaps", SETTINGS, {"data": {"settings.yaml": POLICY}}, SYSTEM)
    nodes = client.list("nodes")
    spot = [it["metadata"]["name"] for it in nodes if it["metadata"]["labels"][CAPACITY] == "spot"]
    wanted = len(client.list("pods", "default"))
    console.print(f"Every spot node gets its notice: {', '.join(spot)} will be gone in two minutes.")
    for name in spot:
        client.patch("nodes", name, {"spec": {"taints": [NOTICE]}})
    began = time.monotonic()
    left = _watch(client, console, app, lambda pods: _ready(pods, wanted) and not _on(spot, pods))
    console.print(
        f"All {wanted} pods are Ready on on-demand nodes {time.monotonic() - began:.1f} s after the notice."
        if left
        else "Not every pod left in time."
    )
    for name in spot:
        client.delete("nodes", name)
    fresh = objects.pool("new-", on_demand=0, spot=len(spot), cpu=f"{NODE_CPU_MILLIS}m")
    bed.add_nodes(client, fresh)
    names = [it["metadata"]["name"] for it in fresh]
    console.print(f"The nodes are gone, and new ones have come: {', '.join(names)}.")
    began = time.monotonic()
    count = len(picture.of(app, client.list("pods", "default")))
    back = _watch(
        client,
        console,
        app,
        lambda pods: _ready(pods, wanted) and len(_on(names, picture.of(app, pods))) == count,
    )
    on_spot = len(_on(names, picture.of(app, client.list("pods", "default"))))
    console.print(
        f"{on_spot} of {count} pods of deployment/{app} are back on spot after {time.monotonic() - began:.1f} s."
    )
    return 0 if left and back else 1


def _watch(client: Api, console: Console, app: str, done: Callable[[Sequence[Object]], bool]) -> bool:
    """Redraw until it is so; without a terminal only the end is shown."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    show = Live(console=console, refresh_per_second=8) if console.is_terminal else nullcontext()
    with show as live:
        while True:
            nodes, pods = client.list("nodes"), client.list("pods", "default")
            reached = done(pods)
            if live is not None:
                live.update(picture.draw(nodes, pods, (app,)))
            if reached or time.monotonic() > deadline:
                break
            time.sleep(0.2)
    if live is None:
        console.print(picture.draw(nodes, pods, (app,)))
    return reached


def _ready(pods: Sequence[Object], wanted: int) -> bool:
    return len(pods) == wanted == picture.ready(pods)


def _on(names: Sequence[str], pods: Sequence[Object]) -> list[Object]:
    return [it for it in pods if it["spec"].get("nodeName") in names]
