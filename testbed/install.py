"""Put the product into a test bed: its real manifests, and its processes as their own ServiceAccounts.

There are no containers here, so what a Deployment would run in a pod is run as a local process, with the same
command, the same environment, the rights of the same ServiceAccount, and its Secrets and ConfigMaps as files.
"""

import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from testbed import balancer, bed, kubelet, pods, ports, process, services
from testbed.api import ApiError, Object
from testbed.bed import ControlPlane
from testbed.pods import Pod
from testbed.sources import Kustomization, NotApplied, Source

ROOT = Path(__file__).parent.parent
MANIFESTS = ROOT / "manifests" / "base"
KUBELET, PROXY = "kubelet", "kube-proxy"
"""The processes that stand in for these two: volumes and tokens, and connections to Services."""
READY_TIMEOUT_SECONDS = 90.0
POLL_SECONDS = 0.1

Tell = Callable[[str], None]


class NotInstalled(NotApplied):
    """What the manifests run does not become ready; the message says what and why."""


def install(running: ControlPlane, manifests: Path | Source = MANIFESTS, *, tell: Tell) -> None:
    """Apply a kustomize folder or a chart, run its Deployments and return when all of it is ready.

    Processes of the same Deployments from an earlier install are replaced; they keep their ports. If it fails or is
    interrupted, the processes are stopped and the objects stay.
    """
    if lost := bed.ended(running.home):
        what = f"{', '.join(lost)} {'is' if len(lost) == 1 else 'are'} not running"
        raise NotInstalled(f"{what} in {running.home}; `down` and `up` make a new control plane")
    source: Source = Kustomization(manifests) if isinstance(manifests, Path) else manifests
    documents = source.render(running)
    deployments = [document for document in documents if document["kind"] == "Deployment"]
    names = {deployment["metadata"]["name"] for deployment in deployments}
    _stop(running, names)
    try:
        planned = _plan(running, deployments)
        routes, adapted = _route(running, documents, planned)
        for line in source.apply(running, adapted).splitlines():
            tell(line)
        _remember(running, names, planned, routes)
        _start(running, planned, tell)
        _start_agents(running)
        _wait_until_ready(running, planned, routes)
    except BaseException:
        _stop(running, names)
        if {pod.deployment for pod in kubelet.remembered(running)} - names:
            _start_agents(running)  # for what was installed before from elsewhere
        raise
    for line in _summary(planned, routes):
        tell(line)


def start(running: ControlPlane, pod: Pod) -> None:
    """Start the processes of a pod whose volumes are there, as they were planned."""
    for planned in pod.processes:
        log = running.layout.log(planned.name)
        process.start(planned.name, planned.command, home=running.home, log=log, env=planned.env)


def status(running: ControlPlane) -> dict[str, int | None]:
    """The pid of every process of control plane and product; None for one that does not run."""
    found = running.status()
    wanted = [*_agents(running), *(one.name for pod in kubelet.remembered(running) for one in pod.processes)]
    others = {name: pid for name, pid in found.items() if name not in wanted}
    return {**others, **{name: found.get(name) for name in wanted}}


def ports_of(running: ControlPlane) -> dict[str, str]:
    """Where each process listens, in words."""
    told = {name: str(port) for name, port in running.ports.items()}
    told |= {one.name: _told(one.ports) for pod in kubelet.remembered(running) for one in pod.processes}
    return told | {PROXY: _told({route.name: route.listen for route in balancer.read(routes_file(running))})}


def routes_file(running: ControlPlane) -> Path:
    return running.home / "services.json"


def _plan(running: ControlPlane, deployments: Sequence[Object]) -> list[Pod]:
    before = {
        f"{planned.name}:{number}": port
        for pod in kubelet.remembered(running)
        for planned in pod.processes
        for number, port in planned.numbers.items()
    }
    env = {"PATH": os.environ.get("PATH", ""), "PYTHONPATH": str(ROOT)}
    try:
        names = [name for deployment in deployments for name in pods.port_names(deployment)]
        place = pods.Place(kubelet.folder(running), _ports(names, before), _find, env)
        return [pod for deployment in deployments for pod in pods.plan(deployment, place)]
    except pods.Unsupported as refusal:
        raise NotInstalled(str(refusal)) from None


def _route(
    running: ControlPlane, documents: Sequence[Object], planned: Sequence[Pod]
) -> tuple[list[services.Route], list[Object]]:
    """Routes of this and of earlier installs, and the documents that lead to them."""
    before = {route.name: route for route in balancer.read(routes_file(running))}
    listen = _ports(services.port_names(documents, planned), {name: route.listen for name, route in before.items()})
    own = {route.name: route for route in services.routes(documents, planned, listen)}
    return list({**before, **own}.values()), services.on_loopback(documents, planned, listen)


