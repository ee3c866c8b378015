"""What a kubelet does for a pod besides starting it: volumes, the token of its ServiceAccount, readiness, its end.

Each pod has a folder with what it was started as (`pod.json`), its volumes and a kubeconfig. `sync` brings them up to
date from whatever state they are in; the process `kubelet` of a test bed does that all the time.
"""

import base64
import contextlib
import dataclasses
import functools
import http.client
import itertools
import json
import shutil
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import urllib3

from testbed import access, api, pki, process, volumes
from testbed.bed import STOP_GRACE_SECONDS, ControlPlane
from testbed.pods import ACCOUNT_VOLUME, KUBECONFIG, Pod, Probe, Process, Volume

WATCHED = ("deployments", "configmaps", "secrets")
"""What the folder of a pod is made from. A real kubelet takes up to a minute and a half to notice a change; nobody
wants to wait that long here.
"""
WATCH_SECONDS, RETRY_SECONDS, SYNC_SECONDS = 600, 1.0, 10.0
"""How long one watch lasts, until a failure is tried again, and until everything is looked over without a change."""
TOKEN_SECONDS = 3607
"""What a real kubelet asks for; a new token comes when four fifths of the time are over."""
RENEW_AT = 0.8
PROBE_SECONDS = 1.0
Get = Callable[[str, str, str], api.Object]
"""Reads an object by resource, name and namespace."""
APISERVER = "apiserver"
"""A file in the folder of a pod: where its kubeconfig leads, if not straight to the API server."""


class Missing(Exception):
    """A pod cannot start, or be brought up to date, without this object."""


def folder(bed: ControlPlane) -> Path:
    return bed.home / "pods"


def remember(bed: ControlPlane, pod: Pod) -> None:
    """A pod that is started anew gets a token of its own: the account of an earlier one may be another."""
    home = folder(bed) / pod.name
    home.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(home / "volumes" / ACCOUNT_VOLUME, ignore_errors=True)
    staging = home / "pod.json.new"
    staging.write_text(json.dumps(dataclasses.asdict(pod), indent=1))
    staging.replace(home / "pod.json")


def lead(bed: ControlPlane, pod: str, server: str) -> None:
    """Have the pod of this name find the API server at this address, such as that of a fault proxy. Before it is
    installed: it gets its kubeconfig then.
    """
    home = folder(bed) / pod
    home.mkdir(parents=True, exist_ok=True)
    (home / APISERVER).write_text(server)


def forget(bed: ControlPlane, pod: Pod) -> None:
    shutil.rmtree(folder(bed) / pod.name)


def remembered(bed: ControlPlane) -> list[Pod]:
    """The pods that were started here, in the order of their names."""
    return [_loaded(path) for path in sorted(folder(bed).glob("*/pod.json"))]


def run(bed: ControlPlane, tell: Callable[[str], None]) -> None:
    """Keep the volumes of every pod up to date, for ever; an apiserver that is away is asked again. A pod that its
    Deployment no longer wants is ended.
    """
    client, changed = bed.api(), threading.Event()
    for where in itertools.product(WATCHED, {pod.namespace for pod in remembered(bed)}):
        threading.Thread(target=_notice, args=(client, *where, changed), daemon=True).start()
    while True:
        changed.clear()
        failures = list(_look_over(bed, client, tell))
        for failure in failures:
            tell(failure)
        changed.wait(RETRY_SECONDS if failures else SYNC_SECONDS)


def _notice(client: api.Api, resource: str, namespace: str, changed: threading.Event) -> None:
    """Tell of every change, for ever. A watch begins with all that is there, so nothing is missed between two."""
    while True:
        with contextlib.suppress(api.ApiError, urllib3.exceptions.HTTPError, ValueError):
            for _ in client.watch(resource, namespace, seconds=WATCH_SECONDS):
                changed.set()
        time.sleep(RETRY_SECONDS)


def _look_over(bed: ControlPlane, client: api.Api, tell: Callable[[str], None]) -> Iterator[str]:
    """Bring everything up to date; yields what failed."""
    get = looked_over(client)
    try:
        for name in end_unwanted(bed, get):
            tell(f"{name}: ended")
    except (api.ApiError, urllib3.exceptions.HTTPError) as failure:
        yield f"{failure}"
    for pod in remembered(bed):
        try:
            for changed in sync(bed, client, pod, now=time.time(), get=get):
                tell(f"{pod.name}: new version of {changed}")
        except (Missing, api.ApiError, urllib3.exceptions.HTTPError, OSError) as failure:
            yield f"{pod.name}: {failure}"


def looked_over(client: api.Api) -> Get:
    """Answers from one list of each kind in each namespace: pods of one namespace want much the same objects."""

    @functools.cache
    def by_name(resource: str, namespace: str) -> dict[str, api.Object]:
        return {it["metadata"]["name"]: it for it in client.list(resource, namespace)}

    def get(resource: str, name: str, namespace: str) -> api.Object:
        found = by_name(resource, namespace).get(name)
        if found is None:
            raise api.ApiError(404, {"message": f'{resource} "{name}" not found'}, {})
        return found

    return get


