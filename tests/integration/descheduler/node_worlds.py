"""Worlds about a node and what is on it: resources, ports, labels, taints."""

from collections.abc import Mapping
from typing import Any

from tests.integration.descheduler.worlds import GPU, REQUIRED, Object, World, container

MI = 2**20


def resources(world: World) -> None:
    """One resource is nearly all held; the pod wants a little more or a little less than what is left."""
    rng = world.rng
    name, total, unit = rng.choice((("cpu", 4000, "m"), ("memory", 8192, "Mi"), ("ephemeral_storage", 20480, "Mi")))
    held = rng.randrange(0, total - 10)
    wanted = max(1, total - held + rng.choice((-1, 0, 0, 1, 1, 7, -7)))
    world.node()
    taken: dict[str, Any] = {name: f"{held}{unit}"}
    world.neighbour("held", world.target, spec={"containers": [container(**taken)]})
    world.incoming(spec=_divided(world, name, wanted, unit))


def _divided(world: World, name: str, wanted: int, unit: str) -> Object:
    """The same amount asked for in one of the ways in which pods can ask."""
    whole: dict[str, Any] = {name: f"{wanted}{unit}"}
    part = world.rng.randrange(0, wanted + 1)
    first: dict[str, Any] = {name: f"{part}{unit}"}
    rest: dict[str, Any] = {name: f"{wanted - part}{unit}"}
    match world.rng.randrange(5):
        case 0:
            return {"containers": [container(**whole)]}
        case 1:
            return {"containers": [container(**first), container("more", **rest)]}
        case 2:
            return {"containers": [container(**first)], "initContainers": [container("init", **whole)]}
        case 3:
            return {"containers": [container(**first)], "initContainers": [container("side", always=True, **rest)]}
        case _:
            inits = [container("side", always=True, **first), container("init", **rest)]
            return {"containers": [container()], "initContainers": inits}


def slots(world: World) -> None:
    """Pod slots and extended resources."""
    rng = world.rng
    there = rng.randrange(1, 4)
    devices = rng.randrange(0, 3)
    room = {"pods": str(there + rng.choice((0, 1, 1, 1))), GPU: str(rng.randrange(0, 5))}
    world.node(room=room)
    for number in range(there):
        asked: dict[str, Any] = {"gpu": str(devices)} if number == 0 and devices else {}
        world.neighbour(f"p{number}", world.target, spec={"containers": [container(**asked)]})
    wanted: dict[str, Any] = rng.choice(({}, {"gpu": "1"}, {"gpu": "2"}))
    world.incoming(spec={"containers": [container(**wanted)]})


def whole_pod(world: World) -> None:
    """Resources set for the pod as a whole, on both sides; overhead of a RuntimeClass beside them."""
    rng = world.rng
    held = rng.randrange(500, 3000)
    world.node()
    world.neighbour("held", world.target, spec=_whole(world, held))
    overhead = rng.choice((0, 250))
    wanted = 4000 - held - overhead + rng.choice((-1, 0, 1, 2))
    spec = _whole(world, wanted)
    if overhead:
        spec["runtimeClassName"] = "heavy"
    world.incoming(spec=spec)


def _whole(world: World, milli: int) -> Object:
    inside = world.rng.randrange(0, milli + 1)
    made: Object = {"containers": [container(cpu=f"{inside}m")]}
    if world.chance(0.7):
        return {**made, "resources": {"requests": {"cpu": f"{milli}m"}}}
    return {"containers": [container(cpu=f"{milli}m")]}


def resize(world: World) -> None:
    """A pod on the node was given more or less than it asks for."""
    rng = world.rng
    asked, given, allocated = (rng.choice((500, 1000, 2000, 3000)) for _ in range(3))
    status: Object = {"containerStatuses": [_reported("main", given, allocated if world.chance() else None)]}
    spec: Object = {"containers": [container(cpu=f"{asked}m")]}
    if world.chance(0.4):
        reason = rng.choice(("Infeasible", "Deferred"))
        status["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": reason}]
    if world.chance(0.3):
        spec["initContainers"] = [container("init", always=world.chance(), cpu="500m")]
        status["initContainerStatuses"] = [_reported("init", 1000, None)]
    if world.chance(0.3):
        spec["resources"] = {"requests": {"cpu": f"{asked + 500}m"}}
        status["resources"] = {"requests": {"cpu": f"{given}m"}}
    world.node()
    world.neighbour("held", world.target, spec=spec, status=status)
    wanted = rng.choice((500, 1000, 1500, 2000, 2500, 3000, 3500))
    world.incoming(spec={"containers": [container(cpu=f"{wanted}m")]})


