"""Worlds about pods and other pods: affinity both ways, and topology spread."""

from typing import Any

from tests.integration.descheduler.worlds import REQUIRED, Object, World

ZONES = ("z1", "z2")


def _layout(world: World, *, target: str | None = None) -> list[str]:
    """The target and two more nodes, in zones of this world; some nodes are in none."""
    names = []
    for word in ("target", "second", "third"):
        zone = target if word == "target" and target else world.rng.choice((*ZONES, None))
        names.append(world.node(word, labels={world.key("zone"): zone} if zone else {}))
    return names


def _labels(world: World, share: float = 0.5) -> dict[str, str]:
    found = {"app": world.value(world.rng.choice(("web", "web", "db")))}
    if world.chance(share):
        found |= {"rev": world.rng.choice(("1", "2")), "tier": world.rng.choice(("1", "2"))}
    return found


def _selector(world: World) -> Object:
    match world.rng.randrange(4):
        case 0 | 1:
            return {"matchLabels": {"app": world.value("web")}}
        case 2:
            values = [world.value("web"), world.value("db")]
            return {"matchExpressions": [{"key": "app", "operator": "In", "values": values}]}
        case _:
            own = {"key": "app", "operator": "In", "values": [world.value("web")]}
            return {"matchExpressions": [own, {"key": "tier", "operator": "NotIn", "values": ["2"]}]}


def _term(world: World) -> Object:
    key = world.key("zone") if world.chance(0.6) else "kubernetes.io/hostname"
    made: Object = {"topologyKey": key, "labelSelector": _selector(world)}
    match world.rng.randrange(7):
        case 0:
            made["namespaces"] = [world.value("other")]
        case 1:
            made["namespaceSelector"] = {"matchLabels": {"world": world.name}}
        case 2:
            made["namespaceSelector"] = {}
        case 3:
            made["matchLabelKeys"] = ["rev"]
        case 4:
            made["mismatchLabelKeys"] = ["rev"]
        case _:
            pass
    return made


def _terms(world: World) -> list[Object]:
    return [_term(world) for _ in range(world.rng.choice((1, 1, 1, 2)))]


def _populate(world: World, nodes: list[str], *, most: int, spec: Any = None) -> None:
    """Pods on the nodes, some in another namespace that belongs to this world."""
    other = {"name": world.value("other"), "labels": {"world": world.name}}
    world.add("namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": other})
    for number in range(world.rng.randrange(0, most + 1)):
        world.neighbour(
            f"p{number}",
            world.rng.choice(nodes),
            labels=_labels(world),
            namespace=world.value("other") if world.chance(0.25) else None,
            spec=spec() if spec else None,
        )


def attracted(world: World) -> None:
    """The pod must be near others, or is the first of its kind."""
    _populate(world, _layout(world), most=3)
    world.incoming(labels=_labels(world), spec={"affinity": {"podAffinity": {REQUIRED: _terms(world)}}})


def avoiding(world: World) -> None:
    """The pod must be away from others."""
    _populate(world, _layout(world), most=2)
    world.incoming(labels=_labels(world), spec={"affinity": {"podAntiAffinity": {REQUIRED: _terms(world)}}})


def repelled(world: World) -> None:
    """Others must be away from pods like this one."""
    nodes = _layout(world)
    _populate(world, nodes, most=2, spec=lambda: {"affinity": {"podAntiAffinity": {REQUIRED: _terms(world)}}})
    world.incoming(labels=_labels(world))


def spread(world: World) -> None:
    """Constraints over zones and hosts. The other nodes have no slot left, so only the target can take the pod."""
    rng = world.rng
    web = {"app": world.value("web")}
    names, counts = [], [rng.randrange(0, 4) for _ in range(4)]
    for number, count in enumerate(counts):
        word = "target" if number == 0 else f"n{number}"
        taints = [{"key": "busy", "effect": "NoSchedule"}] if number and world.chance(0.3) else []
        zone = {} if number and world.chance(0.1) else {world.key("zone"): rng.choice(("z1", "z2", "z3"))}
        side = {world.key("side"): rng.choice(("left", "right"))}
        room = {"pods": "10" if number == 0 else str(count)}
        names.append(world.node(word, labels={"world": world.name, **zone, **side}, taints=taints, room=room))
    for number, count in enumerate(counts):
        for copy in range(count):
            labels = {**web, "rev": rng.choice(("1", "2"))} if world.chance(0.85) else {"app": world.value("db")}
            world.neighbour(f"p{number}-{copy}", names[number], labels=labels, deleted=world.chance(0.1))
    spec: Object = {"topologySpreadConstraints": [_constraint(world) for _ in range(rng.choice((1, 1, 2)))]}
    keys = {(it["topologyKey"], it["whenUnsatisfiable"]): it for it in spec["topologySpreadConstraints"]}
    spec["topologySpreadConstraints"] = list(keys.values())
    spec["nodeSelector"] = {"world": world.name}
    if world.chance(0.3):
        spec["nodeSelector"][world.key("side")] = rng.choice(("left", "right"))
    own = web if world.chance(0.9) else {"app": world.value("db")}
    world.incoming(labels={**own, "rev": rng.choice(("1", "2"))}, spec=spec, pinned=world.chance(0.2))


def _constraint(world: World) -> Object:
    rng = world.rng
    made: Object = {
        "maxSkew": rng.choice((1, 1, 1, 2)),
        "topologyKey": world.key("zone") if world.chance(0.7) else "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway" if world.chance(0.1) else "DoNotSchedule",
        "labelSelector": rng.choice(({"matchLabels": {"app": world.value("web")}}, _selector(world), {})),
    }
    if world.chance(0.3) and made["whenUnsatisfiable"] == "DoNotSchedule":
        made["minDomains"] = rng.choice((1, 2, 3, 4))
    if world.chance(0.3):
        made["nodeAffinityPolicy"] = rng.choice(("Honor", "Ignore"))
    if world.chance(0.4):
        made["nodeTaintsPolicy"] = rng.choice(("Honor", "Ignore"))
    if world.chance(0.2) and made["labelSelector"]:
        made["matchLabelKeys"] = ["rev"]
    return made
