"""A pod on its own that is being copied: seen by the real judge, and with an API that evicts as Kubernetes does."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import msgspec

from descheduler.budgets import Budgets
from descheduler.migration import failing, machine
from descheduler.migration.actions import Action, CreateCopy, Done, Evict, RemoveCopy
from descheduler.migration.judge import Judge
from descheduler.migration.outcomes import Failure
from descheduler.reasons import Code
from policy.settings import Settings
from tests.unit.descheduler import build, test_recreate
from tests.unit.descheduler.test_recreate import KEYS

APP = {"app": "web"}
OURS = {**APP, KEYS.rescheduling: "enabled"}
DENIED = Failure("admission webhook denied it")
NEVER: dict[str, Any] = {"allowed": 0, "labels": APP, "status": {"expectedPods": 0, "desiredHealthy": 0}}
"""A budget with `maxUnavailable`, of pods without a controller: Kubernetes counts none that it expects."""
A_DAY = timedelta(hours=24)


@dataclass
class Scene(test_recreate.Cluster):
    """One move, played against the clock."""

    webhook: set[str] = field(default_factory=set)
    """Pods that somebody's webhook does not let go."""
    denial: Failure = DENIED
    refused: list[str] = field(default_factory=list)

    def look(self, **_: Any) -> Any:
        return Judge(Settings, lambda: "", holder="one")(self.migration, self.state, self.now)

    def decide(self, **_: Any) -> Action:
        return machine.step(self.migration, self.look(), self.now)

    def carry_out(self, action: Action) -> None:
        refusal = self._refusal(action)
        if refusal is None:
            return super().carry_out(action)
        if isinstance(action, Evict | RemoveCopy):
            self.refused.append(action.name)
        self.now += timedelta(milliseconds=100)
        super().carry_out(failing.failed(self.migration, self.look(), refusal, self.now))
        return None

    def _refusal(self, action: Action) -> Failure | None:
        if not isinstance(action, Evict | RemoveCopy):
            return None
        pod = self.state.pods.get(("default", action.name))
        evicted = isinstance(action, Evict)
        if action.name in self.webhook:
            return replace(self.denial, eviction=evicted)
        said = Budgets(self.state).reasons(pod) if pod is not None else ()
        if not said:
            return None
        several = said[0].code is Code.PDB_MULTIPLE
        return Failure(str(said[0]), final=several, several=several, blocked=not several, eviction=evicted)

    def _create(self, action: CreateCopy) -> None:
        super()._create(action)
        copy = self.state.pods["default", action.name]
        labels = {**copy.metadata.labels, **OURS}
        notes = {**copy.metadata.annotations, KEYS.original_pod_name: action.source}
        self.change(action.name, metadata=msgspec.structs.replace(copy.metadata, labels=labels, annotations=notes))

    def change(self, name: str, **more: Any) -> None:
        """Something about a pod."""
        pod = self.state.pods["default", name]
        self.state.apply(pod, msgspec.structs.replace(pod, **more))

    def becomes(self, name: str, *, ready: bool) -> None:
        """Ready, or no longer so."""
        found = build.pod(name, on="x", ready=ready)
        self.change(name, status=found.status, ready_since=found.ready_since)

    def remove(self, name: str) -> None:
        """Its owner deletes it."""
        self.state.apply(self.state.pods["default", name], None)

    def node(self, name: str = "a", **more: Any) -> None:
        """As it is now."""
        known = self.state.nodes.get(name)
        self.state.apply(known.node if known is not None else None, build.node(name, **more))

    def until(self, step: str) -> None:
        """Go on to a step."""
        for _ in range(200):
            if self.migration.status.step == step:
                return
            self.carry_out(self.decide())
        raise AssertionError(self.migration.status)

    def play(self, length: timedelta = A_DAY) -> datetime:
        """For so long, or to its end; when that was."""
        until = self.now + length
        while self.now < until and not isinstance(action := self.decide(), Done):
            self.carry_out(action)
        return self.now


def scene(
    *budgets: Any, strategy: str = "SpotInterruption", node: dict[str, Any] | None = None, **more: Any
) -> Scene:
    """A move of pod web off node a, with what `node` says of it."""
    spec = {"podRef": {"name": "web"}, "targetNode": "b", "strategy": strategy}
    move = build.thing("PodMigration", "migration-1-x", spec=spec)
    web = build.pod("web", on="a", labels=OURS)
    return Scene(build.state(build.node("a", **(node or {})), build.node("b"), web, *budgets, move), **more)
