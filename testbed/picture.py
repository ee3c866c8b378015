"""Nodes and what is on them, as a table for a terminal."""

from collections.abc import Mapping, Sequence

from rich.console import Group
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from testbed import objects
from testbed.api import Object
from testbed.objects import CAPACITY, ZONE

POD_CPU_MILLIS, NODE_CPU_MILLIS = 250, 4000
WIDE = 100
"""Columns at which there is room for everything. A usual terminal has 80; a number cut off tells nothing."""


def percent(pods: int) -> int:
    """How much of a node's cpu so many pods ask for."""
    return pods * POD_CPU_MILLIS * 100 // NODE_CPU_MILLIS


def draw(nodes: Sequence[Object], pods: Sequence[Object], apps: Sequence[str], columns: int = WIDE) -> Group:
    """Nodes with their load and pods: ● is Ready, ○ is on its way."""
    bar_width = 20 if columns >= WIDE else 12
    table = Table(title="nodes and their pods", title_justify="left")
    for heading in ("node", "capacity", "zone", "cpu requested", *apps):
        table.add_column(heading, no_wrap=True)
    for node in nodes:
        labels: Mapping[str, str] = node["metadata"]["labels"]
        name = node["metadata"]["name"]
        here = [pod for pod in pods if pod["spec"].get("nodeName") == name]
        bar = ProgressBar(total=NODE_CPU_MILLIS, completed=len(here) * POD_CPU_MILLIS, width=bar_width)
        load = Table.grid(padding=(0, 1))
        load.add_row(bar, f"{percent(len(here)):>3} %")
        style = "yellow" if labels[CAPACITY] == "spot" else "cyan"
        capacity = Text(labels[CAPACITY], style=style)
        table.add_row(name, capacity, labels[ZONE], load, *(_dots(of(app, here)) for app in apps))
    pending = sum(not pod["spec"].get("nodeName") for pod in pods)
    return Group(table, Text(f"{ready(pods)} Ready, {pending} not yet scheduled"))


def of(app: str, pods: Sequence[Object]) -> list[Object]:
    return [pod for pod in pods if pod["metadata"]["labels"]["app"] == app]


def ready(pods: Sequence[Object]) -> int:
    return sum(objects.is_ready(pod) for pod in pods)


def _dots(pods: Sequence[Object]) -> str:
    return f"{''.join('●' if objects.is_ready(pod) else '○' for pod in pods)} {len(pods)}".lstrip()
