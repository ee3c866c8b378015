"""`plan` and `explain`: read a cluster or a dump, and say what would be done. They change nothing anywhere."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from cluster import auth, errors
from cluster.client import Client
from cluster.objects import Pod
from descheduler import dump, explanation, listing, plan, report, screen, tables
from descheduler.gathered import Gathered
from policy import settings_load
from policy.mistakes import InvalidSettings, names_like
from policy.printing import printed
from policy.settings import Settings

DONE: Final = 0
FAILED: Final = 1
INCOMPLETE: Final = 3
TIMEOUT_SECONDS: Final = 60.0
"""For one page of a list; a person waits."""


class Unusable(Exception):
    """What stops the command; every line is one thing that is wrong."""


def run_plan(options: argparse.Namespace) -> int:
    """Print the plan."""
    try:
        settings = _settings(options.settings)
        gathered = _gather(options, settings)
    except Unusable as unusable:
        return _failed(unusable)
    made = plan.make(gathered.state, settings, options.now or datetime.now(UTC), gathered.usage)
    told = report.of_plan(made, gathered)
    pages = tables.of_plan(told, verbose=options.verbose)
    known = DONE if told["summary"]["complete"] else INCOMPLETE
    return printed(lambda: screen.write(sys.stdout, options.output, told, pages), known)


def run_explain(options: argparse.Namespace) -> int:
    """Print why a pod is moved or is not."""
    try:
        settings = _settings(options.settings)
        gathered = _gather(options, settings)
        pod = _pod(options, gathered)
    except Unusable as unusable:
        return _failed(unusable)
    told = explanation.of_pod(pod, gathered, settings, options.now or datetime.now(UTC))
    known = INCOMPLETE if gathered.gaps or told["leftOut"] else DONE
    return printed(lambda: screen.write(sys.stdout, options.output, told, tables.of_pod(told)), known)


def _failed(unusable: Unusable) -> int:
    for line in str(unusable).splitlines():
        sys.stderr.write(f"error: {tables.clean(line)}\n")
    return FAILED


# ---- where the objects come from


def _gather(options: argparse.Namespace, settings: Settings) -> Gathered:
    if options.file:
        return _from_files(options.file, settings, options.none)
    return _from_cluster(options, settings)


def _from_files(names: Sequence[str], settings: Settings, none: Sequence[str]) -> Gathered:
    try:
        return dump.read((dump.File(_called(name), _data(name)) for name in names), settings, none=none)
    except dump.Refused as refused:
        raise Unusable(str(refused)) from refused
    except RecursionError as nested:
        raise Unusable("a file is nested too deeply") from nested


def _from_cluster(options: argparse.Namespace, settings: Settings) -> Gathered:
    try:
        connection = _connection(options)
        client = Client(connection, rate_limit=None, user_agent="spotshift-plan", timeout=TIMEOUT_SECONDS)
    except auth.LoginError as wrong:
        raise Unusable(f"{wrong}; use --kubeconfig and --context, KUBECONFIG, or -f FILE") from wrong
    try:
        return listing.gather(client, settings)
    except errors.Unreachable as gone:
        raise Unusable(f"the cluster at {connection.server} does not answer: {gone.message}") from gone
    except errors.Unauthorized as unknown:
        raise Unusable(f"the cluster at {connection.server} does not accept who we are: {unknown}") from unknown
    except errors.Forbidden as denied:
        raise Unusable(f"rights are missing: nodes and pods must be listed, {denied.message}") from denied
    except errors.ApiError as refused:
        raise Unusable(f"the cluster at {connection.server} refused: {refused}") from refused
    finally:
        client.close()


def _connection(options: argparse.Namespace) -> auth.Connection:
    return auth.as_kubectl(os.environ, Path.home(), kubeconfig=options.kubeconfig, context=options.context)


def _pod(options: argparse.Namespace, gathered: Gathered) -> Pod:
    namespace, slash, name = options.pod.partition("/")
    key = (namespace, name) if slash else (options.namespace, options.pod)
    found = gathered.state.pods.get(key)
    if found is not None:
        return found
    elsewhere = sorted(other for other, name in gathered.state.pods if name == key[1])
    known = [name for _, name in gathered.state.by_namespace.get(key[0], {})]
    hint = f"it is in namespace {', '.join(elsewhere)}, use -n" if elsewhere else names_like(key[1], known)
    raise Unusable(f"there is no running or waiting pod {key[0]}/{key[1]}" + (f" ({hint})" if hint else ""))


# ---- files


def _settings(path: Path | None) -> Settings:
    if path is None:
        return Settings()
    try:
        return settings_load.load(_data(str(path)).decode())
    except UnicodeDecodeError as undecodable:
        raise Unusable(f"{path}: not YAML text in UTF-8") from undecodable
    except InvalidSettings as invalid:
        raise Unusable("\n".join(f"{path}: {mistake}" for mistake in invalid.mistakes)) from invalid


def _called(name: str) -> str:
    return "standard input" if name == "-" else name


def _data(name: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as unreadable:
        raise Unusable(f"{name}: {unreadable.strerror}") from unreadable
