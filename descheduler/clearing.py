"""The steps that take the product off a cluster, each of which can be repeated.   Sends requests, decides no marks.

The order matters and is told by `descheduler.cleanup`: first nothing new is begun, then what is under way is rolled
back or finished by whoever leads, then the programs are stopped, and only what is still there is taken back here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from cluster import errors
from cluster.client import Client
from cluster.resources import (
    CONFIGMAPS,
    DEPLOYMENTS,
    LEASES,
    MUTATINGWEBHOOKCONFIGURATIONS,
    NODES,
    PODMIGRATIONS,
    PODS,
    SECRETS,
    Resource,
)
from descheduler import removal
from descheduler.migration.outcomes import MANAGER
from descheduler.requests import Request
from descheduler.run import CONFIG_MAP, LEASE
from descheduler.writes import ClusterWrites
from policy import keys
from policy.settings import Settings

CONFIGURATION: Final = "spotshift-webhook"
PARTS: Final = "app.kubernetes.io/part-of=spotshift"
WRITERS: Final = f"{PARTS},app.kubernetes.io/component notin (cleanup, webhook)"
"""Programs that write and must be gone; a webhook that nobody asks any more may take its time to end."""
MADE: Final = (
    (LEASES, LEASE),
    (SECRETS, "spotshift-ca"),
    (SECRETS, "spotshift-webhook-tls"),
    (SECRETS, "spotshift-webhook-issuer"),
)
"""Objects in our own namespace that no manifest has: programs made them, or cert-manager did for us."""
QUIET_SECONDS: Final = 3.0
"""How long nothing must be seen of what was stopped: the stop is in force within two seconds, a leader renews its
Lease every two, and a request may be on its way."""
STOP_SECONDS: Final = 90.0
POLL_SECONDS: Final = 0.5
ROUNDS: Final = 6
"""Looks at everything; the last one must find nothing. Others write to the same objects, and win."""
THREADS: Final = 16


@dataclass(frozen=True, slots=True)
class Cleanup:
    """The steps, in their order; `tell` gets what people want to know."""

    client: Client
    namespace: str
    settings: Settings
    tell: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    rest: Callable[[float], None] = time.sleep

    def stop_admissions(self) -> None:
        """From now on pods are created as they were written."""
        if self._deleted(MUTATINGWEBHOOKCONFIGURATIONS, CONFIGURATION, None):
            self.tell("new pods are no longer changed")

    def stop_moves(self) -> None:
        """The emergency stop: moves before their eviction are called off, the others run to their end."""
        stop = {"metadata": {"annotations": {keys.under(self.settings.label_prefix).emergency_stop: "true"}}}
        with suppress(errors.NotFound):
            self.client.merge_patch(CONFIGMAPS, CONFIG_MAP, stop, namespace=self.namespace, field_manager=MANAGER)
            self.tell("no new moves are begun")

    def await_moves(self, seconds: float) -> bool:
        """Wait for moves to end; False if some have not when the time is over."""
        began = quiet_since = self.clock()
        before = -1
        while True:
            count = len(self.under_way())
            if count != before:
                self.tell(f"moves under way: {count}")
            before = count
            now = self.clock()
            quiet_since = now if count else quiet_since
            if not count and now - quiet_since >= QUIET_SECONDS:
                return True
            if now - began > seconds:
                return not count
            self.rest(POLL_SECONDS)

    def under_way(self) -> list[removal.Object]:
        """Moves that are not over: whoever takes part in one has our finalizer on it."""
        found = self._all(PODMIGRATIONS)
        return [it for it in found if keys.FINALIZER in (it["metadata"].get("finalizers") or ())]

    def stop_programs(self) -> bool:
        """End what could write again; False if it has not ended in time."""
        for deployment in self._all(DEPLOYMENTS, PARTS, self.namespace):
            name = deployment["metadata"]["name"]
            with suppress(errors.NotFound):
                self.client.patch_scale(DEPLOYMENTS, name, self.namespace, 0, field_manager=MANAGER)
                self.tell(f"deployment {name} is scaled to nothing")
        began, quiet_since, written = self.clock(), self.clock(), ""
        while self.clock() - began < STOP_SECONDS:
            left = [it["metadata"]["name"] for it in self._all(PODS, WRITERS, self.namespace)]
            seen = self._lease_version()
            if left or seen != written:
                quiet_since, written = self.clock(), seen
            if self.clock() - quiet_since >= QUIET_SECONDS:
                return True
            self.rest(POLL_SECONDS)
        self.tell(f"still at work after {STOP_SECONDS:g} s: {', '.join(left) or 'whoever renews the Lease'}")
        return False

    def _lease_version(self) -> str:
        """Changes as long as somebody leads: a sign of life also of a program whose pod is gone."""
        try:
            found: dict[str, Any] = self.client.get(LEASES, LEASE, namespace=self.namespace, metadata_only=True)
        except errors.NotFound:
            return ""
        return str(found["metadata"]["resourceVersion"])

    def sweep(self) -> bool:
        """Take back what is left, until nothing is; False if something stays. An object that refuses, for a right is
        missing or somebody's webhook says no, keeps no other from being swept, and is told once.
        """
        refused: set[str] = set()
        for _ in range(ROUNDS):
            wanted = list(self.left())
            if not wanted:
                return True
            with ThreadPoolExecutor(THREADS) as pool:
                for line, taken in pool.map(self._taken_back, wanted):
                    if taken or line not in refused:
                        self.tell(line)
                    if not taken:
                        refused.add(line)
        return not list(self.left())

    def left(self) -> Iterator[Request]:
        """What is to be taken back, as the cluster is now."""
        ours = keys.under(self.settings.label_prefix)
        for resource in removal.SWEPT:
            for found in self._all(resource):
                yield from removal.requests(resource, found, ours)

    def tell_asked(self) -> None:
        """Nodes that users asked to have emptied: the label is theirs and stays, but nobody reads it any more."""
        label = keys.under(self.settings.label_prefix).maintenance
        found = [it["metadata"]["name"] for it in self._all(NODES, f"{label}=true")]
        if found:
            names = " ".join(sorted(found))
            self.tell(f"label {label} is yours and stays on: {', '.join(sorted(found))}")
            self.tell(
                "  nobody drains these nodes any more, nor uncordons them: a cordon that is there now is not ours"
            )
            self.tell(f"  to take it off: kubectl label node {names} {label}-")

    def remove_made(self) -> None:
        """Objects of our own namespace that would outlive the manifests if the namespace does."""
        for resource, name in MADE:
            if self._deleted(resource, name, self.namespace):
                self.tell(f"{resource.plural} {name}: deleted")

    def _taken_back(self, request: Request) -> tuple[str, bool]:
        """What to tell, and whether it is worth telling again: not what was refused. Raises where nobody answers, or
        nobody knows us: the next would be no better.
        """
        told = removal.described(request)
        try:
            ClusterWrites(self.client)(request)
        except (errors.NotFound, errors.Conflict):
            return f"{told} (changed meanwhile, looked at again)", True
        except (errors.Unreachable, errors.Unauthorized):
            raise
        except errors.ApiError as refused:
            return f"{told} (refused: {refused})", False
        return told, True

    def _deleted(self, resource: Resource, name: str, namespace: str | None) -> bool:
        try:
            self.client.delete(resource, name, namespace=namespace)
        except errors.NotFound:
            return False
        return True

    def _all(self, resource: Resource, labels: str | None = None, namespace: str | None = None) -> Iterator[Any]:
        """Every object of a kind, page by page: a cluster has more pods than this process has memory. Nothing if the
        cluster does not know the kind; one seen twice, because a list had to begin anew, does no harm.
        """
        with suppress(errors.NotFound):
            # Of nodes the spec is needed as well.
            for page in self.client.pages(
                resource, label_selector=labels, namespace=namespace, metadata_only=resource is not NODES
            ):
                yield from page.items