def _ports(names: Sequence[str], before: dict[str, int]) -> dict[str, int]:
    """The ports they had, if nobody took them meanwhile; else free ones."""
    kept = {name: before[name] for name in names if name in before and ports.is_free(before[name])}
    return {**kept, **ports.free([name for name in names if name not in kept])}


def _find(program: str) -> str | None:
    return sys.executable if program in ("python", "python3") else shutil.which(program)


def _remember(
    running: ControlPlane, names: set[str], planned: Sequence[Pod], routes: Sequence[services.Route]
) -> None:
    wanted = {pod.name for pod in planned}
    for pod in kubelet.remembered(running):
        if pod.deployment in names and pod.name not in wanted:
            kubelet.forget(running, pod)
    for pod in planned:
        kubelet.remember(running, pod)
    balancer.write(routes_file(running), routes)


def _agents(running: ControlPlane) -> list[str]:
    wanted = {KUBELET: kubelet.remembered(running), PROXY: balancer.read(routes_file(running))}
    return [name for name, work in wanted.items() if work]


def _start_agents(running: ControlPlane) -> None:
    for name in _agents(running):
        command = [sys.executable, "-m", "testbed", name, "--dir", str(running.home)]
        log = running.layout.log(name)
        process.start(name, command, home=running.home, log=log, env=bed.importable(os.environ))


def _start(running: ControlPlane, planned: Sequence[Pod], tell: Tell) -> None:
    """Start each pod as soon as volumes and account are there: one may make the Secret of another."""
    client, waiting = running.api(), {pod.name: pod for pod in planned}
    deadline = time.monotonic() + READY_TIMEOUT_SECONDS
    while waiting:
        problems = []
        for pod in list(waiting.values()):
            try:
                kubelet.sync(running, client, pod, now=time.time())
            except (kubelet.Missing, ApiError) as missing:
                problems.append(f"{pod.name}: {missing}")
                continue
            start(running, waiting.pop(pod.name))
            tell(f"pod/{pod.name} started as {pod.namespace}/{pod.account}")
        _check_alive(running, [pod for pod in planned if pod.name not in waiting])
        if waiting and time.monotonic() > deadline:
            raise NotInstalled(f"not started after {READY_TIMEOUT_SECONDS:g} s: {'; '.join(problems)}")
        time.sleep(POLL_SECONDS if waiting else 0)


def _wait_until_ready(running: ControlPlane, planned: Sequence[Pod], routes: Sequence[services.Route]) -> None:
    deadline = time.monotonic() + READY_TIMEOUT_SECONDS
    waiting = [(one.name, one.probe) for pod in planned for one in pod.processes]
    waiting += [(PROXY, pods.Probe(route.listen)) for route in routes]
    while waiting:
        waiting = [(name, probe) for name, probe in waiting if not kubelet.is_ready(probe)]
        _check_alive(running, planned, _agents(running))
        if waiting and time.monotonic() > deadline:
            told = "\n".join(f"{name}:\n{running.tail(name)}" for name, _ in waiting)
            raise NotInstalled(f"not ready after {READY_TIMEOUT_SECONDS:g} s: {told}")
        time.sleep(POLL_SECONDS if waiting else 0)


def _check_alive(running: ControlPlane, planned: Sequence[Pod], agents: Sequence[str] = ()) -> None:
    alive = process.mains(running.home)
    for name in (*agents, *(one.name for pod in planned for one in pod.processes)):
        if name not in alive:
            raise NotInstalled(f"{name} ended:\n{running.tail(name)}")


def _stop(running: ControlPlane, deployments: set[str]) -> None:
    """Stop the processes of these Deployments, and the agents, which would look after them."""
    ours = {one.name for pod in kubelet.remembered(running) if pod.deployment in deployments for one in pod.processes}
    found = [child for name, child in process.running(running.home) if name in ours | {KUBELET, PROXY}]
    process.stop(found, grace_seconds=bed.STOP_GRACE_SECONDS)


def _summary(planned: Sequence[Pod], routes: Sequence[services.Route]) -> list[str]:
    ready = [f"{one.name} is ready: {_told(one.ports) or 'no ports'}" for pod in planned for one in pod.processes]
    return [*ready, *(f"service {route.name} is 127.0.0.1:{route.listen}" for route in routes)]


def _told(chosen: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {port}" for name, port in chosen.items())
