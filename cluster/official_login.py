"""Logins as the official package reads them: plugins, client certificates, proxies, several kubeconfigs.

Imported when one is needed and not before: with all that the package brings along it takes 0.4 s and 23 MB.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import urllib3
import yaml
from kubernetes.client.configuration import Configuration
from kubernetes.client.rest import RESTClientObject, should_bypass_proxies
from kubernetes.config import kube_config
from kubernetes.config.config_exception import ConfigException
from kubernetes.config.incluster_config import InClusterConfigLoader

from cluster import kubeconfig_checks
from cluster.kubeconfig_checks import kept
from cluster.login import POOL_SIZE, Login, LoginError

LINE: Final = 200
"""Characters of what a plugin says."""
SECURED: Final = ("certificate-authority", "certificate-authority-data", "insecure-skip-tls-verify")
CERTIFIED: Final = ("client-certificate", "client-certificate-data")
"""What a kubeconfig says of a server, or of a user, only if HTTPS is spoken."""


def from_account(host: str, port: str, token_file: Path, ca_file: Path) -> Login:
    """The API server around a pod."""
    configuration = Configuration()
    environ = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
    loader = InClusterConfigLoader(str(token_file), str(ca_file), False, environ)  # type: ignore[no-untyped-call]
    try:
        loader.load_and_set(configuration)  # type: ignore[no-untyped-call]
    except ConfigException as exc:
        raise LoginError(f"cannot use the ServiceAccount of this pod: {exc}") from exc
    return _login(configuration, "the ServiceAccount of this pod")


def from_kubeconfig(paths: Sequence[Path], context: str | None) -> Login:
    """The login of a context in one kubeconfig, or in several that are merged as kubectl does."""
    named = ":".join(str(path) for path in paths)
    configuration = Configuration()
    try:
        merged = kube_config.KubeConfigMerger(named)  # type: ignore[no-untyped-call]
        if merged.config is None:
            raise LoginError(f"there is no kubeconfig at {named}")
        active = context or _current_context(merged.config_files.values())
        kubeconfig_checks.check_context(merged.config, active, named)
        loader = kube_config.KubeConfigLoader(merged.config, active, config_base_path=None)  # type: ignore[no-untyped-call]
        user, base = _user(merged.config, loader.current_context["context"])
        kubeconfig_checks.check_cluster(merged.config, loader.current_context["context"]["cluster"])
        _spell_out_scheme(merged.config, loader.current_context["context"], user)
        with kubeconfig_checks.heard() as said:
            loader.load_and_set(configuration)  # type: ignore[no-untyped-call]
    except (ConfigException, OSError, yaml.YAMLError, ValueError, TypeError, KeyError, AttributeError) as exc:
        # Without its cause, which may show a token.
        raise LoginError(_something_else(paths) or f"cannot use the kubeconfig {named}: {_said(exc)}") from None
    told = f"user {loader.current_context['context'].get('user')!r} of {named}"
    if user.get("exec") and not configuration.api_key and not configuration.cert_file:
        raise LoginError(
            f"the exec plugin {user['exec'].get('command')!r} of {told} gave no credentials{_first(said)}"
        )
    if any(user.get(key) for key in ("as", "as-uid", "as-groups", "as-user-extra")):
        raise LoginError(f"{told} acts as somebody else (`as`), which is not supported; it would have other rights")
    token_file = user.get("tokenFile")
    namespace = str(loader.current_context["context"].get("namespace") or "")
    return _login(configuration, told, base / token_file if token_file else None, namespace)


def _first(said: Sequence[str]) -> str:
    """Of what was said about a plugin the first line."""
    lines = [line for text in said for line in text.splitlines()]
    return f": {lines[0].removeprefix('exec: ')[:LINE]}" if lines else ""


def _login(configuration: Configuration, told: str, token_file: Path | None = None, namespace: str = "") -> Login:
    return Login(
        configuration.host,
        told,
        lambda: _pool(configuration, told),
        lambda: configuration.get_api_key_with_prefix("BearerToken"),
        token_file,
        namespace,
        (configuration.cert_file, configuration.key_file),
    )


def _current_context(files: Any) -> str | None:
    """That of the first file that sets one, as kubectl has it; the official merge takes the last."""
    return next((str(file["current-context"]) for file in files if file.get("current-context")), None)


def _said(exc: Exception) -> str:
    """Less the entry itself, by which the package names an entry that lacks something, with all that is in it."""
    return re.split(r"/[{[]", str(exc))[0]


def _something_else(paths: Sequence[Path]) -> str:
    """That one of them is another file altogether, of which the package says no more than Python does."""
    for path in paths:
        with contextlib.suppress(OSError, ValueError, yaml.YAMLError):
            found = yaml.safe_load(path.read_text())
            if not isinstance(found, dict | None):
                return f"{path} is no kubeconfig: it names no clusters, users and contexts"
    return ""


def _user(config: Any, context: Mapping[str, Any]) -> tuple[Mapping[str, Any], Path]:
    """The user entry of a context and the folder its relative paths start from."""
    name = context.get("user")
    node = config["users"].get_with_name(name, safe=True) if name and config.safe_get("users") else None
    if node is None:
        return {}, Path()
    told = f"user {name!r} of {node.path}"
    user = kept(node.value, "user", dict, told) or {}
    kept(user, "exec", dict, told)
    kept(user, "tokenFile", str, told)
    return user, Path(node.path).absolute().parent


def _spell_out_scheme(config: Any, context: Mapping[str, Any], user: Mapping[str, Any]) -> None:
    """A server may stand there without: then it is HTTPS if anything is said about certificates. The package would
    take it for HTTP, and read none of them.
    """
    entry = config["clusters"].get_with_name(context["cluster"])["cluster"].value
    server = entry.get("server")
    if isinstance(server, str) and "://" not in server:
        secured = any(map(entry.get, SECURED)) or any(map(user.get, CERTIFIED))
        entry["server"] = f"{'https' if secured else 'http'}://{server}"


def _pool(configuration: Configuration, told: str) -> urllib3.PoolManager:
    configuration.retries = False
    configuration.keep_alive = True
    configuration.connection_pool_maxsize = POOL_SIZE
    if not configuration.verify_ssl:  # they have said so; a line for each request would tell nobody anything
        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    proxy = configuration.proxy = str(configuration.proxy or "")
    refused = LoginError(
        f"cannot use the proxy {proxy.rpartition('@')[2]!r} for {told}: use http://HOST:PORT or https://HOST:PORT"
    )
    # SOCKS needs a package that nothing else here does.
    if proxy.startswith("socks") and not should_bypass_proxies(configuration.host, configuration.no_proxy or ""):
        raise refused
    try:
        return RESTClientObject(configuration).pool_manager
    except (urllib3.exceptions.HTTPError, ValueError) as exc:
        raise refused from exc
