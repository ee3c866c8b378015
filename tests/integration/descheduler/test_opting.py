"""Opting in and out on a real apiserver: every level, as label and as annotation, every pair that contradicts,
changed while the state is kept from watches. What is expected is written down here a second time, apart from the
product.
"""

import itertools
import random
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

import pytest

from cluster import auth
from cluster.client import Client
from cluster.objects import Deployment
from cluster.runtime import Runtime
from cluster.source import ClusterSource
from descheduler import guards, kinds, plan
from descheduler.proposal import Urgency
from descheduler.state import ClusterState
from descheduler.sync import Live
from policy import keys
from policy.settings import Placement, Settings
from policy.settings_moves import Limits
from policy.values import Rescheduling
from telemetry.logs import Logger
from telemetry.meter import Meter
from testbed import objects
from testbed.api import Api
from testbed.bed import ControlPlane
from testbed.pytest_plugin import CONFINED, Nodes
from testbed.waiting import eventually

OURS = keys.under()
KEY = OURS.rescheduling
ENABLED, DISABLED = "enabled", "disabled"
BASE = Settings(limits=Limits(min_pod_age=timedelta()), enabled_strategies=("NodeMaintenance", "LoadBalancing"))
OPT_IN = Settings(
    limits=BASE.limits,
    enabled_strategies=BASE.enabled_strategies,
    placement=Placement(rescheduling=Rescheduling.DISABLED),
)


class Level(StrEnum):
    POD = "pods"
    WORKLOAD = "deployments"
    NAMESPACE = "namespaces"
    NODE = "nodes"


Place = tuple[Level, str]
"""An object and `labels` or `annotations`."""
Said = Mapping[Place, str]
PLACES: tuple[Place, ...] = tuple(itertools.product(Level, ("labels", "annotations")))
CONFLICTS: list[dict[Place, str]] = [
    {one: first, other: second}
    for one, other in itertools.combinations(PLACES, 2)
    for first, second in ((ENABLED, DISABLED), (DISABLED, ENABLED))
]
SINGLES: list[dict[Place, str]] = [{place: word} for place in PLACES for word in (ENABLED, DISABLED)]


def held(said: Said, settings: Settings) -> dict[Urgency, bool]:
    """Whether an opt-out holds the pod back, by the table of docs/opting-out.md."""
    on_node = DISABLED in {word for (level, _), word in said.items() if level is Level.NODE}
    for level in (Level.POD, Level.WORKLOAD, Level.NAMESPACE):
        words = {word for (where, _), word in said.items() if where is level}
        if words:
            out = DISABLED in words
            return {
                Urgency.VOLUNTARY: out or on_node,
                Urgency.MAINTENANCE: out,
                Urgency.INTERRUPTION: False,
            }
    opt_in = settings.placement.rescheduling is Rescheduling.DISABLED
    return {Urgency.VOLUNTARY: opt_in or on_node, Urgency.MAINTENANCE: False, Urgency.INTERRUPTION: False}


@dataclass(frozen=True)
class Seen:
    """What one turn saw: how new its objects were, what the guards said, and what became of the pod in the plan."""

    settings: Settings
    versions: Mapping[Level, int]
    rolled_out: bool
    """An annotation on a Deployment is a new generation of it, which its controller has to take up first."""
    codes: Mapping[Urgency, tuple[str, ...]]
    moved_by: str | None
    refused: tuple[str, ...]


@dataclass
class World:
    """A pod that should move, from a node that is too full to one that is empty, and somebody who watches it."""

    kube: Api
    namespace: str
    pod: str
    node: str
    settings: Settings = BASE
    said: Said = field(default_factory=dict)
    versions: dict[Level, int] = field(default_factory=dict)
    seen: Seen | None = None

    def turn(self, state: ClusterState) -> None:
        """On the thread of the state."""
        now = datetime.now(UTC)
        pod = state.pods[self.namespace, self.pod]
        workload = state.workload(pod)
        node = state.nodes[self.node].node
        assert workload is not None
        assert isinstance(workload.object, Deployment)
        assert node is not None
        met: dict[Level, Any] = {
            Level.POD: pod,
            Level.WORKLOAD: workload.object,
            Level.NAMESPACE: state.namespaces[self.namespace],
            Level.NODE: node,
        }
        settings = self.settings
        context = guards.Context(state, settings, OURS, now, {})
        made = plan.make(state, settings, now)
        mine = pod.metadata.key
        self.seen = Seen(
            settings,
            {level: int(it.metadata.resource_version) for level, it in met.items()},
            workload.object.status.observed_generation == workload.object.metadata.generation,
            {urgency: tuple(it.code for it in guards.reasons(pod, context, urgency)) for urgency in Urgency},
            next((it.strategy for it in made.moves if it.pod.metadata.key == mine), None),
            tuple(it.code for no in made.refusals if no.pod.metadata.key == mine for it in no.reasons),
        )

    def say(self, said: Said) -> None:
        """Change the objects so that they say this and nothing else."""
        for level in Level:
            changed = {
                where: {KEY: said.get((level, where))}
                for where in ("labels", "annotations")
                if said.get((level, where)) != self.said.get((level, where))
            }
            if changed:
                self._patch(level, changed)
        self.said = said

    def label_node(self, value: str | None) -> None:
        self._patch(Level.NODE, {"labels": {OURS.maintenance: value}})

    def _patch(self, level: Level, metadata: Mapping[str, Any]) -> None:
        name = {Level.POD: self.pod, Level.WORKLOAD: "web", Level.NAMESPACE: self.namespace, Level.NODE: self.node}
        where = self.namespace if level in {Level.POD, Level.WORKLOAD} else None
        done = self.kube.patch(level.value, name[level], {"metadata": metadata}, where)
        self.versions[level] = int(done["metadata"]["resourceVersion"])

    def look(self) -> Seen:
        """What a turn saw that knew of all changes made so far."""

        def knows(seen: Seen | None) -> bool:
            return (
                seen is not None
                and seen.settings is self.settings
                and seen.rolled_out
                and all(seen.versions[level] >= version for level, version in self.versions.items())
            )

        seen = eventually(lambda: self.seen, until=knows, interval=0.01, what="a turn that knows of the change")
        assert seen is not None
        return seen


