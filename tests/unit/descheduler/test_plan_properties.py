"""What holds for every plan, on generated clusters, judged by rules written down a second time."""

import math
import random
from collections import Counter
from datetime import UTC, datetime

import msgspec
import pytest

from cluster.objects import Pod
from descheduler import plan
from descheduler.limits import by_replicas
from descheduler.plan import Plan
from descheduler.proposal import Mode
from policy.keys import CAPACITY
from policy.settings import Settings
from policy.settings_moves import Limits
from tests.effort import many
from tests.unit.descheduler import build, generated, naive
from tests.unit.descheduler.generated import World

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SEEDS = range(many(60))
UNLIMITED = 100_000
LATE = 4
"""Passes beyond those that the limit asks for."""


def settings_of(seed: int) -> Settings:
    rng = random.Random(seed)
    limits = Limits(per_node=rng.randint(1, 6), per_namespace=rng.randint(1, 12))
    return Settings(max_reschedule_pods=rng.randint(1, 12), limits=limits)


def planned(world: World, settings: Settings) -> Plan:
    return plan.make(build.state(*world.objects, settings=settings), settings, NOW)


@pytest.fixture(scope="module", params=SEEDS, ids=lambda seed: f"seed{seed}")
def case(request: pytest.FixtureRequest) -> tuple[World, Settings, Plan, list[Pod]]:
    world, settings = generated.world(request.param), settings_of(request.param)
    made = planned(world, settings)
    return world, settings, made, generated.applied(world.pods, made.moves)


Case = tuple[World, Settings, Plan, list[Pod]]


def test_no_node_holds_more_than_it_can(case: Case) -> None:
    world, _, _, after = case
    for node in world.nodes:
        assert all(held <= room for held, room in zip(naive.used(node, after), naive.offered(node), strict=True))


def test_no_required_rule_is_broken(case: Case) -> None:
    world, _, made, after = case
    nodes = {node.metadata.name: node for node in world.nodes}
    for move in made.moves:
        assert move.target is not None
        found = naive.broken(move.pod, nodes[move.target], world.nodes, after)
        assert [it for it in found if not it.startswith("skew")] == []
        assert not found or not _more_uneven(move.pod, world, after)


def _more_uneven(pod: Pod, world: World, after: list[Pod]) -> bool:
    """A workload that was too uneven before may still be, but not more than it was. A plan reckons with the places
    that pods of it are about to take that wait for one: here, those that make it the most even.
    """
    for constraint in pod.spec.topology_spread_constraints:
        skews = []
        for pods in (world.pods, after):
            counts = naive.domains(pod, constraint, world.nodes, pods)
            for other in pods:
                if not other.node_name and other.metadata.labels == pod.metadata.labels:
                    counts[min(counts, key=counts.__getitem__)] += 1
            skews.append(max(counts.values()) - min(counts.values()))
        if skews[1] > max(skews[0], constraint.max_skew):
            return True
    return False


def test_no_budget_is_exceeded(case: Case) -> None:
    world, _, made, _ = case
    for budget in (it for it in world.others if type(it).__name__ == "PodDisruptionBudget"):
        selected = [
            move
            for move in made.moves
            if move.mode is Mode.EVICT
            and move.pod.metadata.namespace == budget.metadata.namespace
            and naive._selects(budget.spec.selector, move.pod)
        ]
        assert len(selected) <= budget.status.disruptions_allowed


def test_no_limit_is_exceeded(case: Case) -> None:
    world, settings, made, _ = case
    replicas = {it.metadata.uid: it.spec.replicas for it in world.others if hasattr(it.spec, "replicas")}
    owners = Counter(move.pod.metadata.owner_references[0].uid for move in made.moves)
    assert len(made.moves) <= settings.max_reschedule_pods
    assert all(count <= settings.limits.per_node for count in Counter(it.source for it in made.moves).values())
    by_namespace = Counter(it.pod.metadata.namespace for it in made.moves)
    assert all(count <= settings.limits.per_namespace for count in by_namespace.values())
    assert all(count <= by_replicas(replicas[uid]) for uid, count in owners.items())


