"""`kubectl spotshift`: the composition root of the plugin.

Environment, clock and chance are read here and nowhere else.
"""

from __future__ import annotations

import importlib
import os
import random
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from console import completing, options, output
from console.ending import Ending

if TYPE_CHECKING:
    import argparse

    from cluster.runtime import Runtime
    from console.session import Session

    Command = Callable[[Session], Ending]

COMPLETE: Final = "__complete"
COMPLETE_SECONDS: Final = 2.0
"""For names from the cluster; whoever pressed Tab is waiting."""
NO_CLUSTER: Final = frozenset({"completion"})


def main(arguments: Sequence[str]) -> int:
    """One call."""
    try:
        with output.told(sys.stdout):
            return _complete(arguments[1:]) if arguments and arguments[0] == COMPLETE else _run(arguments)
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        output.discard(sys.stdout)
        return Ending.DONE
    except output.Refused as refused:
        output.discard(sys.stdout)
        if sys.stderr is not None:
            sys.stderr.write(f"error: standard output: {refused}\n")
        return Ending.FAILED
    except KeyboardInterrupt:
        return Ending.INTERRUPTED


def _run(arguments: Sequence[str]) -> int:
    chosen = options.parse(arguments)
    from cluster.runtime import Runtime
    from console import door, screen
    from console.session import Session
    from telemetry import logs
    from telemetry.meter import Meter

    silent = logs.Logger(lambda _: None, now=_wall, strict=False)
    runtime = Runtime(time.monotonic, _wall, random.Random(), silent, Meter(strict=False))  # noqa: S311 - names, jitter
    run: Command = importlib.import_module(f"console.commands.{chosen.command}").run
    try:
        if chosen.command in NO_CLUSTER:
            return run(Session(chosen, sys.stdout, sys.stderr, runtime))
        return _connected(run, chosen, runtime)
    except door.Unusable as unusable:
        sys.stdout.flush()
        for line in str(unusable).splitlines():
            sys.stderr.write(f"error: {screen.clean(line)}\n")
        return Ending.FAILED


def _connected(run: Command, chosen: argparse.Namespace, runtime: Runtime) -> Ending:
    from console import door
    from console.session import Session

    seconds = chosen.request_timeout.total_seconds()
    with door.opened(
        os.environ, Path.home(), kubeconfig=chosen.kubeconfig, context=chosen.context, timeout=seconds
    ) as opened:
        return run(Session(chosen, sys.stdout, sys.stderr, runtime, opened))


def _complete(words: Sequence[str]) -> int:
    for line in completing.lines(words, options.parser(), _names):
        sys.stdout.write(f"{line}\n")
    return Ending.DONE


def _names(kind: str, flags: Mapping[str, str]) -> Iterable[str]:
    """Nothing where nothing can be had."""
    from cluster import resources
    from cluster.objects import PartialObjectMetadata
    from console import door

    known = {"pods": resources.PODS, "nodes": resources.NODES, "namespaces": resources.NAMESPACES}
    resource, file = known[kind], flags.get("kubeconfig")
    try:
        with door.opened(
            os.environ,
            Path.home(),
            kubeconfig=Path(file) if file else None,
            context=flags.get("context"),
            timeout=COMPLETE_SECONDS,
        ) as opened:
            where = (flags.get("namespace") or opened.namespace) if resource.namespaced else None
            found = opened.client.list(resource, namespace=where, type=PartialObjectMetadata, metadata_only=True)
            return [it.metadata.name for it in found.items]
    except door.Unusable:
        return []


def _wall() -> datetime:
    return datetime.now(UTC)
