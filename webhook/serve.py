"""`python -m webhook serve`: the composition root of the server, and the only place here that reads the environment.

The arbiter of gunicorn checks what can be checked and forks; all the rest is made in the worker.
"""

import argparse
import logging
import os
import random
import secrets
import ssl
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from cluster import auth
from cluster.client import Client
from cluster.eventlog import Subject, Topic
from cluster.live_settings import LiveSettings
from cluster.runtime import Runtime
from policy import convert, keys, settings_load
from policy.mistakes import InvalidSettings
from policy.settings import Settings
from telemetry import logs, probes
from telemetry.catalogue import Log
from telemetry.meter import Meter
from webhook import app, bundle, live
from webhook.live import LiveView
from webhook.server import Application
from webhook.tally import Tally
from webhook.tls import Certificate


def run(options: argparse.Namespace) -> int:
    """Serve until SIGTERM."""
    from webhook import gunicorn_conf

    try:
        settings = _settings(options.settings)
        _connection(options)
    except (auth.LoginError, OSError, InvalidSettings) as wrong:
        lines = [str(it) for it in wrong.mistakes] if isinstance(wrong, InvalidSettings) else [str(wrong)]
        for line in lines:
            print(f"error: {line}", file=sys.stderr)  # noqa: T201 - a command line that is not accepted
        return 1
    log = _log(options)
    logging.getLogger().addHandler(logs.LibraryHandler(log))
    log.emit(Log.STARTING, version=_version(), settings=convert.flatten(convert.to_plain(settings)))
    gunicorn_conf.Server(
        lambda: compose(options, log), listen=options.listen, grace_seconds=options.grace_seconds
    ).run()
    return 0


def compose(options: argparse.Namespace, log: logs.Logger) -> tuple[Application, ssl.SSLContext]:
    """Everything that lives in the worker; nothing runs before the application is started."""
    meter = Meter(strict=False, process=True)
    runtime = Runtime(time.monotonic, _wall, random.Random(), log, meter)  # noqa: S311 - for jitter
    client = Client(_connection(options), rate_limit=None, user_agent="spotshift-webhook", meter=meter)
    settings = _settings(options.settings)
    ours = keys.under(settings.label_prefix)
    counts = Tally(f"webhook-{secrets.token_hex(4)}", ours, _wall)
    view = LiveView(
        live.sources(client, ours), settings, own_namespace=options.namespace, tally=counts, runtime=runtime
    )
    certificate = Certificate(options.cert, options.key, runtime=runtime)
    parts: list[LiveView | LiveSettings | Certificate | bundle.PublishedBundle | app.Server] = [certificate, view]
    health = probes.Health()
    health.ready("view", view.problem)
    health.ready("certificate", certificate.problem)
    if options.settings is not None:
        parts.append(_following(options, runtime, view.configure))
    if options.bundle_from is not None:
        published = bundle.PublishedBundle(
            bundle.source(client, options.bundle_from), options.bundle_from, runtime=runtime
        )
        health.ready("bundle", lambda: _trust(published, certificate))
        parts.append(published)
    endpoints = app.Server(options.probes, app.create(health=health, meter=meter))
    parts.append(endpoints)

    def start() -> None:
        for part in parts:
            part.start()
        log.emit(Log.LISTENING, address=endpoints.address)

    def stop() -> None:
        for part in reversed(parts):
            part.stop()
        client.close()
        log.emit(Log.STOPPED)

    application = Application(lambda: view.view, runtime=runtime, start=start, stop=stop)
    health.ready("drain", application.problem)
    return application, certificate.context


def _trust(published: bundle.PublishedBundle, certificate: Certificate) -> str | None:
    problem = published.problem()
    if problem is not None:
        return problem
    return next(filter(None, map(certificate.distrusted, published.bundles())), None)


class _Silent:
    """The descheduler reads the same settings and tells about them by Events; a second voice needs one more right."""

    def record(self, subject: Subject, topic: Topic, note: str) -> bool:
        """Say nothing."""
        del subject, topic, note
        return False


def _following(options: argparse.Namespace, runtime: Runtime, on_change: Callable[[Settings], None]) -> LiveSettings:
    subject = Subject("v1", "ConfigMap", "spotshift-settings", options.namespace)
    return LiveSettings(options.settings, subject=subject, recorder=_Silent(), runtime=runtime, on_change=on_change)


def _settings(path: Path | None) -> Settings:
    return Settings() if path is None else settings_load.load(path.read_text())


def _connection(options: argparse.Namespace) -> auth.Connection:
    return auth.as_kubectl(os.environ, Path.home(), kubeconfig=options.kubeconfig, context=options.context)


def _log(options: argparse.Namespace) -> logs.Logger:
    sink = logs.stream_sink(sys.stdout, options.log_format)
    return logs.Logger(sink, now=_wall, strict=False).bind(component="webhook")


def _version() -> str:
    try:
        return metadata.version("spotshift")
    except metadata.PackageNotFoundError:
        return "0.1.0+source"


def _wall() -> datetime:
    return datetime.now(UTC)
