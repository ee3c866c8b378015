"""What is left on a node: resources, pod slots and host ports.   Pure."""

from collections.abc import Iterator

from cluster.objects import Pod
from descheduler import demand
from descheduler.demand import Demand, HostPort
from descheduler.fit.misfit import FitCode, Misfit
from descheduler.node_state import NodeState
from descheduler.picture import Picture

EVERY_ADDRESS = "0.0.0.0"  # noqa: S104 - an address of the API, nothing listens here


def enough(picture: Picture, node: NodeState, asked: Demand) -> bool:
    """Whether resources and pod slots suffice, found as fast as possible."""
    room = node.allocatable
    held = picture.booked(node.name) or node
    slots = held.pods if isinstance(held.pods, int) else len(held.pods)
    if slots >= room.get(demand.PODS, 0):
        return False
    if asked.cpu and asked.cpu > room.get(demand.CPU, 0) - held.cpu:
        return False
    if asked.memory and asked.memory > room.get(demand.MEMORY, 0) - held.memory:
        return False
    if asked.storage and asked.storage > room.get(demand.STORAGE, 0) - held.storage:
        return False
    return not asked.extended or all(
        amount <= room.get(name, 0) - held.extended.get(name, 0) for name, amount in asked.extended.items()
    )


def misfits(picture: Picture, node: NodeState, asked: Demand) -> Iterator[Misfit]:
    """Every resource that is short."""
    room, used = node.allocatable, picture.used(node.name)
    if used.pods >= room.get(demand.PODS, 0):
        yield _short(demand.PODS, 1, room.get(demand.PODS, 0) - used.pods)
    rows = (
        (demand.CPU, asked.cpu, used.cpu),
        (demand.MEMORY, asked.memory, used.memory),
        (demand.STORAGE, asked.storage, used.storage),
        *((name, amount, used.extended.get(name, 0)) for name, amount in asked.extended.items()),
    )
    for name, wanted, taken in rows:
        left = room.get(name, 0) - taken
        if wanted > 0 and wanted > left:
            yield _short(name, wanted, left)


def _short(name: str, wanted: int, left: int) -> Misfit:
    unit = "m" if name == demand.CPU else ""
    return Misfit(FitCode.RESOURCES, f"{name}: {wanted}{unit} wanted, {max(left, 0)}{unit} left")


def ports(picture: Picture, name: str, asked: Demand) -> Iterator[Misfit]:
    """Ports of the node that another pod holds."""
    if not asked.ports:
        return
    for pod in picture.pods_on(name):
        for held in demand.of(pod.spec).ports:
            for port in asked.ports:
                if _collide(held, port):
                    yield Misfit(FitCode.HOST_PORTS, f"{_text(port)} is held by pod {_name(pod)}")


def _collide(held: HostPort, wanted: HostPort) -> bool:
    """The same port of the same protocol, and addresses that overlap."""
    if held.port != wanted.port or held.protocol != wanted.protocol:
        return False
    return held.ip == wanted.ip or EVERY_ADDRESS in {held.ip, wanted.ip}


def _text(port: HostPort) -> str:
    return f"host port {port.ip}:{port.port}/{port.protocol}"


def _name(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"
