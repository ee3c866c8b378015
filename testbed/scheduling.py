"""kube-scheduler with a configuration of the user's, such as one that asks an extender.

`configured` is pure: what has to be as the test bed has it stays (login, no leader election, short back-offs), the
rest comes from the file. An extender that stands behind an installed Service is led to the port that the Service has
on loopback, since nothing resolves its name here.
"""

import contextlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
import urllib3
import yaml

from testbed import layout, ports, process, shapes
from testbed.api import Object
from testbed.bed import ControlPlane, DidNotStart
from testbed.folder import Refused
from testbed.waiting import eventually

KIND = "KubeSchedulerConfiguration"
GRACE_SECONDS = 2.0
OURS = ("clientConnection", "leaderElection")
_SERVICE = re.compile(
    r"(?P<scheme>https?)://(?P<name>[-a-z0-9]+)\.(?P<namespace>[-a-z0-9]+)\.svc(?:\.[-.a-z0-9]*)?(?::(?P<port>\d+))?"
)
_PORTS = {"http": "80", "https": "443"}
_SHAPE = {"extenders?": [{"urlPrefix?": str, "tlsConfig?": dict}], "profiles?": [dict]}
_LAST_WORDS = re.compile(r'"command failed" err="(.*)"$', re.MULTILINE)


def restart(running: ControlPlane, file: Path | None, listen: Mapping[str, int]) -> list[str]:
    """Restart the scheduler with the file, or without one as it was; returns the addresses of its extenders.

    `listen` are the ports of installed Services on loopback, by `NAME.NAMESPACE:PORT`.
    """
    own = yaml.safe_load(layout.scheduler_configuration(running.layout))
    made = own if file is None else configured(own, _read(file), listen)
    path = running.home / "scheduler.yaml"
    before = path.read_text()
    path.write_text(yaml.safe_dump(made, sort_keys=False))
    try:
        running.restart("kube-scheduler")
    except Exception as failure:
        path.write_text(before)
        running.restart("kube-scheduler")
        if file is not None and (why := _why(str(failure))):
            raise Refused(f"config: kube-scheduler does not take {file}: {why}") from None
        raise
    return [extender["urlPrefix"] for extender in made.get("extenders", ())]


@contextlib.contextmanager
def beside(running: ControlPlane, name: str, folder: Path, given: Object) -> Iterator[str]:
    """A second kube-scheduler, for the pods that name it, until the block ends."""
    folder.mkdir()
    config, serving = folder / "scheduler.yaml", ports.free(("scheduler",))["scheduler"]
    own = yaml.safe_load(layout.scheduler_configuration(running.layout))
    config.write_text(yaml.safe_dump({**configured(own, given, {}), "profiles": [{"schedulerName": name}]}))
    certificate = running.layout.certificates / "kube-scheduler"
    command: list[str | Path] = [
        running.binaries["kube-scheduler"],
        f"--config={config}",
        "--bind-address=127.0.0.1",
        f"--secure-port={serving}",
        f"--tls-cert-file={certificate}.crt",
        f"--tls-private-key-file={certificate}.key",
        "--authorization-always-allow-paths=/healthz,/metrics",
    ]
    child = process.start(name, command, home=running.home, log=folder / "log")
    try:
        eventually(lambda: _healthy(running, child, serving, folder / "log"), what=f"scheduler {name}")
        yield name
    finally:
        process.stop([child], grace_seconds=GRACE_SECONDS)


def configured(own: Object, given: Object, listen: Mapping[str, int]) -> Object:
    """The configuration of the test bed with what is given instead of its own, but for what must stay."""
    kept = {key: own[key] for key in OURS if key in own}
    extenders = [_on_loopback(extender, listen) for extender in given.get("extenders", ())]
    return {**own, **given, **kept, **({"extenders": extenders} if extenders else {})}


def _on_loopback(extender: Mapping[str, Any], listen: Mapping[str, int]) -> Object:
    found = _SERVICE.match(extender.get("urlPrefix", ""))
    if found is None:
        return dict(extender)
    key = f"{found['name']}.{found['namespace']}:{found['port'] or _PORTS[found['scheme']]}"
    if key not in listen:
        raise Refused(f"urlPrefix: no Service {key} is installed here; `python -m testbed install` comes first")
    address = f"{found['scheme']}://127.0.0.1:{listen[key]}{extender['urlPrefix'][found.end() :]}"
    adapted = {**extender, "urlPrefix": address}
    if found["scheme"] == "https":  # the certificate is for the Service
        verified = {"serverName": f"{found['name']}.{found['namespace']}.svc", **extender.get("tlsConfig", {})}
        adapted["tlsConfig"] = verified
    return adapted


def _healthy(running: ControlPlane, child: psutil.Process, port: int, log: Path) -> bool:
    if process.has_ended(child):
        raise DidNotStart(f"the scheduler ended:\n{log.read_text()[-2000:]}")
    pool = urllib3.PoolManager(ca_certs=str(running.layout.ca.pair.cert))
    try:
        return pool.request("GET", f"https://127.0.0.1:{port}/healthz", retries=False, timeout=2).status == 200
    except urllib3.exceptions.HTTPError:
        return False


def _why(log: str) -> str:
    """What a scheduler says last of all when it cannot start; the lines before are of one that could."""
    said = _LAST_WORDS.findall(log.rstrip())
    return said[-1].replace('\\"', '"') if said else ""


def _read(file: Path) -> Object:
    try:
        given: Any = yaml.safe_load(file.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as failure:
        raise Refused(f"config: {file} cannot be read: {failure}") from None
    if not isinstance(given, dict) or given.get("kind") != KIND:
        raise Refused(f"config: {file} holds no {KIND}")
    try:
        return dict(shapes.read(given, _SHAPE))
    except shapes.Unlike as unlike:
        raise Refused(f"config: {file}: {unlike}") from None
