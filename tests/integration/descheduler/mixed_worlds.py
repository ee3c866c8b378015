"""Worlds in which everything is asked at once, each a little: predicates must not disturb each other."""

from tests.integration.descheduler.storage_worlds import BOUND, REGION, claim, mounting, volume
from tests.integration.descheduler.worlds import REQUIRED, Object, World, container


def mixed(world: World) -> None:
    """A pod of a service with neighbours, on a node of a small pool."""
    rng = world.rng
    names = [_node(world, word) for word in ("target", "second", "third")]
    for number in range(rng.randrange(0, 5)):
        world.neighbour(f"p{number}", rng.choice(names), labels=_labels(world), spec=_neighbour(world))
    spec: Object = {
        "containers": [container(cpu=rng.choice(("1", "2", "4")), ports=_ports(world))],
        "affinity": _affinity(world, 0.5),
        "topologySpreadConstraints": [_spread(world)] if world.chance(0.4) else [],
        "tolerations": [{"key": "busy", "operator": "Exists"}] if world.chance(0.7) else [],
        "nodeSelector": {world.key("pool"): rng.choice(("a", "a", "b"))} if world.chance(0.4) else {},
    }
    if world.chance(0.3):
        placed = {REGION: rng.choice(("r1", "r1", "r2"))}
        spec |= mounting(claim(world, "c", volume=volume(world, "v", labels=placed), annotations=BOUND))
    world.incoming(labels=_labels(world), spec=spec)


def _node(world: World, word: str) -> str:
    rng = world.rng
    labels = {world.key("zone"): rng.choice(("z1", "z2")), world.key("pool"): rng.choice(("a", "a", "b"))}
    if world.chance(0.5):
        labels[REGION] = "r1"
    taints = [{"key": "busy", "effect": "NoSchedule"}] if world.chance(0.3) else []
    return world.node(word, labels=labels, taints=taints, unschedulable=world.chance(0.1))


def _neighbour(world: World) -> Object:
    asked = world.rng.choice(("500m", "1", "1500m"))
    return {"containers": [container(cpu=asked, ports=_ports(world))], "affinity": _affinity(world, 0.25)}


def _labels(world: World) -> dict[str, str]:
    return {"app": world.value(world.rng.choice(("web", "db")))}


def _ports(world: World) -> list[Object]:
    number = world.rng.choice((8080, 9090))
    return [{"containerPort": number, "hostPort": number}] if world.chance(0.2) else []


def _affinity(world: World, share: float) -> Object:
    made: Object = {}
    for kind, likely in (("podAntiAffinity", share), ("podAffinity", share / 4)):
        if world.chance(likely):
            key = world.rng.choice((world.key("zone"), "kubernetes.io/hostname"))
            made[kind] = {REQUIRED: [{"topologyKey": key, "labelSelector": {"matchLabels": _labels(world)}}]}
    return made


def _spread(world: World) -> Object:
    return {
        "maxSkew": world.rng.choice((1, 2)),
        "topologyKey": world.key("zone"),
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": world.value("web")}},
        "nodeAffinityPolicy": "Ignore",
    }
