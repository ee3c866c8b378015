"""The settings in force, kept up to date with their file while the process runs.

Whoever builds itself from settings takes `current`: a file that is read a second time may be another version by then,
and what is read here first is never told as a change.

A change that is good takes effect; one that is bad changes nothing and is told three ways: a log line for each
mistake, an Event on the object the file comes from, and a gauge that stays up until the file is good again.
"""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

from cluster.eventlog import Severity, Subject, Topic
from cluster.runtime import Runtime
from policy import convert
from policy.mistakes import InvalidSettings, Mistake
from policy.reload import Loaded, Rejected, SettingsFile
from policy.settings import Settings
from telemetry.catalogue import Log
from telemetry.metrics import Metric

POLL_SECONDS: Final = 0.5
"""Reading one small file. A file that is written in place needs two looks, and the emergency stop in it must work
within two seconds: half of them is left for a busy machine."""
REJECTED: Final = Topic("SettingsRejected", "Reload", Severity.WARNING)
RELOADED: Final = Topic("SettingsReloaded", "Reload")


class Recorder(Protocol):
    """Who tells users: `cluster.events.Recorder`."""

    def record(self, subject: Subject, topic: Topic, note: str) -> bool: ...


class LiveSettings:
    """Read `current` as often as you like: it is always a whole, valid version."""

    def __init__(
        self,
        path: Path,
        *,
        subject: Subject,
        recorder: Recorder,
        runtime: Runtime,
        on_change: Callable[[Settings], None] = lambda _: None,
    ) -> None:
        """Load the file for the first time; a bad one raises `InvalidSettings`, because there is no older version.

        `subject` is what the file comes from (the ConfigMap), `on_change` is called with each later version; a
        receiver that is made from the first one is set before `start`.
        """
        self._file = SettingsFile(path)
        self._subject = subject
        self._recorder = recorder
        self._log = runtime.log
        self._meter = runtime.meter
        self.on_change = on_change
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="settings", daemon=True)
        self._file.poll()
        if self._file.settings is None:
            raise InvalidSettings(self._file.mistakes)
        self._count("loaded", rejected=False)

    @property
    def current(self) -> Settings:
        """The version in force."""
        settings = self._file.settings
        assert settings is not None  # noqa: S101 - the constructor saw to it, and a good version is only replaced
        return settings

    def start(self) -> None:
        """Begin to follow the file."""
        self._thread.start()

    def stop(self) -> None:
        """Stop following it; the settings stay as they are."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()

    def poll(self) -> None:
        """Look at the file once."""
        match self._file.poll():
            case Loaded(settings):
                self._count("loaded", rejected=False)
                self._log.emit(Log.SETTINGS_RELOADED, settings=convert.flatten(convert.to_plain(settings)))
                self._recorder.record(self._subject, RELOADED, "The new settings are in force.")
                self.on_change(settings)
            case Rejected(mistakes):
                self._count("rejected", rejected=True)
                self._tell(mistakes)

    def _tell(self, mistakes: tuple[Mistake, ...]) -> None:
        for mistake in mistakes:
            self._log.emit(Log.SETTINGS_REJECTED, count=len(mistakes), field=mistake.path, detail=str(mistake))
        told = "; ".join(str(mistake) for mistake in mistakes)
        self._recorder.record(
            self._subject, REJECTED, f"The old settings stay in force. {len(mistakes)} wrong: {told}"
        )

    def _count(self, result: str, *, rejected: bool) -> None:
        self._meter.inc(Metric.SETTINGS_LOADS, result=result)
        self._meter.set(Metric.SETTINGS_REJECTED, float(rejected))

    def _run(self) -> None:
        while not self._stop.wait(POLL_SECONDS):
            try:
                self.poll()
            except Exception as error:  # noqa: BLE001 - outermost place: the emergency stop must go on being read
                self._log.emit(Log.INTERNAL_ERROR, error=error, traceback=error)
                self._meter.inc(Metric.INTERNAL_ERRORS)
