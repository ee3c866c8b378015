"""`python -m descheduler cleanup`: takes back everything of ours in a cluster, also in the middle of moves.

Afterwards the objects of the manifests can be deleted, and nothing of ours is left on anything that belongs to
others. A composition root: the environment is read here.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from cluster import auth, errors
from cluster.client import Client
from cluster.resources import CONFIGMAPS
from cluster.runtime import Runtime
from descheduler import clearing, removal, run
from descheduler.clearing import Cleanup
from policy import names, settings_load
from policy.mistakes import InvalidSettings
from policy.printing import say
from policy.settings import Mode, Settings
from telemetry import logs
from telemetry.meter import Meter

INTERRUPTED: Final = 130
"""As a shell says it of a program that Ctrl-C ended."""


def main(options: argparse.Namespace) -> int:
    """Run the command."""
    try:
        connection = auth.as_kubectl(os.environ, Path.home(), kubeconfig=options.kubeconfig, context=options.context)
    except auth.LoginError as wrong:
        return _failed(f"{wrong}; use --kubeconfig and --context, or KUBECONFIG")
    client = Client(connection, rate_limit=None, user_agent="spotshift-cleanup")
    try:
        settings = _settings(client, options.namespace)
        cleanup = Cleanup(client, options.namespace, settings, say)
        say(f"cluster {connection.server}")
        return _preview(cleanup) if options.dry_run else _clean(cleanup, options)
    except InvalidSettings as unsure:
        where = f"ConfigMap {options.namespace}/{run.CONFIG_MAP}"
        return _failed(f"{where}: {unsure}; by it our marks are found: mend it and run this again")
    except errors.Unreachable as gone:
        return _failed(f"the cluster at {connection.server} does not answer: {gone.message}")
    except errors.ApiError as refused:
        return _failed(f"the cluster at {connection.server} refused: {refused}")
    except KeyboardInterrupt:
        _failed("interrupted in the middle; run this again, it goes on from there")
        return INTERRUPTED
    finally:
        client.close()


def _clean(cleanup: Cleanup, options: argparse.Namespace) -> int:
    cleanup.stop_admissions()
    cleanup.stop_moves()
    if cleanup.under_way():
        with _standing_in(options, cleanup.settings):
            ended = cleanup.await_moves(options.timeout)
    else:
        ended = cleanup.await_moves(clearing.QUIET_SECONDS * 2)
    stopped = cleanup.stop_programs()
    clean = cleanup.sweep()
    cleanup.remove_made()
    if not ended:
        say("moves did not end in time and were cut off: look at the replicas of their workloads")
    if not (stopped and clean):
        return _failed("something of ours is left; run this again")
    cleanup.tell_asked()
    say("nothing of ours is left on nodes, pods and workloads; delete the manifests now")
    return 0


def _preview(cleanup: Cleanup) -> int:
    for migration in cleanup.under_way():
        meta = migration["metadata"]
        say(f"podmigrations {meta['namespace']}/{meta['name']}: under way, would be ended")
    for request in cleanup.left():
        say(f"would take back {removal.described(request)}")
    cleanup.tell_asked()
    return 0


@contextmanager
def _standing_in(options: argparse.Namespace, settings: Settings) -> Iterator[None]:
    """Somebody must roll back what is under way: the leader, or this process if none is left. It begins nothing."""
    log = logs.Logger(logs.stream_sink(sys.stderr, "console"), now=_wall, strict=False).bind(component="descheduler")
    runtime = Runtime(_monotonic, _wall, random.Random(), log, Meter(strict=False))  # noqa: S311 - for jitter
    given = argparse.Namespace(
        **{**vars(options), "settings": None, "identity": f"cleanup-{os.getpid()}", "lease_seconds": None}
    )
    process = run.Descheduler(given, runtime, msgspec.structs.replace(settings, mode=Mode.OBSERVE))
    process.start()
    try:
        yield
    finally:
        process.stop()


def _settings(client: Client, namespace: str) -> Settings:
    """As they are in the cluster; mistakes are no reason to leave marks behind, unless they do not tell under which
    prefix these are: then raises InvalidSettings.
    """
    try:
        found: dict[str, Any] = client.get(CONFIGMAPS, run.CONFIG_MAP, namespace=namespace)
    except errors.NotFound:
        return Settings()
    text = (found.get("data") or {}).get(names.SETTINGS_KEY, "")
    try:
        return settings_load.load(text)
    except InvalidSettings as invalid:
        stand_in = settings_load.standing_in(text)
        say(f"the settings have {len(invalid.mistakes)} mistakes; defaults are used, under {stand_in.label_prefix}")
        return stand_in


def _failed(why: str) -> int:
    sys.stderr.write(f"error: {why}\n")
    return 1


def _monotonic() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _wall() -> datetime:
    return datetime.now(UTC)
