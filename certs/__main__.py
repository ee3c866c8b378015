"""`python -m certs run | ensure | check`: the composition root, and the only place that reads clock and environment.

Exit codes: 0 fine, 1 something is wrong or did not come in time, 2 the command line is not accepted.
"""

import signal

if __name__ == "__main__":  # an interrupt while the rest is loaded has nothing to clean up
    INTERRUPTED = signal.signal(signal.SIGINT, signal.SIG_DFL)

import argparse
import os
import random
import sys
import time
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

from certs import act, findings, objects, options, plan, reconcile, store
from certs.loop import Loop
from certs.report import Reporter
from certs.settings import Settings
from cluster import auth, errors
from cluster.client import Client
from cluster.reflector import Reflector
from cluster.runtime import Runtime
from cluster.stopping import StopRequest
from policy import durations
from policy.printing import printed, say
from telemetry import logs, probes
from telemetry.catalogue import Log
from telemetry.meter import Meter

POLL_SECONDS = 1.0
"""How long `ensure` rests between two looks while it waits for an overlap or for the apiserver."""


def main(arguments: list[str]) -> int:
    """Run one command."""
    chosen, settings = options.parse(arguments)
    try:
        if chosen.command == "run":
            meter = Meter(strict=False, process=True)
            return _run(_client(chosen, meter), chosen, settings, meter)
        return {"ensure": _ensure, "check": _check}[chosen.command](_client(chosen), chosen, settings)
    except (auth.LoginError, errors.ApiError) as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _check(client: Client, _: argparse.Namespace, settings: Settings) -> int:
    world = objects.observe(
        store.Store(client, settings), ca_secret=settings.ca_secret, leaf_secret=settings.leaf_secret
    )
    decision = plan.decide(world, settings, _wall())
    told = "".join(f"{line}\n" for line in findings.report(world, decision, settings))
    return printed(lambda: print(told, end=""), 1 if findings.findings(world, decision, settings) else 0)


def _ensure(client: Client, chosen: argparse.Namespace, settings: Settings) -> int:
    api = store.Store(client, settings)
    deadline = time.monotonic() + chosen.timeout.total_seconds()
    wish: str | None = chosen.rotate
    problem = f"not stable after {durations.text_of(chosen.timeout)}"
    while time.monotonic() < deadline:
        try:
            last = reconcile.settle(api, settings, _wall, _print_step)
            if last.decision.settled and wish is None:
                return _conclude(last)
            if last.decision.settled and wish:
                if last.decision.external:
                    problem = "somebody else makes the certificates, so they are not rotated here"
                    break
                act.ask(api, last.world, wish)
                wish = None
                continue
        except errors.ApiError as error:
            if not error.retryable and not isinstance(error, errors.Conflict):
                raise
        time.sleep(POLL_SECONDS)
    print(f"error: {problem}", file=sys.stderr)
    return 1


def _conclude(last: reconcile.Pass) -> int:
    problem = findings.unready(last.decision)
    if problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    say("stable")
    return 0


def _print_step(done: reconcile.Pass) -> None:
    if done.outcome is reconcile.Outcome.DONE and done.decision.step:
        say(f"{done.decision.step.do}: {done.decision.step.why}")


def _run(client: Client, chosen: argparse.Namespace, settings: Settings, meter: Meter) -> int:
    began = time.monotonic()
    asked = StopRequest()
    sink = logs.stream_sink(sys.stdout, chosen.log_format)
    log = logs.Logger(sink, now=_wall, strict=False).bind(component="certs")
    log.emit(Log.STARTING, version=_version(), settings=settings.flat())
    runtime = Runtime(time.monotonic, _wall, random.Random(), log, meter)  # noqa: S311 - for jitter
    reporter = Reporter(log, runtime.meter, _wall)
    alive = probes.LastGood(_max_age(settings), time.monotonic)
    loop = Loop(
        store.Store(client, settings),
        settings,
        reporter=reporter,
        clock=_wall,
        monotonic=time.monotonic,
        rng=runtime.rng,
        beat=alive.mark,
    )
    health = probes.Health()
    health.live("loop", alive)
    health.ready("certificates", reporter.unready)
    server = probes.ProbeServer(chosen.listen, health=health, meter=runtime.meter)
    server.start()
    log.emit(Log.LISTENING, address=server.shown)
    # One object each: a list is as good as a stream, and every right that is granted is used.
    reflectors = [
        Reflector(source, lambda _: loop.wake(), runtime=runtime, streaming=False)
        for source in store.sources(client, settings)
    ]
    for reflector in reflectors:
        reflector.start()
    loop.start()
    log.emit(Log.STOPPING, signal=asked.wait())
    # Tell everybody first, then wait: their threads are daemons, and a pass that is cut short is healed by the next.
    loop.stop(0)
    for reflector in reflectors:
        reflector.stop(0)
    server.stop()
    loop.stop()
    client.close()
    log.emit(Log.STOPPED, seconds=round(time.monotonic() - began, 3))
    return 0


def _max_age(settings: Settings) -> float:
    """A turn may take a dozen requests of ten seconds each before it is stuck rather than slow."""
    return 2 * settings.interval.total_seconds() + 12 * store.PATIENCE_SECONDS + 60.0


def _client(chosen: argparse.Namespace, meter: Meter | None = None) -> Client:
    connection = auth.as_kubectl(os.environ, Path.home(), kubeconfig=chosen.kubeconfig, context=chosen.context)
    return Client(connection, user_agent="spotshift-certs", meter=meter)


def _version() -> str:
    try:
        return metadata.version("spotshift")
    except metadata.PackageNotFoundError:
        return "0.1.0+source"


def _wall() -> datetime:
    return datetime.now(UTC)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, INTERRUPTED)
    sys.exit(main(sys.argv[1:]))
