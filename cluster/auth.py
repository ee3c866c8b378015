"""From a kubeconfig or a ServiceAccount to a connection: server, TLS pool and credentials.

Plain logins are read by ourselves; plugins, client certificates and proxies are left to the official package, which
takes 0.4 s and 23 MB to be imported. Token files are looked at by ourselves in any case, because the official loader
never looks again at the `tokenFile` of a kubeconfig; nor does it ever look again at the files of a certificate. Which
kubeconfig, which context and whether we run in a cluster is told by the caller, not read from the environment.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import urllib3

from cluster import plain_login, tokens
from cluster.client_certificate import ClientCertificate
from cluster.login import Login, LoginError
from cluster.tokens import Anonymous, Credentials, FileToken, expiry_sentence

__all__ = ["Connection", "InCluster", "LoginError", "as_kubectl", "connect"]

BEARER = "Bearer "
_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(slots=True)
class Connection:
    """What a client needs. The pool may be replaced when a client certificate changes: ask before each request."""

    server: str
    pool: urllib3.PoolManager
    credentials: Credentials
    certificate: ClientCertificate | None = None
    namespace: str = ""
    """Where the context, or the pod we run in, puts objects that do not say where they belong; empty: nowhere."""

    def current_pool(self) -> urllib3.PoolManager:
        """The pool whose connections show the client certificate that is in its files now."""
        renewed = self.certificate.renewed() if self.certificate else None
        if renewed is not None:
            self.pool = renewed
        return self.pool

    def show_certificate(self, login: Login) -> None:
        """Use the client certificate of a login, if it has one, and follow its files."""
        self.pool = login.pool()
        certificate, key = login.certificate
        try:
            self.certificate = (
                ClientCertificate(Path(certificate), Path(key) if key else None, login.pool) if certificate else None
            )
        except OSError as exc:
            raise LoginError(f"cannot read the client certificate: {exc}") from exc


@dataclass(frozen=True, slots=True)
class InCluster:
    """How a pod reaches the API server."""

    host: str
    port: str
    token_file: Path = _ACCOUNT / "token"
    ca_file: Path = _ACCOUNT / "ca.crt"
    namespace_file: Path = _ACCOUNT / "namespace"

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> InCluster | None:
        """What the kubelet puts into every container; None outside of a cluster."""
        host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
        return cls(host, port) if host and port else None


def as_kubectl(environ: Mapping[str, str], home: Path, *, kubeconfig: Path | None, context: str | None) -> Connection:
    """Log in as kubectl does: the flag, KUBECONFIG, the file in the home folder, and where none of them chooses a
    context the cluster around a pod. That one has no contexts, so who names one means a file.
    """
    around = InCluster.from_environ(environ)
    if kubeconfig is not None:
        return connect(kubeconfig, context, around)
    found = [Path(part) for part in environ.get("KUBECONFIG", "").split(":") if part] or [home / ".kube" / "config"]
    if context or around is None or any(map(plain_login.chooses, found)):
        return connect(found, context, around)
    return connect(in_cluster=around)


def connect(
    kubeconfig: Path | Sequence[Path] | None = None,
    context: str | None = None,
    in_cluster: InCluster | None = None,
    *,
    clock: Callable[[], float] = time.time,
) -> Connection:
    """Log in. A kubeconfig, or several to be merged as kubectl does, wins over the cluster around us."""
    if kubeconfig is not None:
        paths = [kubeconfig] if isinstance(kubeconfig, Path) else list(kubeconfig)
        return _from_kubeconfig(paths, context, clock)
    if in_cluster is not None:
        return _from_account(in_cluster, clock)
    raise LoginError("neither a kubeconfig nor the ServiceAccount of a pod was given")


def _from_account(around: InCluster, clock: Callable[[], float]) -> Connection:
    try:
        login = plain_login.from_account(around.host, around.port, around.ca_file)
        if login is None:
            from cluster import official_login

            login = official_login.from_account(around.host, around.port, around.token_file, around.ca_file)
        token = FileToken(around.token_file, clock=clock)
    except (OSError, ValueError) as exc:
        raise LoginError(f"cannot use the ServiceAccount of this pod: {exc}") from exc
    namespace = around.namespace_file.read_text().strip() if around.namespace_file.exists() else ""
    return Connection(login.server, login.pool(), token, namespace=namespace)


def _from_kubeconfig(paths: Sequence[Path], context: str | None, clock: Callable[[], float]) -> Connection:
    login = _read(paths, context)
    connection = Connection(login.server, login.pool(), Anonymous(login.told), namespace=login.namespace)
    connection.show_certificate(login)
    if login.token_file:
        try:
            connection.credentials = FileToken(login.token_file, clock=clock)
        except (OSError, ValueError) as exc:
            raise LoginError(f"{login.told}: {exc}") from exc
    else:
        user = _KubeconfigUser(login, connection, again=lambda: _read(paths, context), clock=clock)
        user.authorization()  # what no header can carry is told before anything is asked
        connection.credentials = user
    return connection


def _read(paths: Sequence[Path], context: str | None) -> Login:
    plain = plain_login.from_kubeconfig(paths, context)
    if plain is not None:
        return plain
    from cluster import official_login

    return official_login.from_kubeconfig(paths, context)


class _KubeconfigUser:
    """A user whose token, exec plugin or certificate stands in a kubeconfig."""

    def __init__(
        self, login: Login, connection: Connection, *, again: Callable[[], Login], clock: Callable[[], float]
    ) -> None:
        self._login = login
        self._connection = connection
        self._again = again
        self._clock = clock
        self._lock = threading.Lock()
        self._last: str | None = None

    def authorization(self) -> str | None:
        """The header; an exec plugin runs again when what it gave is about to expire."""
        with self._lock:
            header = self._login.header()
            if header is None or tokens.HEADER.fullmatch(header):
                self._last = header
            elif self._last is None:
                raise LoginError(f"the token of {self._login.told} holds a line break or a sign no header can carry")
            return self._last

    def reload(self) -> bool:
        """Read the kubeconfig again, run its plugin, and use the certificate it leads to now."""
        with self._lock:
            try:
                login = self._again()
                login.header()  # a file that its token has moved into may not be there yet
                if login.certificate != self._login.certificate:
                    self._connection.show_certificate(login)
            except (LoginError, OSError, ValueError):
                return False
            self._login = login
            return True

    def describe(self) -> str:
        """User, file and, for a token that was sent, its expiry."""
        sent = self._last or ""
        if not sent.startswith(BEARER):
            return f"{self._login.told} is not accepted"
        return f"the token of {self._login.told} {expiry_sentence(sent.removeprefix(BEARER), self._clock())}"
