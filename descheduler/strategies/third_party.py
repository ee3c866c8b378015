"""Strategies of installed packages, found through the entry-point group `spotshift.strategies`.

Only those that the settings list are loaded: installing a package must not switch it on.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from importlib import metadata
from typing import Any, Final

import msgspec

GROUP: Final = "spotshift.strategies"
SHAPE: Final = ("NAME", "WEIGHT", "Args", "propose")


class Unusable(Exception):
    """A listed strategy is not installed, is not a strategy, or refuses its arguments."""


@functools.cache
def load(name: str) -> Any:
    """The module of a strategy. Looked up once: reading the metadata of every installed package takes a while."""
    found = metadata.entry_points(group=GROUP)
    point = next((it for it in found if it.name == name), None)
    if point is None:
        known = ", ".join(sorted(it.name for it in found)) or "none"
        raise Unusable(f"strategies.thirdParty lists {name!r}, which no installed package offers; offered: {known}")
    module = point.load()
    missing = [part for part in SHAPE if not hasattr(module, part)]
    if missing:
        raise Unusable(f"strategy {name!r} ({point.value}) lacks {', '.join(missing)}")
    if name != module.NAME:
        raise Unusable(f"strategy {name!r} ({point.value}) calls itself {module.NAME!r}")
    return module


def arguments(strategy: Any, args: Mapping[str, Any]) -> Any:
    """The arguments of the settings in the strategy's own type, which says what it accepts."""
    try:
        return msgspec.convert(dict(args), strategy.Args)
    except msgspec.ValidationError as wrong:
        raise Unusable(f"strategies.thirdParty.{strategy.NAME}.args: {wrong}") from wrong
