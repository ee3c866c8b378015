"""The page: its composition root."""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from flask import Flask

from cluster import auth, errors
from cluster.client import Client
from cluster.runtime import Runtime
from console import arguments, door, following
from console.web import access, app, serve
from console.web.access import Access
from console.web.board import Board
from console.web.streams import Streams
from console.web.watcher import Watcher
from policy import names
from telemetry import listening, logs
from telemetry.catalogue import Log
from telemetry.meter import Meter

LISTEN: Final = "127.0.0.1:8090"


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser(prog="python -m console.web", description="Show the cluster on a page, live.")
    made.add_argument(
        "--listen",
        type=arguments.address,
        default=LISTEN,
        metavar="HOST:PORT",
        help=f"where to serve (default {LISTEN})",
    )
    made.add_argument(
        "--host", action="append", default=[], metavar="NAME", help="a further name of this page; * for any"
    )
    made.add_argument(
        "--token-file",
        type=Path,
        help="only whoever knows what is in this file may look; needed wherever others can connect",
    )
    made.add_argument("--interval", type=float, default=2.0, metavar="SECONDS", help="between two pictures, at least")
    made.add_argument(
        "--system-namespace", type=arguments.namespace, default=names.NAMESPACE, help="where spotshift is installed"
    )
    made.add_argument("--kubeconfig", type=Path)
    made.add_argument("--context")
    made.add_argument("--log-format", choices=("json", "text"), default="text")
    return made


def _parsed(given: Sequence[str] | None) -> argparse.Namespace:
    """Whoever can connect may look, unless there is a token: without one nobody else may be able to."""
    command = parser()
    options = command.parse_args(given)
    if options.token_file is None and not access.is_private(options.listen[0]):
        where = listening.shown(*options.listen)
        command.error(
            f"argument --listen: '{where}' can be reached from elsewhere and is not accepted without --token-file, "
            f"use a loopback address, such as {LISTEN}"
        )
    return options


def main(given: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM."""
    options = _parsed(given)
    host, _ = options.listen
    try:
        allowed = Access(_token(options.token_file), access.names(host, options.host))
        connection = auth.as_kubectl(os.environ, Path.home(), kubeconfig=options.kubeconfig, context=options.context)
    except (auth.LoginError, OSError, ValueError) as wrong:
        return _failed(str(wrong))
    where = listening.shown(*options.listen)
    log = logs.Logger(logs.stream_sink(sys.stdout, options.log_format), now=_wall, strict=False)
    runtime = Runtime(time.monotonic, _wall, random.Random(), log.bind(component="console"), Meter(strict=False))  # noqa: S311 - for jitter
    board = Board()
    watchers: list[Watcher] = []

    def compose() -> Flask:
        client = Client(connection, rate_limit=None, user_agent=door.AGENT)
        try:
            watcher = Watcher(
                client, board, runtime=runtime, system=options.system_namespace, seconds=options.interval
            )
            watcher.start()
        except errors.ApiError as error:
            raise SystemExit(f"error: {door.told(error, connection.server)}") from error
        watchers.append(watcher)
        runtime.log.emit(Log.LISTENING, address=access.url(host, server.port))
        return app.create(board, allowed, Streams(serve.PAGES))

    def stop() -> None:
        for watcher in watchers:
            watcher.stop()

    try:
        server = serve.Server(compose, listen=options.listen, stop=stop)
    except OSError as taken:
        return _failed(
            f"cannot listen on {where}: {os.strerror(taken.errno or 0)}; --listen HOST:PORT names another place"
        )
    refused = _refused(connection)
    if refused:
        return _failed(refused)
    server.run()
    return 0


def _refused(connection: auth.Connection) -> str:
    """Why there would be nothing to show: gunicorn begins a worker that cannot begin again and again."""
    client = Client(connection, rate_limit=None, user_agent=door.AGENT)
    try:
        following.permitted(client)
    except errors.ApiError as error:
        return door.told(error, connection.server)
    finally:
        client.close()
    return ""


def _failed(why: str) -> int:
    sys.stderr.write(f"error: {why}\n")
    return 1


def _token(file: Path | None) -> str:
    if file is None:
        return ""
    token = file.read_text().strip()
    if not token:
        raise ValueError(f"{file} is empty: a token is any text")
    return token


def _wall() -> datetime:
    return datetime.now(UTC)
