"""Which nodes could take a pod yet: the same as asking every node, whatever was booked."""

import random

import pytest

from cluster.objects import Pod
from descheduler import demand
from descheduler.fit import node_rules, room
from descheduler.node_state import NodeState
from descheduler.picture import Picture
from descheduler.takers import Room, Takers
from descheduler.usage import Measured
from policy.capacity import CapacityType
from tests.unit.descheduler import build, generated

TIERS = ((None,), (True,), (False,), (True, False))


def left(picture: Picture, node: NodeState) -> Measured | None:
    held = picture.used(node.name)
    cpu, memory = node.allocatable[demand.CPU] - held.cpu, node.allocatable[demand.MEMORY] - held.memory
    return None if held.pods > 12 else Measured(cpu / 3, memory / 2)


def suits(pod: Pod, node: NodeState, tiers: tuple[bool | None, ...], picture: Picture) -> bool:
    spot = node.capacity is CapacityType.SPOT
    wanted = None in tiers or spot in tiers
    return (
        wanted
        and node.node is not None
        and node_rules.allowed(pod.spec, node.node)
        and room.enough(picture, node, demand.of(pod.spec))
    )


@pytest.mark.parametrize("seed", range(40))
def test_they_say_what_every_node_says(seed: int) -> None:
    rng = random.Random(seed)
    state = build.state(*generated.world(seed, nodes=12).objects)
    picture = Picture(state)
    nodes = list(state.nodes.values())
    known, unknown = nodes[:-2], nodes[-2:]
    takers = Takers(known, unknown, left)
    pods = [it for it in state.pods.values() if it.node_name]
    assert takers.room(pods[0], Measured(1e9, 1e18), (None,)) is Room.SOME, "as long as nothing is known"
    for _ in range(60):
        pod, tiers = rng.choice(pods), rng.choice(TIERS)
        used = Measured(rng.uniform(0, 4000), rng.uniform(0, 2**34))
        takers.follow(picture)
        offers = [left(picture, node) for node in known if suits(pod, node, tiers, picture)]
        served = any(it is not None and used.cpu <= it.cpu and used.memory <= it.memory for it in offers)
        unsure = any(suits(pod, node, tiers, picture) for node in unknown)
        expected = Room.SOME if served else Room.UNKNOWN if unsure else Room.NONE
        assert takers.room(pod, used, tiers) is expected
        if rng.random() < 0.3 and pod.metadata.key not in picture.departed.get(pod.node_name, ()):
            picture.take(pod)
            picture.put(pod, rng.choice(known).name)


def test_where_no_node_has_anything_left_there_are_none() -> None:
    state = build.state(build.node("a"))
    full = Takers(list(state.nodes.values()), (), lambda *_: None)
    assert not full.is_empty, "nobody has looked yet"
    full.follow(Picture(state))
    assert full.is_empty
