"""The Lease as the elector needs it, what one term of leading is, and what is called when it begins and ends."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from cluster.client import Client
from cluster.resources import LEASES


class LeaseApi(Protocol):
    """The three calls that are needed, on one named Lease. Each raises ApiError."""

    def get(self, timeout: float) -> dict[str, Any]: ...
    def create(self, body: dict[str, Any], timeout: float) -> dict[str, Any]: ...
    def replace(self, body: dict[str, Any], timeout: float) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class ClusterLease:
    """LeaseApi on the real thing. Give it a client of its own: renewals must not queue behind other work."""

    client: Client
    namespace: str
    name: str

    def get(self, timeout: float) -> dict[str, Any]:
        """Read it."""
        found: dict[str, Any] = self.client.get(LEASES, self.name, namespace=self.namespace, timeout=timeout)
        return found

    def create(self, body: dict[str, Any], timeout: float) -> dict[str, Any]:
        """Make it; AlreadyExists if somebody was faster."""
        named = {**body, "metadata": {**body.get("metadata", {}), "name": self.name}}
        full = {"apiVersion": LEASES.api_version, "kind": LEASES.kind, **named}
        made: dict[str, Any] = self.client.create(LEASES, full, namespace=self.namespace, timeout=timeout)
        return made

    def replace(self, body: dict[str, Any], timeout: float) -> dict[str, Any]:
        """Put it; Conflict if it changed."""
        put: dict[str, Any] = self.client.replace(LEASES, self.name, body, namespace=self.namespace, timeout=timeout)
        return put


class Term:
    """One time of leading, as its work sees it."""

    def __init__(self, number: int, leading: Callable[[], bool]) -> None:
        self.number = number
        self._leading = leading
        self._lost = threading.Event()
        self._finished = threading.Event()

    def active(self) -> bool:
        """Whether this term still runs, by the clock and now. Ask before every step with an effect."""
        return not self._lost.is_set() and self._leading()

    def wait(self, seconds: float) -> bool:
        """Sleep, but not beyond the end of the term; True if it has ended."""
        return self._lost.wait(seconds)

    # ---- for the elector

    def end(self) -> None:
        """Tell the work to stop."""
        self._lost.set()

    def finish(self) -> None:
        """The work has stopped."""
        self._finished.set()

    def finished(self, timeout: float) -> bool:
        """Whether the work has stopped, waiting for it that long."""
        return self._finished.wait(timeout)


@dataclass(frozen=True, slots=True)
class Callbacks:
    """What the elector calls. For every term `lead` once, and then `stopped` once."""

    lead: Callable[[Term], None]
    """The work of a term, on a thread of its own. It should return soon after the term has ended; if it returns or
    raises earlier, the lease is handed back.
    """
    stopped: Callable[[str], None] = lambda _reason: None
    """A term has ended: expired, superseded, workEnded or stopping. Must return at once."""
