"""What the pods of a Deployment run, worked out for processes of this machine.

Pure: it reads no cluster and starts nothing. A process has no network and no file system of its own, so the ports
and mount paths that stand in its command line or environment are replaced by free ports and by folders below the
test bed. What cannot be kept true that way is refused in words.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed import shapes
from testbed.api import Object

ACCOUNT_VOLUME, ACCOUNT_PATH = "kube-api-access", "/var/run/secrets/kubernetes.io/serviceaccount"
"""Where a kubelet puts the token of the pod's ServiceAccount."""
KUBECONFIG = "kubeconfig"
_ANYWHERE = r"(?:\[::1?\]|0\.0\.0\.0|127\.0\.0\.1|localhost|(?<=[=\s,])|^)"
_FIELDS: Mapping[str, Callable[["Pod"], str]] = {
    "metadata.name": lambda pod: pod.name,
    "metadata.namespace": lambda pod: pod.namespace,
    "spec.serviceAccountName": lambda pod: pod.account,
    "status.podIP": lambda _: "127.0.0.1",
    "status.hostIP": lambda _: "127.0.0.1",
}


class Unsupported(Exception):
    """A Deployment asks for something that a local process cannot have; the message says what."""


@dataclass(frozen=True, slots=True)
class Volume:
    """A folder, and the Secret or ConfigMap it shows; without one it is empty and stays."""

    name: str
    resource: str = ""
    source: str = ""
    items: Mapping[str, str] | None = None
    """Path of each key; None shows every key under its own name."""
    optional: bool = False
    mode: int = 0o644


@dataclass(frozen=True, slots=True)
class Probe:
    """How a process is asked whether it is ready; without a path a connection is enough."""

    port: int
    path: str | None = None
    tls: bool = False


@dataclass(frozen=True, slots=True)
class Process:
    """One container."""

    name: str
    command: Sequence[str]
    env: Mapping[str, str]
    ports: Mapping[str, int]
    """Ports on loopback by the name, or else the number, they have in the manifest."""
    numbers: Mapping[str, int]
    """The same by number."""
    probe: Probe | None


@dataclass(frozen=True, slots=True)
class Pod:
    """One replica of a Deployment."""

    name: str
    namespace: str
    deployment: str
    account: str
    token: bool | None
    """Whether it wants the token of its account; None leaves it to the account."""
    labels: Mapping[str, str]
    volumes: Sequence[Volume]
    processes: Sequence[Process] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """What this machine gives to the pods."""

    folder: Path
    """Every pod has a folder of its name in it."""
    ports: Mapping[str, int]
    """A free port for each of `port_names`."""
    find: Callable[[str], str | None]
    """The program of that name."""
    env: Mapping[str, str]
    """What every process gets."""

    def volume(self, pod: Pod, name: str) -> Path:
        return self.folder / pod.name / "volumes" / name


def port_names(deployment: Object) -> list[str]:
    """A name for every port that the pods of the Deployment listen on."""
    read = _read(deployment)
    return [
        _port_key(name, container, port)
        for name in _pod_names(read)
        for container in read["spec"]["template"]["spec"]["containers"]
        for port in container.get("ports", ())
    ]


def plan(deployment: Object, place: Place) -> list[Pod]:
    """The pods of the Deployment with everything needed to start them."""
    read = _read(deployment)
    return [_pod(read, name, place) for name in _pod_names(read)]


def _read(deployment: Object) -> Object:
    try:
        read: Object = shapes.read(deployment, shapes.DEPLOYMENT)
    except shapes.Unlike as unlike:
        raise Unsupported(f"Deployment {deployment['metadata']['name']}: {unlike}") from None
    return read


def _pod(deployment: Object, name: str, place: Place) -> Pod:
    metadata, template = deployment["metadata"], deployment["spec"]["template"]
    spec = template["spec"]
    if spec.get("initContainers"):
        raise Unsupported(f"Deployment {metadata['name']}: initContainers are not run here")
    bare = Pod(
        name=name,
        namespace=metadata.get("namespace", "default"),
        deployment=metadata["name"],
        account=spec.get("serviceAccountName", "default"),
        token=spec.get("automountServiceAccountToken"),
        labels=template.get("metadata", {}).get("labels", {}),
        volumes=tuple(_volume(metadata["name"], volume) for volume in spec.get("volumes", ())),
    )
    processes = tuple(_process(bare, container, place) for container in spec["containers"])
    return Pod(
        **{field: getattr(bare, field) for field in Pod.__slots__ if field != "processes"}, processes=processes
    )