def test_what_opted_out_stays(case: Case) -> None:
    for move in case[2].moves:
        meta = move.pod.metadata
        assert meta.namespace == "default"
        assert [it.kind for it in meta.owner_references] != ["DaemonSet"]
        assert meta.owner_references
        assert meta.annotations.get(f"{generated.PREFIX}rescheduling") != "disabled"


def test_every_move_is_for_the_better(case: Case) -> None:
    world, settings, made, _ = case
    nodes = {node.metadata.name: node for node in world.nodes}
    for number, move in enumerate(made.moves, 1):
        source, target = nodes[move.source], nodes[move.target or ""]
        if move.strategy in {"SpotReclaim", "SpotMix"}:
            back = move.strategy == "SpotReclaim"
            assert [it.metadata.labels.get(CAPACITY) == "spot" for it in (source, target)] == [not back, back]
            continue
        so_far = generated.applied(world.pods, made.moves[:number])  # who goes to spot may fill the target after it
        gain = naive.load(source, world.pods) - naive.load(target, so_far)
        assert gain >= settings.limits.minimum_improvement


def test_pods_that_wait_keep_their_room(case: Case) -> None:
    world, _, _, after = case
    waiting = [pod for pod in world.pods if not pod.node_name][:3]
    before_the_plan = naive.most_placed(waiting, world.nodes, [pod for pod in world.pods if pod.node_name])
    assert naive.most_placed(waiting, world.nodes, [pod for pod in after if pod.node_name]) >= before_the_plan


def test_the_same_cluster_gives_the_same_plan(case: Case) -> None:
    world, settings, made, _ = case
    objects = world.objects
    random.Random(1).shuffle(objects)
    again = plan.make(build.state(*objects, settings=settings), settings, NOW)
    assert again == made


def passes(seed: int) -> tuple[int, Counter[tuple[str, str]]]:
    """How many more passes it took to come to rest than the limit alone asks for, and how often each pod moved."""
    world = generated.world(seed, stateful=False)  # their pods go one by one, whatever the limit
    free = Settings(
        enabled_strategies=("LoadBalancing",),
        max_reschedule_pods=UNLIMITED,
        limits=Limits(per_node=UNLIMITED, per_namespace=UNLIMITED, per_workload=UNLIMITED),
    )
    limit = 1 + seed % 10
    few = msgspec.structs.replace(free, max_reschedule_pods=limit)
    world.others = [it for it in world.others if type(it).__name__ != "PodDisruptionBudget"]
    world.pods = [pod for pod in world.pods if pod.node_name]  # a scheduler would place the others meanwhile
    expected = math.ceil(len(planned(world, free).moves) / limit)
    moved: Counter[tuple[str, str]] = Counter()
    for number in range(expected + LATE + 1):
        made = planned(world, few)
        if not made.moves:
            return number - expected, moved
        moved.update(move.pod.metadata.key for move in made.moves)
        world.pods = generated.applied(world.pods, made.moves)
    raise AssertionError(f"seed {seed}: still moving after {expected} + {LATE} passes")


@pytest.mark.parametrize("seed", range(30))
def test_it_comes_to_rest(seed: int) -> None:
    late, moved = passes(seed)
    assert late <= 0
    assert set(moved.values()) <= {1}


def test_nearly_every_cluster_comes_to_rest_so_soon() -> None:
    """A pass that fills spot nodes raises their mean, and more may follow; of 1,500 clusters 43 took up to three
    passes more, and in nine a pod moved twice. Outside of tests a workload rests between two moves.
    """
    found = [passes(seed) for seed in range(many(40))]
    assert sum(late > 0 for late, _ in found) <= 0.05 * len(found)
    assert sum(max(moved.values(), default=0) > 1 for _, moved in found) <= 0.02 * len(found)
    assert max(max(moved.values(), default=0) for _, moved in found) <= 2
