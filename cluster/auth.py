"""From a kubeconfig or a ServiceAccount to a connection: server, TLS pool and credentials.

The official package reads kubeconfigs, runs exec plugins and builds the TLS pool; nothing else of it is used.
Token files are read by ourselves, because the official loader looks at them once a minute in a cluster and never
again for the `tokenFile` of a kubeconfig; nor does it ever look again at the files of a client certificate. The
environment is not read here: which kubeconfig, which context and whether we run in a cluster is told by the caller.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import urllib3

from cluster.client_certificate import ClientCertificate
from cluster.tokens import Anonymous, Credentials, FileToken, expiry_sentence

if TYPE_CHECKING:
    from kubernetes.client.configuration import Configuration

POOL_SIZE = 64
"""Idle connections kept: a watch per resource, the workers of the migrator and those for urgent moves, with room."""
_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class LoginError(Exception):
    """The configuration does not lead to a connection; the text says what is wrong with it."""


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

    def show_certificate(self, configuration: Configuration) -> None:
        """Use the client certificate of a configuration, if it has one, and follow its files."""
        self.pool = _pool(configuration)
        certificate, key = configuration.cert_file, configuration.key_file
        try:
            self.certificate = (
                ClientCertificate(Path(certificate), Path(key) if key else None, lambda: _pool(configuration))
                if certificate
                else None
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
    """Log in as kubectl does: the flag, KUBECONFIG, the cluster around a pod, the file in the home folder."""
    around = InCluster.from_environ(environ)
    found = [kubeconfig] if kubeconfig else [Path(part) for part in environ.get("KUBECONFIG", "").split(":") if part]
    if not found and around is None:
        found = [home / ".kube" / "config"]
    return connect(found or None, context, around)


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
    from kubernetes.client.configuration import Configuration
    from kubernetes.config.config_exception import ConfigException
    from kubernetes.config.incluster_config import InClusterConfigLoader

    configuration = Configuration()
    environ = {"KUBERNETES_SERVICE_HOST": around.host, "KUBERNETES_SERVICE_PORT": around.port}
    loader = InClusterConfigLoader(str(around.token_file), str(around.ca_file), False, environ)  # type: ignore[no-untyped-call]
    try:
        loader.load_and_set(configuration)  # type: ignore[no-untyped-call]
        token = FileToken(around.token_file, clock=clock)
    except (ConfigException, OSError, ValueError) as exc:
        raise LoginError(f"cannot use the ServiceAccount of this pod: {exc}") from exc
    namespace = around.namespace_file.read_text().strip() if around.namespace_file.exists() else ""
    return Connection(configuration.host, _pool(configuration), token, namespace=namespace)


def _from_kubeconfig(paths: Sequence[Path], context: str | None, clock: Callable[[], float]) -> Connection:
    login = _read_kubeconfig(paths, context)
    connection = Connection(
        login.configuration.host, _pool(login.configuration), Anonymous(login.told), namespace=login.namespace
    )
    connection.show_certificate(login.configuration)
    if login.token_file:
        try:
            connection.credentials = FileToken(login.token_file, clock=clock)
        except (OSError, ValueError) as exc:
            raise LoginError(f"{login.told}: {exc}") from exc
    else:
        connection.credentials = _KubeconfigUser(
            login, connection, again=lambda: _read_kubeconfig(paths, context), clock=clock
        )
    return connection


@dataclass(frozen=True, slots=True)
class _Login:
    """One reading of a kubeconfig."""

    configuration: Configuration
    token_file: Path | None
    told: str
    namespace: str

    @property
    def certificate(self) -> tuple[str | None, str | None]:
        return self.configuration.cert_file, self.configuration.key_file


class _KubeconfigUser:
    """A user whose token, exec plugin or certificate the official package looks after."""

    def __init__(
        self, login: _Login, connection: Connection, *, again: Callable[[], _Login], clock: Callable[[], float]
    ) -> None:
        self._login = login
        self._connection = connection
        self._again = again
        self._clock = clock
        self._lock = threading.Lock()

    def authorization(self) -> str | None:
        """The header; an exec plugin runs again when what it gave is about to expire."""
        with self._lock:
            return self._login.configuration.get_api_key_with_prefix("BearerToken")

    def reload(self) -> bool:
        """Read the kubeconfig again, run its plugin, and use the certificate it leads to now."""
        with self._lock:
            try:
                login = self._again()
                if login.certificate != self._login.certificate:
                    self._connection.show_certificate(login.configuration)
            except LoginError:
                return False
            self._login = login
            return True

    def describe(self) -> str:
        """User, file and, for a token, its expiry."""
        token = str(self._login.configuration.api_key.get("BearerToken", ""))
        if not token.startswith("Bearer "):
            return f"{self._login.told} is not accepted"
        return f"the token of {self._login.told} {expiry_sentence(token[7:], self._clock())}"


def _read_kubeconfig(paths: Sequence[Path], context: str | None) -> _Login:
    import yaml
    from kubernetes.client.configuration import Configuration
    from kubernetes.config import kube_config
    from kubernetes.config.config_exception import ConfigException

    named = ":".join(str(path) for path in paths)
    configuration = Configuration()
    try:
        merged = kube_config.KubeConfigMerger(named)  # type: ignore[no-untyped-call]
        if merged.config is None:
            raise LoginError(f"there is no kubeconfig at {named}")
        active = context or _current_context(merged.config_files.values())
        loader = kube_config.KubeConfigLoader(merged.config, active, config_base_path=None)  # type: ignore[no-untyped-call]
        loader.load_and_set(configuration)  # type: ignore[no-untyped-call]
        user, base = _user(merged.config, loader.current_context["context"])
    except (ConfigException, OSError, yaml.YAMLError, ValueError, TypeError, KeyError) as exc:
        raise LoginError(f"cannot use the kubeconfig {named}: {exc}") from exc
    told = f"user {loader.current_context['context'].get('user')!r} of {named}"
    if user.get("exec") and not configuration.api_key and not configuration.cert_file:
        raise LoginError(f"the exec plugin {user['exec'].get('command')!r} of {told} gave no credentials")
    if any(user.get(key) for key in ("as", "as-uid", "as-groups", "as-user-extra")):
        raise LoginError(f"{told} acts as somebody else (`as`), which is not supported; it would have other rights")
    token_file = user.get("tokenFile")
    namespace = str(loader.current_context["context"].get("namespace") or "")
    return _Login(configuration, base / token_file if token_file else None, told, namespace)


def _current_context(files: Any) -> str | None:
    """That of the first file that sets one, as kubectl has it; the official merge takes the last."""
    return next((str(file["current-context"]) for file in files if file.get("current-context")), None)


def _user(config: Any, context: Mapping[str, Any]) -> tuple[Mapping[str, Any], Path]:
    """The user entry of a context and the folder its relative paths start from."""
    name = context.get("user")
    node = config["users"].get_with_name(name, safe=True) if name and config.safe_get("users") else None
    if node is None:
        return {}, Path()
    return node.value.get("user") or {}, Path(node.path).absolute().parent


def _pool(configuration: Configuration) -> urllib3.PoolManager:
    from kubernetes.client.rest import RESTClientObject

    configuration.retries = False
    configuration.keep_alive = True
    configuration.connection_pool_maxsize = POOL_SIZE
    return RESTClientObject(configuration).pool_manager