def _process(pod: Pod, container: Object, place: Place) -> Process:
    where = f"Deployment {pod.deployment}: container {container['name']}"
    command = [*container.get("command", ()), *container.get("args", ())]
    program = place.find(command[0]) if command else None
    if program is None:
        raise Unsupported(f"{where}: no such command here: {command[:1]}")
    numbers = {
        str(port["containerPort"]): place.ports[_port_key(pod.name, container, port)]
        for port in container.get("ports", ())
    }
    mounts = dict(_mounts(where, pod, container, place))
    said = dict(_environment(where, pod, container))
    moved = [_moved(text, mounts, numbers) for text in command[1:]]
    env = {name: _moved(text, mounts, numbers) for name, text in said.items()}
    for number, chosen in numbers.items():
        if not any(str(chosen) in text for text in (*moved, *env.values())):
            raise Unsupported(
                f"{where}: port {number} stands neither in args nor in env, so no free one can be given instead"
            )
    ports = {
        port.get("name", str(port["containerPort"])): numbers[str(port["containerPort"])]
        for port in container.get("ports", ())
    }
    return Process(
        name=f"{pod.name}.{container['name']}",
        command=(program, *moved),
        env={**_surroundings(pod, place), **env},
        ports=ports,
        numbers=numbers,
        probe=_probe(where, container.get("readinessProbe"), {**numbers, **ports}),
    )


def _surroundings(pod: Pod, place: Place) -> dict[str, str]:
    home = place.folder / pod.name
    return {**place.env, "HOME": str(home), "HOSTNAME": pod.name, "KUBECONFIG": str(home / KUBECONFIG)}


def _moved(text: str, mounts: Mapping[str, str], numbers: Mapping[str, int]) -> str:
    """The text with mount paths and ports as they are on this machine; listeners stay on loopback."""
    for path in sorted(mounts, key=len, reverse=True):
        text = re.sub(rf"(?<![\w./-]){re.escape(path)}(?![\w.-])", lambda _, path=path: mounts[path], text)  # type: ignore[misc]
    for number, chosen in numbers.items():
        text = re.sub(rf"{_ANYWHERE}:{number}(?!\d)", f"127.0.0.1:{chosen}", text)
        text = re.sub(rf"(?:^|(?<==)){number}$", str(chosen), text)
    return text


def _mounts(where: str, pod: Pod, container: Object, place: Place) -> Iterator[tuple[str, str]]:
    yield ACCOUNT_PATH, str(place.volume(pod, ACCOUNT_VOLUME))
    for mount in container.get("volumeMounts", ()):
        if "subPath" in mount or "subPathExpr" in mount:
            raise Unsupported(f"{where}: volumeMount {mount['mountPath']} has a subPath; mount the whole volume")
        yield mount["mountPath"].rstrip("/"), str(place.volume(pod, mount["name"]))


def _environment(where: str, pod: Pod, container: Object) -> Iterator[tuple[str, str]]:
    if container.get("envFrom"):
        raise Unsupported(f"{where}: envFrom is not supported here")
    for entry in container.get("env", ()):
        field = entry.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath", "")
        if field in _FIELDS:
            yield entry["name"], _FIELDS[field](pod)
        elif "valueFrom" in entry:
            raise Unsupported(
                f"{where}: env {entry['name']} has no value; a process here can be given literal values and "
                f"{', '.join(_FIELDS)}"
            )
        else:
            yield entry["name"], entry.get("value", "")


def _probe(where: str, probe: Mapping[str, Any] | None, ports: Mapping[str, int]) -> Probe | None:
    if probe is None:
        return None
    asked = probe.get("httpGet") or probe.get("tcpSocket")
    if not asked or str(asked["port"]) not in ports:
        raise Unsupported(f"{where}: readinessProbe: use httpGet or tcpSocket with a port of the container")
    path = asked.get("path", "/") if "httpGet" in probe else None
    return Probe(ports[str(asked["port"])], path, asked.get("scheme") == "HTTPS")


def _volume(deployment: str, volume: Mapping[str, Any]) -> Volume:
    name = volume["name"]
    for kind, resource, field in (("configMap", "configmaps", "name"), ("secret", "secrets", "secretName")):
        if source := volume.get(kind):
            items = {item["key"]: item["path"] for item in source.get("items", ())} or None
            mode = source.get("defaultMode", 0o644)
            return Volume(name, resource, source[field], items, source.get("optional", False), mode)
    if "emptyDir" in volume or list(volume) == ["name"]:  # which is the same to Kubernetes
        return Volume(name)
    kinds = ", ".join(kind for kind in volume if kind != "name")
    raise Unsupported(f"Deployment {deployment}: volume {name}: {kinds} cannot be had here")


def _pod_names(deployment: Object) -> list[str]:
    count = deployment["spec"].get("replicas", 1)
    return [f"{deployment['metadata']['name']}-{replica}" for replica in range(count)]


def _port_key(pod: str, container: Object, port: Mapping[str, Any]) -> str:
    return f"{pod}.{container['name']}:{port['containerPort']}"
