"""`python -m extender serve`: the composition root of the server. What it shares with others is `serving.process`."""

import argparse
import ssl

from extender import live, server
from serving import app, process
from serving.asgi import Application
from serving.process import Part
from serving.tls import Certificate
from telemetry import logs, probes


def run(options: argparse.Namespace) -> int:
    """Serve until SIGTERM."""
    return process.run(options, compose, component="extender")


def compose(options: argparse.Namespace, log: logs.Logger) -> tuple[Application, ssl.SSLContext | None]:
    """Everything that lives in the worker; nothing runs before the application is started."""
    runtime = process.runtime(log)
    client = process.client(options, runtime, component="extender")
    settings, followed = process.following(options, runtime)
    view = live.view(live.sources(client), settings, runtime=runtime)
    parts: list[Part] = [view]
    health = probes.Health()
    health.ready("view", view.problem)
    certificate = None if options.cert is None else Certificate(options.cert, options.key, runtime=runtime)
    if certificate is not None:
        health.ready("certificate", certificate.problem)
        parts.append(certificate)
    if followed is not None:
        followed.on_change = view.configure
        parts.append(followed)
    endpoints = app.Server(options.probes, app.create(health=health, meter=runtime.meter))
    parts.append(endpoints)
    start, stop = process.life(parts, client, address=endpoints.address, log=log)
    application = server.application(lambda: view.view, runtime=runtime, start=start, stop=stop)
    health.ready("drain", application.problem)
    return application, None if certificate is None else certificate.context
