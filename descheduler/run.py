"""`python -m descheduler run`: the composition root of the loop; the environment is read here and nowhere else."""

from __future__ import annotations

import argparse
import logging
import os
import random
import secrets
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Final

from cluster import auth
from cluster.client import Client
from cluster.election import Timing
from cluster.eventlog import Subject
from cluster.events import ClusterEvents, Recorder
from cluster.lease import Elector
from cluster.live_settings import LiveSettings
from cluster.objects import PodMigration
from cluster.resources import PODMIGRATIONS
from cluster.runtime import Runtime
from cluster.stopping import StopRequest
from cluster.term import Callbacks, ClusterLease, Term
from descheduler import last_pass, publish, sync
from descheduler.brake import Brake
from descheduler.crew import Crew, Rank
from descheduler.loop import Loop, Parts
from descheduler.measuring import Measuring
from descheduler.migration.executor import Executor
from descheduler.migration.judge import Judge
from descheduler.migration.leftovers import Leftover
from descheduler.migration.migrator import Migrator
from descheduler.migration.outcomes import MANAGER, REQUEST_SECONDS
from descheduler.proposal import Move
from descheduler.sync import Live
from descheduler.telling import Teller
from descheduler.upkeep import Surroundings, Upkeep
from descheduler.usage_sources import MetricsApi, Sources
from descheduler.writes import ClusterWrites
from policy import convert, keys, names
from policy.mistakes import InvalidSettings
from policy.settings import Settings
from policy.settings_moves import Coordination
from telemetry import logs, probes
from telemetry.catalogue import Log
from telemetry.meter import Meter

LEASE: Final = names.DESCHEDULER
CONFIG_MAP: Final = names.SETTINGS
STOP_SECONDS: Final = 1.0
"""What each part gets to end; all of them together stay below two seconds."""


class ClusterMoves:
    """The requests of the loop on the real thing."""

    def __init__(self, client: Client, executor: Executor) -> None:
        self._client = client
        self._executor = executor

    def create(self, move: Move, now: datetime) -> PodMigration:
        """Write a planned move down."""
        return self._client.create(
            PODMIGRATIONS,
            publish.body(move, now),
            namespace=move.pod.metadata.namespace,
            type=PodMigration,
            field_manager=MANAGER,
            timeout=REQUEST_SECONDS,
        )

    def clear(self, leftover: Leftover) -> object:
        """Take back a mark; if it cannot be done now, the next look finds it again."""
        return self._executor.clear(*leftover)

    def delete(self, migration: PodMigration) -> None:
        """Forget a finished one."""
        meta = migration.metadata
        self._client.delete(PODMIGRATIONS, meta.name, namespace=meta.namespace, uid=meta.uid, timeout=REQUEST_SECONDS)


class Descheduler:
    """Everything that runs in the process."""

    def __init__(self, options: argparse.Namespace, runtime: Runtime, settings: Settings | None = None) -> None:
        """Without `settings`: those of the file that `options` name, which is followed, or the defaults."""
        connection = connect(options)
        identity = options.identity or f"{socket.gethostname()}_{secrets.token_hex(4)}"
        self._term: Term | None = None
        self._runtime = runtime
        self._watching = Client(connection, rate_limit=None, user_agent="spotshift-descheduler")
        self._acting = Client(connection, rate_limit=None, user_agent="spotshift-descheduler")
        self._electing = Client(connection, rate_limit=None, user_agent="spotshift-descheduler")
        self._recorder = Recorder(
            ClusterEvents(self._acting), controller="spotshift.dev/descheduler", instance=identity, runtime=runtime
        )
        self._follow = self._following(options)
        if settings is None:
            settings = Settings() if self._follow is None else self._follow.current
        self._settings = settings
        self._pool = ThreadPoolExecutor(settings.migrations.workers, thread_name_prefix="move")
        self.brake = Brake(
            self._watching,
            options.namespace,
            CONFIG_MAP,
            key=lambda: keys.under(self._settings.label_prefix).emergency_stop,
            wake=self._wake,
            runtime=runtime,
            needed=options.settings is not None,
        )
        self._measuring = Measuring(Sources(MetricsApi(self._acting)), lambda: self._settings, runtime=runtime)
        teller = Teller(
            self._recorder, runtime.meter, runtime.log, guided=self._guided, settings=_settings_object(options)
        )
        judge = Judge(lambda: self._settings, self.brake.said, holder=identity)
        executor = Executor(self._acting, keys.under(settings.label_prefix))
        self._crew = Crew()
        migrator = Migrator(
            executor.perform,
            judge,
            teller,
            pool=self._pool,
            wake=self._wake,
            leading=self._leading,
            stopped=self._held,
            crew=self._crew,
        )
        upkeep = Upkeep(
            ClusterWrites(self._acting),
            Surroundings(
                settings=lambda: self._settings,
                stopped=self.brake.why,
                leading=self._leading,
                pool=self._pool,
                wake=self._wake,
                recorder=self._recorder,
                meter=runtime.meter,
                log=runtime.log,
                hurried=self._crew.at(Rank.EVICT),
            ),
        )
        self.loop = Loop(
            Parts(
                migrator=migrator,
                upkeep=upkeep,
                api=ClusterMoves(self._acting, executor),
                teller=teller,
                pool=self._pool,
                wake=self._wake,
                settings=lambda: self._settings,
                stopped=self.brake.why,
                leading=self._leading,
                usage=self._measuring.usage,
                clock=runtime.clock,
                wall=runtime.wall,
                hurried=self._crew.at(Rank.CREATE),
            )
        )
        self.live = Live(sync.sources(self._watching), settings, self.loop.turn, runtime=runtime)
        lease = ClusterLease(self._electing, options.namespace, LEASE)
        self.elector = Elector(
            lease,
            Callbacks(lead=self._lead),
            identity=identity,
            timing=timing(options),
            runtime=runtime,
            notes=lambda: last_pass.notes(self.loop.last_pass),
        )

    @property
    def settings(self) -> Settings:
        """The version in force."""
        return self._settings

    def start(self) -> None:
        """Begin to watch and to stand for election."""
        self._recorder.start()
        self.brake.start()
        self._measuring.start()
        if self._follow is not None:
            self._follow.start()
        self.live.start()
        self.elector.start()

    def stop(self) -> None:
        """Nothing new is begun, the lease is handed back, requests that are under way are finished."""
        self.elector.stop(STOP_SECONDS)
        if self._follow is not None:
            self._follow.stop()
        self.brake.stop()
        self._measuring.stop()
        self.live.stop()
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._crew.stop()
        self._recorder.stop(STOP_SECONDS / 2)
        for client in (self._watching, self._acting, self._electing):
            client.close()

    def configure(self, settings: Settings) -> None:
        """Other settings from now on."""
        self._settings = settings
        self.live.configure(settings)

    def _following(self, options: argparse.Namespace) -> LiveSettings | None:
        if options.settings is None:
            return None
        return LiveSettings(
            options.settings,
            subject=_settings_object(options),
            recorder=self._recorder,
            runtime=self._runtime,
            on_change=self.configure,
        )

    def _wake(self) -> None:
        self.live.wake()

    def _held(self) -> str:
        return self.loop.held()

    def _guided(self) -> bool:
        return self._settings.migrations.coordination is Coordination.GUIDED

    def _leading(self) -> bool:
        term = self._term
        return term is not None and term.active()

    def _lead(self, term: Term) -> None:
        """The work is done in turns; this only says whose turn it is."""
        self._term = term
        self.live.wake()
        while not term.wait(3600):
            pass
        self._term = None


