"""Two kinds of plot as SVG: bars, and lines over logarithmic axes.   Pure: numbers in, text out.

Written by hand because it is all that the report needs: a plotting library would be the largest dependency of the
project. Colours are told apart by people who see red and green alike, and read on light and dark.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

WIDTH, ROW, LEFT, RIGHT, TOP = 720, 26, 190, 90, 44
PLOT_HEIGHT, BOTTOM = 260, 46
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a8a8a")
Points = Sequence[tuple[float, float]]


def bars(title: str, values: Mapping[str, float], unit: str) -> str:
    """One bar each, the first in the first colour: it is ours."""
    most = max(values.values(), default=0) or 1
    room = WIDTH - LEFT - RIGHT
    parts = []
    for number, (name, value) in enumerate(values.items()):
        y, length = TOP + number * ROW, max(1.0, room * value / most)
        colour = COLOURS[0 if number == 0 else 4]
        parts.append(_text(LEFT - 8, y + 15, name, anchor="end"))
        parts.append(f'<rect x="{LEFT}" y="{y}" width="{length:.1f}" height="{ROW - 8}" fill="{colour}"/>')
        parts.append(_text(LEFT + length + 6, y + 15, f"{value:.4g} {unit}"))
    return _document(title, TOP + len(values) * ROW + 10, parts)


def lines(title: str, series: Mapping[str, Points], *, across: str, up: str) -> str:
    """One line each, both axes logarithmic: in proportion is a diagonal."""
    xs = [x for points in series.values() for x, _ in points]
    ys = [y for points in series.values() for _, y in points]
    scale_x, scale_y = _Log(xs, LEFT - 110, WIDTH - RIGHT - 60), _Log(ys, TOP + PLOT_HEIGHT, TOP)
    parts = [_grid(scale_x, scale_y), _text((LEFT + WIDTH) / 2 - 90, TOP + PLOT_HEIGHT + 38, across)]
    parts.append(_text(12, TOP - 8, up))
    for number, (name, points) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(f"{scale_x(x):.1f},{scale_y(y):.1f}" for x, y in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{scale_x(x):.1f}" cy="{scale_y(y):.1f}" r="3" fill="{colour}"/>' for x, y in points]
        x, y = points[-1]
        parts.append(_text(scale_x(x) + 8, scale_y(y) + 4, name, colour=colour))
    return _document(title, TOP + PLOT_HEIGHT + BOTTOM, parts)


class _Log:
    """Powers of ten around the values, laid out between two pixels."""

    def __init__(self, values: Sequence[float], start: float, end: float) -> None:
        positive = [it for it in values if it > 0] or [1.0]
        self.low = math.floor(math.log10(min(positive)))
        self.high = max(self.low + 1, math.ceil(math.log10(max(positive))))
        self._start, self._end = start, end

    def __call__(self, value: float) -> float:
        share = (math.log10(max(value, 10.0**self.low)) - self.low) / (self.high - self.low)
        return self._start + share * (self._end - self._start)

    def ticks(self) -> list[float]:
        return [10.0**power for power in range(self.low, self.high + 1)]


def _grid(across: _Log, up: _Log) -> str:
    left, right = across(10.0**across.low), across(10.0**across.high)
    bottom, top = up(10.0**up.low), up(10.0**up.high)
    parts = []
    for tick in across.ticks():
        x = across(tick)
        parts.append(f'<line x1="{x:.1f}" y1="{top:.1f}" x2="{x:.1f}" y2="{bottom:.1f}" class="grid"/>')
        parts.append(_text(x, bottom + 18, f"{tick:,g}", anchor="middle"))
    for tick in up.ticks():
        y = up(tick)
        parts.append(f'<line x1="{left:.1f}" y1="{y:.1f}" x2="{right:.1f}" y2="{y:.1f}" class="grid"/>')
        parts.append(_text(left - 6, y + 4, f"{tick:,g}", anchor="end"))
    return "".join(parts)


def _text(x: float, y: float, told: str, *, anchor: str = "start", colour: str = "") -> str:
    fill = f' style="fill:{colour}"' if colour else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{fill}>{escape(told)}</text>'


def _document(title: str, height: float, parts: Sequence[str]) -> str:
    style = (
        "text{font:13px sans-serif;fill:#333}.title{font-weight:bold;font-size:15px}.grid{stroke:#8884}"
        "@media(prefers-color-scheme:dark){text{fill:#ddd}}"
    )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" role="img">'
    name = escape(title)
    named = f'<title>{name}</title><style>{style}</style><text x="12" y="20" class="title">{name}</text>'
    return f"{head}{named}{''.join(parts)}</svg>\n"
