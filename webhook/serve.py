"""`python -m webhook serve`: the composition root of the server. What it shares with others is `serving.process`."""

import argparse
import secrets
import ssl

from policy import keys
from serving import app, process
from serving.asgi import Application
from serving.process import Part
from serving.tls import Certificate
from telemetry import logs, probes
from webhook import bundle, live, server
from webhook.tally import Tally


def run(options: argparse.Namespace) -> int:
    """Serve until SIGTERM."""
    return process.run(options, compose, component="webhook")


def compose(options: argparse.Namespace, log: logs.Logger) -> tuple[Application, ssl.SSLContext]:
    """Everything that lives in the worker; nothing runs before the application is started."""
    runtime = process.runtime(log)
    client = process.client(options, runtime, component="webhook")
    settings, followed = process.following(options, runtime)
    ours = keys.under(settings.label_prefix)
    view = live.view(
        live.sources(client, ours),
        settings,
        own_namespace=options.namespace,
        tally=Tally(f"webhook-{secrets.token_hex(4)}", ours, runtime.wall),
        runtime=runtime,
    )
    certificate = Certificate(options.cert, options.key, runtime=runtime)
    parts: list[Part] = [certificate, view]
    health = probes.Health()
    health.ready("view", view.problem)
    health.ready("certificate", certificate.problem)
    if followed is not None:
        followed.on_change = view.configure
        parts.append(followed)
    if options.bundle_from is not None:
        published = bundle.PublishedBundle(
            bundle.source(client, options.bundle_from), options.bundle_from, runtime=runtime
        )
        health.ready("bundle", lambda: _trust(published, certificate))
        parts.append(published)
    endpoints = app.Server(options.probes, app.create(health=health, meter=runtime.meter))
    parts.append(endpoints)
    start, stop = process.life(parts, client, address=endpoints.address, log=log)
    application = server.application(lambda: view.view, runtime=runtime, start=start, stop=stop)
    health.ready("drain", application.problem)
    return application, certificate.context


def _trust(published: bundle.PublishedBundle, certificate: Certificate) -> str | None:
    problem = published.problem()
    if problem is not None:
        return problem
    return next(filter(None, map(certificate.distrusted, published.bundles())), None)