def run(options: argparse.Namespace) -> int:
    """Run until SIGTERM."""
    began = time.monotonic()
    asked = StopRequest()
    level = logs.LEVELS[options.log_level]
    log = logs.Logger(logs.stream_sink(sys.stdout, options.log_format), now=_wall, strict=False, level=level)
    log = log.bind(component="descheduler")
    logging.getLogger().addHandler(logs.LibraryHandler(log))
    meter = Meter(strict=False, process=True)
    runtime = Runtime(_monotonic, _wall, random.Random(), log, meter)  # noqa: S311 - for jitter
    try:
        process = Descheduler(options, runtime)
    except (auth.LoginError, OSError, InvalidSettings) as wrong:
        lines = [str(it) for it in wrong.mistakes] if isinstance(wrong, InvalidSettings) else [str(wrong)]
        for line in lines:
            sys.stderr.write(f"error: {line}\n")
        return 1
    log.emit(Log.STARTING, version=_version(), settings=convert.flatten(convert.to_plain(process.settings)))
    health = probes.Health()
    health.ready("state", process.live.problem)
    health.ready("emergency stop", process.brake.problem)
    health.live("lease", process.elector.problem)
    server = probes.ProbeServer(options.probes, health=health, meter=meter)
    server.start()
    log.emit(Log.LISTENING, address=server.shown)
    process.start()
    log.emit(Log.STOPPING, signal=asked.wait())
    process.stop()
    server.stop()
    log.emit(Log.STOPPED, seconds=round(time.monotonic() - began, 3))
    # Threads that wait for an answer would hold the process up; what they asked for is safe to repeat.
    sys.stdout.flush()
    os._exit(0)


def timing(options: argparse.Namespace) -> Timing:
    """The usual one, shortened in proportion where somebody asks for a shorter lease."""
    seconds: int | None = options.lease_seconds
    if seconds is None:
        return Timing()
    return Timing(
        lease_seconds=seconds,
        renew_deadline=seconds * 0.66,
        renew_period=seconds * 0.14,
        poll_period=seconds * 0.07,
        request_timeout=seconds * 0.2,
    )


def connect(options: argparse.Namespace) -> auth.Connection:
    """By kubectl's rules, or as a pod."""
    return auth.as_kubectl(os.environ, Path.home(), kubeconfig=options.kubeconfig, context=options.context)


def _settings_object(options: argparse.Namespace) -> Subject:
    return Subject("v1", "ConfigMap", CONFIG_MAP, options.namespace)


def _monotonic() -> float:
    """Goes on while the machine is suspended, as leases do."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _version() -> str:
    try:
        return metadata.version("spotshift")
    except metadata.PackageNotFoundError:
        return "0.1.0+source"


def _wall() -> datetime:
    return datetime.now(UTC)