def deployment(name: str, cpu: str, **options: Any) -> Any:
    return objects.deployment(name, cpu=cpu, **options)


@pytest.fixture
def client(cluster: ControlPlane) -> Iterator[Client]:
    made = Client(auth.connect(cluster.kubeconfig))
    yield made
    made.close()


@pytest.fixture
def world(client: Client, kube: Api, namespace: str, nodes: Nodes) -> Iterator[tuple[World, Live]]:
    """Six of eight cpus of the first node are asked for, two of them by the one pod that may move."""
    full = nodes.make(on_demand=1)[0]
    ballast = deployment("ballast", "4", annotations={keys.SAFE_TO_EVICT: "false"})
    for body in (deployment("web", "2"), ballast):
        kube.create("deployments", body, namespace)
    running = eventually(
        lambda: kube.list("pods", namespace),
        until=lambda pods: len(pods) == 2 and all(objects.is_ready(it) for it in pods),
        what="both pods",
    )
    nodes.make(on_demand=1)
    name = next(it["metadata"]["name"] for it in running if it["metadata"]["labels"]["app"] == "web")
    made = World(kube, namespace, name, full)
    log = Logger(lambda _line: None, now=lambda: datetime.now(UTC), strict=True)
    runtime = Runtime(time.monotonic, lambda: datetime.now(UTC), random.Random(1), log, Meter(strict=True))
    narrowed: list[tuple[kinds.Watched, Any]] = [
        (kind, ClusterSource(client, kind.resource, kind.type, namespace=namespace))
        for kind in (kinds.PODS, kinds.DEPLOYMENTS, kinds.REPLICASETS, kinds.PDBS)
    ]
    own = ClusterSource[Any](client, kinds.NODES.resource, kinds.NODES.type, label_selector=f"{CONFINED}={namespace}")
    all_namespaces = ClusterSource[Any](client, kinds.NAMESPACES.resource, kinds.NAMESPACES.type)
    live = Live((*narrowed, (kinds.NODES, own), (kinds.NAMESPACES, all_namespaces)), BASE, made.turn, runtime=runtime)
    live.start()
    assert live.wait_synced(20)
    yield made, live
    live.stop()


def check(world: World) -> None:
    seen = world.look()
    expected = held(world.said, world.settings)
    told = {urgency: "OPTED_OUT" in codes for urgency, codes in seen.codes.items()}
    assert told == expected, (world.said, seen)
    assert all(set(codes) <= {"OPTED_OUT"} for codes in seen.codes.values()), seen
    if expected[Urgency.VOLUNTARY]:
        assert (seen.moved_by, set(seen.refused)) == (None, {"OPTED_OUT"}), (world.said, seen)
    else:
        assert (seen.moved_by, seen.refused) == ("LoadBalancing", ()), (world.said, seen)


def test_every_word_alone_and_every_pair_that_contradicts(world: tuple[World, Live]) -> None:
    """From one to the next in any order, so that words are also taken back and turned round."""
    mine, _ = world
    cases = [{}, *SINGLES, *CONFLICTS]
    random.Random(4).shuffle(cases)
    for said in cases:
        mine.say(said)
        check(mine)
    assert len(cases) == 1 + 16 + 56


def test_moves_as_opt_in(world: tuple[World, Live]) -> None:
    """The settings say no, so only a word counts; and the settings themselves change while it runs."""
    mine, live = world
    cases = [{}, *SINGLES]
    random.Random(5).shuffle(cases)
    for said, settings in itertools.product(cases, (OPT_IN, BASE)):
        mine.settings = settings
        live.configure(settings)
        mine.say(said)
        check(mine)


def test_a_drain_leaves_what_its_owner_opted_out(world: tuple[World, Live]) -> None:
    mine, _ = world
    mine.label_node("true")
    for said in ({}, *SINGLES):
        mine.say(said)
        seen = mine.look()
        if held(said, BASE)[Urgency.MAINTENANCE]:
            assert (seen.moved_by, set(seen.refused)) == (None, {"OPTED_OUT"}), (said, seen)
        else:
            assert (seen.moved_by, seen.refused) == ("NodeMaintenance", ()), (said, seen)
    mine.say({})
    mine.label_node(None)
    assert mine.look().moved_by == "LoadBalancing"