def end_unwanted(bed: ControlPlane, get: Get) -> list[str]:
    """Stop the processes of pods that their Deployments no longer want, all at once, and forget the pods."""
    ending = [pod for pod in remembered(bed) if not is_wanted(get, pod)]
    names = {one.name for pod in ending for one in pod.processes}
    found = [child for name, child in process.running(bed.home) if name in names] if names else []
    process.stop(found, grace_seconds=STOP_GRACE_SECONDS)
    for pod in ending:
        forget(bed, pod)
    return [pod.name for pod in ending]


def is_wanted(get: Get, pod: Pod) -> bool:
    """Whether its Deployment is there and has so many replicas."""
    try:
        found = get("deployments", pod.deployment, pod.namespace)
    except api.ApiError as refusal:
        if refusal.status == 404:
            return False
        raise
    number = int(pod.name.rpartition("-")[2])
    return "deletionTimestamp" not in found["metadata"] and number < found["spec"]["replicas"]


def sync(bed: ControlPlane, client: api.Api, pod: Pod, *, now: float, get: Get | None = None) -> list[str]:
    """Bring volumes and token up to date; returns which of them changed. `get` may know objects already."""
    get = get or client.get
    home = folder(bed) / pod.name
    changed = []
    for volume in pod.volumes:
        target = home / "volumes" / volume.name
        if not volume.resource:
            target.mkdir(parents=True, exist_ok=True)
        elif volumes.write(target, _files(get, pod.namespace, volume), mode=volume.mode):
            changed.append(volume.name)
    if _wants_token(get, pod) and _sync_token(bed, client, pod, now=now):
        changed.append(ACCOUNT_VOLUME)
    return changed


def is_ready(probe: Probe | None) -> bool:
    """What the readiness probe says; a process without one is ready as soon as it runs."""
    if probe is None:
        return True
    try:
        if probe.path is None:
            socket.create_connection(("127.0.0.1", probe.port), PROBE_SECONDS).close()
            return True
        connection = _connection(probe)
        try:
            connection.request("GET", probe.path)
            return 200 <= connection.getresponse().status < 400
        finally:
            connection.close()
    except (OSError, http.client.HTTPException):
        return False


def _connection(probe: Probe) -> http.client.HTTPConnection:
    if not probe.tls:
        return http.client.HTTPConnection("127.0.0.1", probe.port, timeout=PROBE_SECONDS)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # as a kubelet does
    return http.client.HTTPSConnection("127.0.0.1", probe.port, timeout=PROBE_SECONDS, context=context)


def _files(get: Get, namespace: str, volume: Volume) -> dict[str, bytes]:
    try:
        found = get(volume.resource, volume.source, namespace)
    except api.ApiError as refusal:
        if refusal.status != 404:
            raise
        if volume.optional:
            return {}
        raise Missing(f"volume {volume.name}: {volume.resource} {volume.source!r} not found") from None
    content = dict(_content(found, binary=volume.resource == "secrets"))
    if volume.items is None:
        return content
    absent = set(volume.items) - set(content)
    if absent and not volume.optional:
        raise Missing(f"volume {volume.name}: {volume.resource} {volume.source!r} has no {', '.join(sorted(absent))}")
    return {path: content[key] for key, path in volume.items.items() if key in content}


def _content(found: api.Object, *, binary: bool) -> Iterator[tuple[str, bytes]]:
    for key, value in (found.get("data") or {}).items():
        yield key, base64.b64decode(value) if binary else value.encode()
    for key, value in (found.get("binaryData") or {}).items():
        yield key, base64.b64decode(value)


def _wants_token(get: Get, pod: Pod) -> bool:
    if pod.token is not None:
        return pod.token
    account = get("serviceaccounts", pod.account, pod.namespace)
    return bool(account.get("automountServiceAccountToken", True))


def _sync_token(bed: ControlPlane, client: api.Api, pod: Pod, *, now: float) -> bool:
    home = folder(bed) / pod.name
    target = home / "volumes" / ACCOUNT_VOLUME
    token = target / "token"
    if token.exists() and now < token.stat().st_mtime + RENEW_AT * TOKEN_SECONDS:
        return False
    ca = bed.layout.ca.bundle()
    fresh = access.token(client, pod.account, pod.namespace, seconds=TOKEN_SECONDS)
    files = {"token": fresh.encode(), "ca.crt": ca, "namespace": pod.namespace.encode()}
    volumes.write(target, files, mode=0o600)
    server = (home / APISERVER).read_text() if (home / APISERVER).exists() else bed.server
    pki.kubeconfig(home / KUBECONFIG, server=server, ca=ca, user={"tokenFile": str(token)})
    return True


def _loaded(path: Path) -> Pod:
    document = json.loads(path.read_text())
    document["volumes"] = tuple(Volume(**volume) for volume in document["volumes"])
    document["processes"] = tuple(
        Process(**{**process, "probe": Probe(**process["probe"]) if process["probe"] else None})
        for process in document["processes"]
    )
    return Pod(**document)
