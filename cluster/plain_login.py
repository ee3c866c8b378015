"""Logins that need no plugin, no client certificate and no proxy: a server, who signs for it, and a token.

That is every pod in a cluster and many a kubeconfig, and the official package takes 0.4 s and 23 MB to be imported.
What is not as plain is left to it, and so is telling what is wrong with a kubeconfig.
"""

from __future__ import annotations

import base64
import socket
import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar
from urllib.request import getproxies

import msgspec
import urllib3
from urllib3.connection import HTTPConnection

from cluster import kubeconfig_checks
from cluster.login import POOL_SIZE, Login

KEEP_ALIVE_IDLE_SECONDS, KEEP_ALIVE_INTERVAL_SECONDS, KEEP_ALIVE_PROBES = 30, 15, 9
"""What client-go asks for: a peer that is gone is noticed, however little is said."""


class _Cluster(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    server: str
    certificate_authority: str = ""
    certificate_authority_data: str = ""


class _User(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    token: str = ""
    tokenFile: str = ""  # noqa: N815 - as it is spelled there


class _Context(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    cluster: str
    user: str
    namespace: str = ""


class _Config(msgspec.Struct, frozen=True, rename="kebab"):
    clusters: tuple[dict[str, object], ...]
    users: tuple[dict[str, object], ...]
    contexts: tuple[dict[str, object], ...]
    current_context: str = ""


Entry = TypeVar("Entry", _Cluster, _User, _Context)


def from_kubeconfig(paths: Sequence[Path], context: str | None) -> Login | None:
    """The login of a context; None if anything about it is not plain, or wrong."""
    import yaml

    try:
        found = [path for path in paths if path.exists()]
        if len(found) != 1 or getproxies() or any(str(path).startswith("~") for path in paths):
            return None
        (path,) = found
        config = msgspec.convert(yaml.safe_load(path.read_text()), _Config)
        chosen = _entry(config.contexts, context or config.current_context, "context", _Context)
        cluster = _entry(config.clusters, chosen.cluster, "cluster", _Cluster)
        user = _entry(config.users, chosen.user, "user", _User)
        authority = base64.b64decode(cluster.certificate_authority_data, validate=True).decode("ascii")
        if authority and not kubeconfig_checks.are_certificates(authority):
            return None
        folder = path.absolute().parent
        file = str(folder / cluster.certificate_authority) if cluster.certificate_authority else None
        if "://" not in cluster.server or not (user.token or user.tokenFile) or (file and not Path(file).is_file()):
            return None
    except (OSError, ValueError, LookupError, yaml.YAMLError):
        return None
    token_file = folder / user.tokenFile if user.tokenFile else None
    return Login(
        cluster.server.rstrip("/"),
        f"user {chosen.user!r} of {':'.join(map(str, paths))}",
        lambda: pool(None if authority else file, authority or None),
        lambda: f"Bearer {token_file.read_text().strip() if token_file else user.token}",
        token_file,
        chosen.namespace,
    )


def chooses(path: Path) -> bool:
    """Whether a kubeconfig says which context to use, or nobody can tell: what is wrong with it has to be said."""
    import yaml

    try:
        config = yaml.safe_load(path.read_text())
        return bool(config.get("current-context")) if isinstance(config, dict) else bool(config)
    except FileNotFoundError:
        return False
    except (OSError, ValueError, yaml.YAMLError):
        return True


def from_account(host: str, port: str, ca_file: Path) -> Login | None:
    """The API server around a pod, which has a token of its own; None if there is a proxy on the way."""
    if getproxies():
        return None
    if not ca_file.read_text().strip():
        raise ValueError(f"the file {ca_file} is empty")
    address = f"[{host}]" if ":" in host else host
    told = "the ServiceAccount of this pod"
    return Login(f"https://{address}:{port}", told, lambda: pool(str(ca_file)), lambda: None)


def _entry(entries: Sequence[dict[str, object]], name: str, key: str, kind: type[Entry]) -> Entry:
    """The first of this name, as in kubectl."""
    found = next((it for it in entries if it.get("name") == name), None)
    if found is None:
        raise LookupError(name)
    return msgspec.convert(found.get(key), kind)


def pool(ca_file: str | None, ca_data: str | None = None) -> urllib3.PoolManager:
    """Connections that trust this authority, notice dead peers, and never try again by themselves."""
    return urllib3.PoolManager(
        cert_reqs=ssl.CERT_REQUIRED,
        ca_certs=ca_file,
        ca_cert_data=ca_data,
        retries=False,
        maxsize=POOL_SIZE,
        socket_options=[
            *HTTPConnection.default_socket_options,
            (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
            *_keep_alive(),
        ],
    )


def _keep_alive() -> list[tuple[int, int, int]]:
    """As far as the platform has them."""
    wanted = {
        "TCP_KEEPIDLE": KEEP_ALIVE_IDLE_SECONDS,
        "TCP_KEEPINTVL": KEEP_ALIVE_INTERVAL_SECONDS,
        "TCP_KEEPCNT": KEEP_ALIVE_PROBES,
    }
    return [
        (socket.IPPROTO_TCP, getattr(socket, name), value) for name, value in wanted.items() if hasattr(socket, name)
    ]
