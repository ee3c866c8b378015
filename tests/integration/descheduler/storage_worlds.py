"""Worlds about claims and volumes."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.integration.descheduler.worlds import Object, World

BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"


def mounting(*claims: str) -> Object:
    """A spec with these claims."""
    named = enumerate(claims)
    return {"volumes": [{"name": f"v{n}", "persistentVolumeClaim": {"claimName": it}} for n, it in named]}


def claim(
    world: World,
    word: str,
    *,
    volume: str = "",
    kind: str = "",
    modes: Sequence[str] = ("ReadWriteOnce",),
    annotations: Mapping[str, str] | None = None,
    size: str = "1Gi",
    **more: Any,
) -> str:
    """A claim of this world, and its name."""
    name = world.value(word)
    body: Object = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "annotations": dict(annotations or {})},
        "spec": {
            "accessModes": list(modes),
            "storageClassName": kind,
            "resources": {"requests": {"storage": size}},
            **({"volumeName": volume} if volume else {}),
        },
    }
    world.add("persistentvolumeclaims", body, namespaced=True, **more)
    return name


def volume(
    world: World,
    word: str,
    *,
    kind: str = "",
    labels: Mapping[str, str] | None = None,
    affinity: Sequence[Object] = (),
    driver: str = "",
    mode: str = "ReadWriteOnce",
    size: str = "1Gi",
    **more: Any,
) -> str:
    """A volume of this world, and its name."""
    name = world.value(word)
    source: Object = {"hostPath": {"path": "/none"}}
    if driver:
        source = {"csi": {"driver": driver, "volumeHandle": name}}
    required = {"nodeAffinity": {"required": {"nodeSelectorTerms": list(affinity)}}} if affinity else {}
    body: Object = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": dict(labels or {})},
        "spec": {
            "accessModes": [mode],
            "capacity": {"storage": size},
            "storageClassName": kind,
            "persistentVolumeReclaimPolicy": "Retain",
            **source,
            **required,
        },
    }
    world.add("persistentvolumes", body, **more)
    return name


def storage_class(world: World, *, provisioner: str, waits: bool, topologies: Sequence[Object] = ()) -> str:
    """A class of this world, and its name."""
    name = world.value("class")
    body: Object = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer" if waits else "Immediate",
        **({"allowedTopologies": list(topologies)} if topologies else {}),
    }
    world.add("storageclasses", body)
    return name


def _within(world: World, *values: str) -> Object:
    return {"matchExpressions": [{"key": world.key("site"), "operator": "In", "values": list(values)}]}


def claims(world: World) -> None:
    """Claims that are bound, half bound, lost, being deleted, missing, or left to others to bind."""
    world.node()
    match world.rng.randrange(8):
        case 0:
            name = world.value("missing")
        case 1:
            name = claim(world, "c", volume=volume(world, "v"), annotations=BOUND, status={"phase": "Lost"})
        case 2:
            name = claim(world, "c", volume=volume(world, "v"), annotations=BOUND, deleted=True)
        case 3:
            name = claim(world, "c", volume=volume(world, "v"))
        case 4:
            name = claim(world, "c", kind=storage_class(world, provisioner="p.example", waits=False))
        case _:
            name = claim(world, "c", volume=volume(world, "v"), annotations=BOUND)
    world.incoming(spec=mounting(name))


def reach(world: World) -> None:
    """A bound volume that only some nodes can reach."""
    sites = world.rng.choice(("s1", "s2", None))
    world.node(labels={world.key("site"): sites} if sites else {})
    terms = [_within(world, *world.rng.sample(("s1", "s2", "s3"), k=2)) for _ in range(world.rng.choice((1, 2)))]
    bound = claim(world, "c", volume=volume(world, "v", affinity=terms), annotations=BOUND)
    world.incoming(spec=mounting(bound))


def zone(world: World) -> None:
    """A bound volume with zone or region labels."""
    rng = world.rng
    labels = {}
    if world.chance(0.85):
        labels = {rng.choice((ZONE, ZONE, OLD_ZONE)): rng.choice(("a", "b"))}
        labels |= {REGION: rng.choice(("r1", "r2"))} if world.chance(0.4) else {}
    world.node(labels=labels)
    placed = {rng.choice((ZONE, OLD_ZONE)): rng.choice(("a", "b", "a__b"))}
    placed |= {REGION: rng.choice(("r1", "r2"))} if world.chance(0.3) else {}
    bound = claim(world, "c", volume=volume(world, "v", labels=placed), annotations=BOUND)
    world.incoming(spec=mounting(bound))


def unbound(world: World) -> None:
    """Claims that wait for the pod: to be provisioned within topologies, or matched with a volume that is there."""
    rng = world.rng
    world.node(labels={world.key("site"): rng.choice(("s1", "s2"))})
    provisioner = rng.choice(("p.example", "kubernetes.io/no-provisioner"))
    values = rng.sample(("s1", "s2", "s3"), k=2)
    topologies = [{"matchLabelExpressions": [{"key": world.key("site"), "values": values}]}]
    kind = storage_class(
        world, provisioner=provisioner, waits=True, topologies=topologies if world.chance(0.7) else ()
    )
    if world.chance(0.7):
        volume(
            world,
            "v",
            kind=kind,
            size=rng.choice(("1Gi", "4Gi")),
            affinity=[_within(world, rng.choice(("s1", "s2")))] if world.chance(0.7) else (),
            status={"phase": "Available"} if world.chance(0.85) else None,
        )
    sent = (
        {"volume.kubernetes.io/selected-node": rng.choice((world.target, "elsewhere"))} if world.chance(0.2) else {}
    )
    names = [claim(world, "c0", kind=kind, annotations=sent, size=rng.choice(("1Gi", "2Gi")))]
    if world.chance(0.2):
        names.append(claim(world, "c1", kind=kind))
    world.incoming(spec=mounting(*names))


def limit(world: World) -> None:
    """A driver that can attach only so many volumes to the node."""
    rng = world.rng
    world.node()
    driver = f"{world.name}.csi.example"
    allocatable = {"allocatable": {"count": rng.randrange(1, 4)}} if world.chance(0.9) else {}
    drivers = [{"name": driver, "nodeID": world.target, "topologyKeys": [], **allocatable}]
    body: Object = {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": world.target}}
    world.add("csinodes", {**body, "spec": {"drivers": drivers}})
    made = [
        claim(world, f"c{number}", volume=volume(world, f"v{number}", driver=driver), annotations=BOUND)
        for number in range(5)
    ]
    for number in range(rng.randrange(0, 3)):
        world.neighbour(f"p{number}", world.target, spec=mounting(*rng.sample(made, k=rng.randrange(1, 3))))
    world.incoming(spec=mounting(*rng.sample(made, k=rng.randrange(1, 3))))


def exclusive(world: World) -> None:
    """A claim that only one pod may use, in use or not; now and then a disk named in the pods themselves."""
    rng = world.rng
    world.node()
    second = world.node("second")
    if world.chance(0.2):
        names = ("one", "one", "two") if world.chance(0.2) else ("one", "one", "one")
        if world.chance():
            world.neighbour("p", rng.choice((world.target, second)), spec=_disk(world, rng.choice(names)))
        world.incoming(spec=_disk(world, "one"))
        return
    mode = rng.choice(("ReadWriteOncePod", "ReadWriteOncePod", "ReadWriteOnce"))
    made = [
        claim(world, f"c{n}", volume=volume(world, f"v{n}", mode=mode), annotations=BOUND, modes=[mode])
        for n in range(2)
    ]
    if world.chance(0.8):
        world.neighbour("p", rng.choice((world.target, second)), spec=mounting(rng.choice(made)))
    world.incoming(spec=mounting(rng.choice(made)))


def _disk(world: World, word: str) -> Object:
    source = {"targetPortal": "192.0.2.1:3260", "iqn": f"iqn.2026-01.example:{world.value(word)}", "lun": 0}
    return {"volumes": [{"name": "disk", "iscsi": source}]}
