"""The life of a server process: what is checked before it forks, and what starts and stops in its worker.

A part of the composition roots, so it may read the environment and the clock. The arbiter of gunicorn checks what can
be checked and forks; all the rest is made in the worker, by the `compose` that is handed in.
"""

import argparse
import logging
import os
import random
import ssl
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Protocol

from cluster import auth
from cluster.client import Client
from cluster.eventlog import Subject, Topic
from cluster.live_settings import LiveSettings
from cluster.runtime import Runtime
from policy import convert, settings_load
from policy.mistakes import InvalidSettings
from policy.settings import Settings
from serving.asgi import Application
from telemetry import logs
from telemetry.catalogue import Log
from telemetry.meter import Meter

Compose = Callable[[argparse.Namespace, logs.Logger], tuple[Application, ssl.SSLContext | None]]


class Part(Protocol):
    """Something that runs while the worker lives."""

    def start(self) -> None: ...
    def stop(self) -> None: ...


def run(options: argparse.Namespace, compose: Compose, *, component: str) -> int:
    """Serve until SIGTERM."""
    from serving import gunicorn_conf

    try:
        effective = settings(options.settings)
        connection(options)
    except (auth.LoginError, OSError, InvalidSettings) as wrong:
        lines = [str(it) for it in wrong.mistakes] if isinstance(wrong, InvalidSettings) else [str(wrong)]
        for line in lines:
            print(f"error: {line}", file=sys.stderr)  # noqa: T201 - a command line that is not accepted
        return 1
    log = logger(options, component)
    logging.getLogger().addHandler(logs.LibraryHandler(log))
    log.emit(Log.STARTING, version=version(), settings=convert.flatten(convert.to_plain(effective)))
    gunicorn_conf.Server(
        lambda: compose(options, log),
        listen=options.listen,
        grace_seconds=options.grace_seconds,
        tls=options.cert is not None,
    ).run()
    return 0


def runtime(log: logs.Logger) -> Runtime:
    """Of the worker."""
    meter = Meter(strict=False, process=True)
    return Runtime(time.monotonic, wall, random.Random(), log, meter)  # noqa: S311 - for jitter


def client(options: argparse.Namespace, lent: Runtime, *, component: str) -> Client:
    """Of the worker."""
    return Client(connection(options), rate_limit=None, user_agent=f"spotshift-{component}", meter=lent.meter)


def life(
    parts: Sequence[Part], used: Client, *, address: str, log: logs.Logger
) -> tuple[Callable[[], None], Callable[[], None]]:
    """How the worker begins and ends: in the order of the parts, and back."""

    def start() -> None:
        for part in parts:
            part.start()
        log.emit(Log.LISTENING, address=address)

    def stop() -> None:
        for part in reversed(parts):
            part.stop()
        used.close()
        log.emit(Log.STOPPED)

    return start, stop


class _Silent:
    """The descheduler reads the same settings and tells about them by Events; a second voice needs one more right."""

    def record(self, subject: Subject, topic: Topic, note: str) -> bool:
        """Say nothing."""
        del subject, topic, note
        return False


def following(options: argparse.Namespace, lent: Runtime) -> tuple[Settings, LiveSettings | None]:
    """The settings to begin with, and their file, which is followed while we serve; None if there is none."""
    if options.settings is None:
        return Settings(), None
    subject = Subject("v1", "ConfigMap", "spotshift-settings", options.namespace)
    followed = LiveSettings(options.settings, subject=subject, recorder=_Silent(), runtime=lent)
    return followed.current, followed


def settings(path: Path | None) -> Settings:
    """As they are in the file; the defaults if there is none."""
    return Settings() if path is None else settings_load.load(path.read_text())


def connection(options: argparse.Namespace) -> auth.Connection:
    """By kubectl's rules."""
    return auth.as_kubectl(os.environ, Path.home(), kubeconfig=options.kubeconfig, context=options.context)


def logger(options: argparse.Namespace, component: str) -> logs.Logger:
    """To standard output."""
    sink = logs.stream_sink(sys.stdout, options.log_format)
    level = logs.LEVELS[options.log_level]
    return logs.Logger(sink, now=wall, strict=False, level=level).bind(component=component)


def version() -> str:
    """Of the installed package."""
    try:
        return metadata.version("spotshift")
    except metadata.PackageNotFoundError:
        return "0.1.0+source"


def wall() -> datetime:
    """Time of day."""
    return datetime.now(UTC)
