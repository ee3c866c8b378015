"""What the kubelet and a scraper may ask: is it alive, is it ready, what are its numbers.

`Health` is a set of named questions, `answer` turns a path into a response without any server, and
`ProbeServer` is the smallest server for processes that have none of their own. Nothing here decides to
restart anything.
"""

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import AI_PASSIVE, SOCK_STREAM, getaddrinfo
from typing import Final

from telemetry import listening, scrub
from telemetry.meter import Meter

Check = Callable[[], str | None]
"""None if all is well, else one sentence that says what is not."""

CLIENT_SECONDS: Final = 5.0
"""A client that does not send or read for so long is dropped."""


@dataclass(frozen=True, slots=True)
class Report:
    """The answer to one probe, every failed check by name."""

    failed: tuple[tuple[str, str], ...]

    @property
    def ok(self) -> bool:
        """Whether every check passed."""
        return not self.failed

    def render(self) -> str:
        """For a person with curl."""
        return "ok\n" if self.ok else "".join(f"{name}: {why}\n" for name, why in self.failed)


class Health:
    """Named checks for two questions. Failing liveness asks for a restart; failing readiness asks to wait."""

    def __init__(self) -> None:
        self._live: dict[str, Check] = {}
        self._ready: dict[str, Check] = {}

    def live(self, name: str, check: Check) -> None:
        """Add a reason to be restarted. Never add one that a restart does not cure, such as an absent apiserver."""
        self._live[name] = check

    def ready(self, name: str, check: Check) -> None:
        """Add a reason not to be used yet, such as a reflector that has not synced."""
        self._ready[name] = check

    def liveness(self) -> Report:
        """All liveness checks, run now."""
        return _run(self._live)

    def readiness(self) -> Report:
        """All readiness and all liveness checks: who should be restarted should not be used either."""
        ready, live = _run(self._ready), _run(self._live)
        return Report(tuple(sorted((*ready.failed, *live.failed))))


class LastGood:
    """Liveness of a loop: the last pass that ended well must not be older than `max_age` seconds.

    Counts from its creation, so a loop that never gets through its first pass is noticed too. A standby
    replica has no passes: it pauses the check, and counts anew when it resumes.
    """

    def __init__(self, max_age: float, clock: Callable[[], float]) -> None:
        self._max_age = max_age
        self._clock = clock
        self._at: float | None = clock()

    def mark(self) -> None:
        """A pass ended well."""
        self._at = self._clock()

    def pause(self) -> None:
        """No passes are expected from now on."""
        self._at = None

    resume = mark

    def age(self) -> float:
        """Seconds since the last good pass; 0 while paused."""
        at = self._at
        return 0.0 if at is None else self._clock() - at

    def __call__(self) -> str | None:
        age = self.age()
        return (
            None if age <= self._max_age else f"last good pass {age:.0f} s ago, at most {self._max_age:.0f} s allowed"
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP response."""

    status: int
    content_type: str
    body: bytes


def answer(path: str, *, health: Health, meter: Meter, accept: str = "") -> Answer:
    """The three endpoints, for whatever server there is."""
    route = path.partition("?")[0]
    if route == "/metrics":
        return Answer(200, *meter.render(accept))
    if route not in {"/healthz", "/readyz"}:
        return Answer(404, "text/plain; charset=utf-8", b"not found\n")
    report = health.liveness() if route == "/healthz" else health.readiness()
    return Answer(200 if report.ok else 503, "text/plain; charset=utf-8", report.render().encode())


class ProbeServer:
    """/metrics, /healthz and /readyz on an address of their own. Bound when made, so a taken port fails at once."""

    def __init__(self, address: tuple[str, int], *, health: Health, meter: Meter) -> None:
        """An empty host is every address of the machine, IPv6 and IPv4 where it has both; `0.0.0.0` is IPv4 only."""
        self._server = _Server(address, _handler(health, meter))
        self._thread = threading.Thread(target=self._server.serve_forever, name="probes", daemon=True)

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens; the port is real even if 0 was asked for."""
        host, port = self._server.server_address[:2]
        return str(host), int(port)

    @property
    def shown(self) -> str:
        """The address as people write it."""
        return listening.shown(*self.address)

    def start(self) -> None:
        """Serve from a thread of its own."""
        self._thread.start()

    def stop(self) -> None:
        """Close the listener and every connection; returns within a second."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()
        self._server.connections.drop_all()


class _Server(listening.Limited, ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = listening.MAX_CONNECTIONS

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self.connections = listening.Connections()
        self._host, port = listening.where(address[0]), address[1]
        self.address_family = int(getaddrinfo(self._host, port, type=SOCK_STREAM, flags=AI_PASSIVE)[0][0])
        super().__init__((self._host, port), handler)

    def server_bind(self) -> None:
        listening.answer_both(self.socket, self._host)
        super().server_bind()


def _handler(health: Health, meter: Meter) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = CLIENT_SECONDS
        protocol_version = "HTTP/1.1"
        server_version = "spotshift"
        sys_version = ""

        def do_GET(self) -> None:
            found = answer(self.path, health=health, meter=meter, accept=self.headers.get("Accept", ""))
            self.send_response(found.status)
            self.send_header("Content-Type", found.content_type)
            self.send_header("Content-Length", str(len(found.body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(found.body)

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Probes come every few seconds; they are not worth a line."""

    return Handler


def _run(checks: dict[str, Check]) -> Report:
    return Report(tuple(_failures(checks.items())))


def _failures(checks: Iterable[tuple[str, Check]]) -> Iterable[tuple[str, str]]:
    for name, check in sorted(checks):
        try:
            why = check()
        except Exception as error:  # noqa: BLE001 - a check that cannot answer has not passed
            why = scrub.error(error)
        if why is not None:
            yield name, why