def _reported(name: str, given: int, allocated: int | None) -> Object:
    made: Object = {
        "name": name,
        "image": "none",
        "imageID": "",
        "ready": True,
        "restartCount": 0,
        "resources": {"requests": {"cpu": f"{given}m"}},
    }
    if allocated is not None:
        made["allocatedResources"] = {"cpu": f"{allocated}m"}
    return made


def ports(world: World) -> None:
    """A port that may be held, on one address or all."""
    world.node()
    world.neighbour("held", world.target, spec=_serving(world))
    world.incoming(spec=_serving(world))


def _serving(world: World) -> Object:
    rng = world.rng
    number = rng.choice((8080, 8080, 9090))
    port = {
        "containerPort": number,
        "hostPort": number,
        "protocol": rng.choice(("TCP", "TCP", "UDP")),
        "hostIP": rng.choice(("", "0.0.0.0", "127.0.0.1", "127.0.0.2")),  # noqa: S104
    }
    match rng.randrange(6):
        case 0:
            return {"initContainers": [container("side", always=True, ports=[port])]}
        case 1:
            return {"initContainers": [container("init", ports=[port])]}
        case _:
            return {"containers": [container(ports=[port])]}


def selector(world: World) -> None:
    """A nodeSelector of one or two labels."""
    world.node(labels=_labels(world))
    wanted = {world.key(word): world.rng.choice(("1", "2", "")) for word in world.rng.sample(("a", "b"), k=1)}
    if world.chance(0.4):
        wanted = dict(list(_labels(world).items())[:2])
    spec: Object = {"nodeSelector": wanted}
    if world.chance(0.2):
        spec["runtimeClassName"] = "placed"
    world.incoming(spec=spec)


def affinity(world: World) -> None:
    """Required node affinity with every operator."""
    world.node(labels=_labels(world))
    terms = [_term(world) for _ in range(world.rng.choice((1, 1, 2)))]
    world.incoming(spec={"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}})


def _labels(world: World) -> dict[str, str]:
    values = {word: world.rng.choice(("1", "2", "7", "003", "x", "", None)) for word in ("a", "b", "c")}
    return {world.key(word): value for word, value in values.items() if value is not None}


def _term(world: World) -> Object:
    return {"matchExpressions": [_expression(world) for _ in range(world.rng.choice((1, 1, 2)))]}


def _expression(world: World) -> Object:
    operator = world.rng.choice(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
    values: list[str] = []
    if operator in {"In", "NotIn"}:
        values = world.rng.sample(("1", "2", "7", "x", ""), k=2)
    if operator in {"Gt", "Lt"}:
        values = [world.rng.choice(("0", "1", "5", "003", "9"))]
    return {"key": world.key(world.rng.choice(("a", "b", "c"))), "operator": operator, "values": values}


def taints(world: World) -> None:
    """One or two taints against none to two tolerations."""
    rng = world.rng
    found = {(it["key"], it["effect"]): it for it in (_taint(world) for _ in range(rng.choice((1, 1, 2))))}
    world.node(taints=list(found.values()))
    world.incoming(spec={"tolerations": [_toleration(world) for _ in range(rng.choice((0, 1, 2, 2)))]})


def _taint(world: World) -> dict[str, str]:
    rng = world.rng
    return {
        "key": rng.choice(("red", "blue")),
        "value": rng.choice(("", "1", "2")),
        "effect": rng.choice(("NoSchedule", "NoSchedule", "NoExecute", "PreferNoSchedule")),
    }


def _toleration(world: World) -> Object:
    rng = world.rng
    effect = rng.choice(("", "", "NoSchedule", "NoExecute", "PreferNoSchedule"))
    if world.chance(0.15):
        return {"operator": "Exists", "effect": effect}
    operator = rng.choice(("Equal", "Exists"))
    value = rng.choice(("", "1", "2")) if operator == "Equal" else ""
    return {"key": rng.choice(("red", "blue")), "operator": operator, "value": value, "effect": effect}


def cordon(world: World) -> None:
    """A node that may be cordoned, with the taint that goes with it or without."""
    closed = world.chance(0.7)
    key = "node.kubernetes.io/unschedulable"
    tainted = [{"key": key, "effect": "NoSchedule"}] if closed and world.chance() else []
    world.node(unschedulable=closed, taints=tainted)
    choices: tuple[list[Mapping[str, Any]], ...] = (
        [],
        [{"operator": "Exists"}],
        [{"key": key, "operator": "Exists"}],
        [{"key": key, "operator": "Exists", "effect": "NoSchedule"}],
        [{"key": key, "operator": "Exists", "effect": "NoExecute"}],
        [{"key": key, "operator": "Equal", "value": "1"}],
    )
    world.incoming(spec={"tolerations": list(world.rng.choice(choices))})


def gates(world: World) -> None:
    """Held back by a gate, or not."""
    world.node()
    world.incoming(spec={"schedulingGates": [{"name": "test.example/wait"}]} if world.chance() else {})
