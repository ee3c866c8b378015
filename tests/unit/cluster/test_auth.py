"""Kubeconfigs and ServiceAccounts lead to a connection, or to a sentence that says why not."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3

from cluster import auth, errors, login, resources
from cluster.client import Client
from testbed import pki
from tests.unit.cluster import fake_api
from tests.unit.cluster.fake_api import Answer, FakeApi, Seen, status


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with fake_api.running() as fake:
        yield fake


def kubeconfig(path: Path, server: str, user: dict[str, Any], *, name: str = "main", current: bool = True) -> Path:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": server}}],
        "users": [{"name": f"{name}-user", "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": f"{name}-user"}}],
    } | ({"current-context": name} if current else {})
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(document))
    return path


def sent(api: FakeApi, connection: auth.Connection) -> str | None:
    Client(connection).get(resources.NODES, "x")
    return api.seen[-1].headers.get("Authorization")


def test_token_of_a_user(api: FakeApi, tmp_path: Path) -> None:
    connection = auth.connect(kubeconfig(tmp_path / "config", api.url, {"token": "abc"}))
    assert (connection.server, sent(api, connection)) == (api.url, "Bearer abc")


def test_basic_auth(api: FakeApi, tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "config", api.url, {"username": "u", "password": "p"})
    assert sent(api, auth.connect(path)) == "Basic dTpw"


def test_token_file_beside_the_kubeconfig_is_followed(api: FakeApi, tmp_path: Path) -> None:
    """As for client-go, tokenFile wins over token and is relative to the kubeconfig."""
    path = kubeconfig(tmp_path / "folder" / "config", api.url, {"tokenFile": "token", "token": "old"})
    (tmp_path / "folder" / "token").write_text("first")
    connection = auth.connect(path)
    assert sent(api, connection) == "Bearer first"
    (tmp_path / "folder" / "token").write_text("second")
    assert sent(api, connection) == "Bearer second"


def plugin(folder: Path, credential: str) -> dict[str, Any]:
    """An exec plugin that hands out whatever is in a file now, and counts how often it ran."""
    (folder / "credential").write_text(credential)
    read = f"import pathlib; folder = pathlib.Path({str(folder)!r}); print((folder / 'credential').read_text())"
    code = read + "; (folder / 'ran').open('a').write('x')"
    return {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": sys.executable,
        "args": ["-c", code],
        "interactiveMode": "Never",
    }


def credential(token: str, **more: str) -> str:
    body = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}
    return json.dumps(body | {"status": {"token": token, **more}})


def test_exec_plugin_runs_once_until_refused(api: FakeApi, tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "config", api.url, {"exec": plugin(tmp_path, credential("first"))})
    connection = auth.connect(path)
    assert [sent(api, connection), sent(api, connection)] == ["Bearer first", "Bearer first"]
    assert (tmp_path / "ran").read_text() == "x"

    (tmp_path / "credential").write_text(credential("second"))
    api.script = lambda seen: _only("second", seen)
    assert sent(api, connection) == "Bearer second"
    assert (tmp_path / "ran").read_text() == "xx"


def _only(token: str, seen: Seen) -> Answer:
    return Answer() if seen.headers["Authorization"] == f"Bearer {token}" else status(401, "Unauthorized")


def test_exec_plugin_runs_again_before_its_token_expires(api: FakeApi, tmp_path: Path) -> None:
    """The official package renews five minutes early; a token that ended long ago is renewed for every request."""
    expired = credential("first", expirationTimestamp="2020-01-01T00:00:00Z")
    path = kubeconfig(tmp_path / "config", api.url, {"exec": plugin(tmp_path, expired)})
    connection = auth.connect(path)
    (tmp_path / "credential").write_text(credential("second", expirationTimestamp="2120-01-01T00:00:00Z"))
    assert sent(api, connection) == "Bearer second"


def test_a_changed_kubeconfig_is_read_again_after_a_401(api: FakeApi, tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "config", api.url, {"token": "first"})
    connection = auth.connect(path)
    api.script = lambda seen: _only("second", seen)
    with pytest.raises(errors.Unauthorized, match=r"token of user 'main-user' of .*config is not valid"):
        sent(api, connection)
    kubeconfig(path, api.url, {"token": "second"})
    assert sent(api, connection) == "Bearer second"


def test_a_new_client_certificate_gets_a_new_pool(api: FakeApi, tmp_path: Path) -> None:
    """A plugin may hand out certificates; the pool is built around one, so another one needs another pool."""

    def certificate(text: str) -> str:
        data = {"clientCertificateData": text, "clientKeyData": f"{text} key"}
        return json.dumps({"status": data, "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"})

    path = kubeconfig(tmp_path / "config", "https://127.0.0.1:1", {"exec": plugin(tmp_path, certificate("one"))})
    connection = auth.connect(path)
    before = connection.pool
    assert connection.credentials.reload()
    assert connection.pool is before
    (tmp_path / "credential").write_text(certificate("two"))
    assert connection.credentials.reload()
    assert connection.pool is not before
    assert Path(connection.pool.connection_pool_kw["cert_file"]).read_text() == "two"
    assert connection.credentials.describe() == f"user 'main-user' of {path} is not accepted"


def certificate_files(folder: Path, name: str) -> pki.Pair:
    """A new pair for the same two files."""
    made = pki.authority(folder / "pki", "ca").client("client", user=name)
    for source, target in ((made.cert, folder / "client.crt"), (made.key, folder / "client.key")):
        target.write_bytes(source.read_bytes())
    return pki.Pair(folder / "client.crt", folder / "client.key")


def test_replaced_certificate_files_get_a_new_pool_with_the_next_request(tmp_path: Path) -> None:
    pair = certificate_files(tmp_path, "first")
    user = {"client-certificate": str(pair.cert), "client-key": str(pair.key)}
    connection = auth.connect(kubeconfig(tmp_path / "config", "https://127.0.0.1:1", user))
    pools = [connection.pool]
    for name in (None, "second", None):
        if name:
            certificate_files(tmp_path, name)
        with pytest.raises(errors.Unreachable):
            Client(connection).get(resources.NODES, "x")
        pools.append(connection.pool)
    assert pools[0] is pools[1], "nothing changed"
    assert pools[1] is not pools[2]
    assert pools[2] is pools[3], "and only once"


def test_a_half_replaced_pair_is_waited_for(tmp_path: Path) -> None:
    pair = certificate_files(tmp_path, "first")
    user = {"client-certificate": str(pair.cert), "client-key": str(pair.key), "tokenFile": "token"}
    (tmp_path / "token").write_text("abc")
    connection = auth.connect(kubeconfig(tmp_path / "config", "https://127.0.0.1:1", user))
    before, key = connection.pool, pair.key.read_bytes()
    certificate_files(tmp_path, "second")
    complete = pair.key.read_bytes()
    pair.key.write_bytes(key)
    assert connection.current_pool() is before, "certificate and key do not fit together"
    pair.key.unlink()
    assert connection.current_pool() is before
    pair.key.write_bytes(complete)
    assert connection.current_pool() is not before


def test_certificate_files_that_are_missing_are_told(tmp_path: Path) -> None:
    user = {"client-certificate": "none.crt", "client-key": "none.key"}
    with pytest.raises(auth.LoginError, match=r"none\.crt"):
        auth.connect(kubeconfig(tmp_path / "config", "https://127.0.0.1:1", user))


def test_several_files_merge_as_kubectl_does(api: FakeApi, tmp_path: Path) -> None:
    """Contexts of all files, current-context of the first file that sets one, missing files ignored."""
    paths = [
        tmp_path / "missing",
        kubeconfig(tmp_path / "none", "http://none.invalid", {"token": "none"}, name="none", current=False),
        kubeconfig(tmp_path / "one", api.url, {"token": "one"}, name="one"),
        kubeconfig(tmp_path / "two", api.url, {"token": "two"}, name="two"),
    ]
    assert sent(api, auth.connect(paths)) == "Bearer one"
    assert sent(api, auth.connect(paths, "two")) == "Bearer two"


def test_the_namespace_of_the_context(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "config", "https://127.0.0.1:1", {"token": "x"})
    assert auth.connect(path).namespace == ""
    document = json.loads(path.read_text())
    document["contexts"][0]["context"]["namespace"] = "shop"
    path.write_text(json.dumps(document))
    assert auth.connect(path).namespace == "shop"


BROKEN_PLUGIN = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "/no/such/plugin"}}

NESTED = "current-context: a\ncontexts: [{name: a, context: 5}]\nclusters: []\nusers: []\n"


@pytest.mark.parametrize(
    ("content", "context", "told"),
    [
        pytest.param(None, None, "there is no kubeconfig", id="missing"),
        pytest.param("", None, "cannot use the kubeconfig", id="empty"),
        pytest.param("{[", None, "cannot use the kubeconfig", id="not-yaml"),
        pytest.param("root:x:0:0\nx:1", None, "config is no kubeconfig: it names no clusters", id="another-file"),
        pytest.param("- just\n- text", None, "config is no kubeconfig: it names no clusters", id="not-a-mapping"),
        pytest.param(NESTED, None, "cannot use the kubeconfig", id="nested"),
        pytest.param({"token": "x"}, "other", "other", id="unknown-context"),
        pytest.param(
            {"exec": "x"}, None, "exec has to be a mapping, and is of type str", id="plugin-of-another-kind"
        ),
        pytest.param(
            {"tokenFile": 5}, None, "tokenFile has to be text, and is of type int", id="token-file-of-another-kind"
        ),
        pytest.param({"tokenFile": "none"}, None, "none", id="token-file-missing"),
        pytest.param({"token": "x", "as": "admin"}, None, "acts as somebody else", id="impersonation"),
        pytest.param(BROKEN_PLUGIN, None, "exec plugin '/no/such/plugin'", id="plugin-missing"),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, content: Any, context: str | None, told: str) -> None:
    path = tmp_path / "config"
    if isinstance(content, dict):
        kubeconfig(path, "http://127.0.0.1:1", content)
    elif content is not None:
        path.write_text(content)
    with pytest.raises(auth.LoginError) as caught:
        auth.connect(path, context)
    assert told in str(caught.value)


CLUSTERS: dict[str, tuple[dict[str, Any], str]] = {
    "an address that is none": ({"server": 5}, "server has to be text, and is of type int"),
    "an authority of another kind": (
        {"certificate-authority-data": ["a"]},
        "certificate-authority-data has to be text, and is of type list",
    ),
    "an authority that is not in base64": (
        {"certificate-authority-data": "!!!"},
        "certificate-authority-data has to be certificates as PEM in base64",
    ),
    "an authority that is no certificate": (
        {"certificate-authority-data": "aGVsbG8="},
        "certificate-authority-data has to be certificates as PEM in base64",
    ),
}


@pytest.mark.parametrize("user", [{"token": "SECRET"}, {"username": "u", "password": "SECRET"}], ids=["plain", "not"])
@pytest.mark.parametrize(("entry", "told"), CLUSTERS.values(), ids=CLUSTERS.keys())
def test_what_is_wrong_with_a_cluster_is_told_with_its_key(
    tmp_path: Path, entry: dict[str, Any], told: str, user: dict[str, Any]
) -> None:
    path = kubeconfig(tmp_path / "config", "https://127.0.0.1:1", user)
    document = json.loads(path.read_text())
    document["clusters"][0]["cluster"] |= entry
    path.write_text(json.dumps(document))
    with pytest.raises(auth.LoginError) as caught:
        auth.connect(path)
    assert str(caught.value) == f"cluster 'main' of {path}: {told}"
    assert "SECRET" not in "".join(traceback.format_exception(caught.value))


def test_a_context_that_is_not_there_is_told_with_those_that_are(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "config", "https://127.0.0.1:1", {"token": "SECRET"})
    other = kubeconfig(tmp_path / "other", "https://127.0.0.1:1", {}, name="second")
    with pytest.raises(auth.LoginError) as caught:
        auth.connect([path, other], "nope")
    assert str(caught.value) == f"there is no context 'nope' in {path}:{other}, only main, second"
    document = json.loads(path.read_text())
    document["contexts"] = [{**document["contexts"][0], "name": f"c{number}"} for number in range(23)]
    path.write_text(json.dumps(document))
    with pytest.raises(auth.LoginError, match=r"only c0, c1, .*, c19 and 3 more$"):
        auth.connect(path, "nope")


FAILING = {
    "it fails": ("echo you are not logged in >&2; exit 3", "process returned 3. you are not logged in"),
    "it says nothing": ("true", "failed to decode process output: "),
}


@pytest.mark.parametrize(("script", "told"), FAILING.values(), ids=FAILING.keys())
def test_what_a_plugin_that_fails_says_is_told_once(tmp_path: Path, script: str, told: str) -> None:
    """In a process of its own: the package logs it where nobody has set up logging."""
    words = {"command": "sh", "args": ["-c", script], "interactiveMode": "Never"}
    entry = {"apiVersion": "client.authentication.k8s.io/v1", **words}
    path = kubeconfig(tmp_path / "config", "https://127.0.0.1:1", {"exec": entry})
    command = [sys.executable, "-m", "console", "nodes", "--kubeconfig", str(path)]
    done = subprocess.run(command, cwd=Path(__file__).parents[3], capture_output=True, text=True, check=False)
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"error: the exec plugin 'sh' of user 'main-user' of {path} gave no credentials: {told}")


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        pytest.param({"token": "SECRET"}, "Expected key user in", id="without-its-level"),
        pytest.param({"User": {"token": "SECRET"}}, "Expected key user in", id="misspelt"),
        pytest.param({"user": ["SECRET"]}, "user has to be a mapping, and is of type list", id="list"),
        pytest.param({"user": "SECRET"}, "user has to be a mapping, and is of type str", id="text"),
    ],
)
def test_an_odd_user_is_told_without_its_token(tmp_path: Path, entry: dict[str, Any], told: str) -> None:
    path = kubeconfig(tmp_path / "config", "http://127.0.0.1:1", {})
    document = json.loads(path.read_text())
    document["users"] = [{"name": "main-user", **entry}]
    path.write_text(json.dumps(document))
    with pytest.raises(auth.LoginError) as caught:
        auth.connect(path)
    assert told in str(caught.value)
    assert "SECRET" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("first", [True, False], ids=["before", "after"])
def test_another_file_beside_a_kubeconfig_is_named(tmp_path: Path, first: bool) -> None:
    good, other = kubeconfig(tmp_path / "config", "http://127.0.0.1:1", {"token": "x"}), tmp_path / "other"
    other.write_text("just text")
    with pytest.raises(auth.LoginError, match="/other is no kubeconfig: it names no clusters, users and contexts"):
        auth.connect([other, good] if first else [good, other])


def account(folder: Path, *, token: str = "abc", ca: str = "certificate") -> auth.InCluster:  # noqa: S107
    (folder / "token").write_text(token)
    (folder / "ca.crt").write_text(ca)
    return auth.InCluster("fd00::1", "443", folder / "token", folder / "ca.crt", folder / "namespace")


def test_in_cluster(tmp_path: Path) -> None:
    connection = auth.connect(in_cluster=account(tmp_path))
    assert (connection.server, connection.credentials.authorization()) == ("https://[fd00::1]:443", "Bearer abc")
    assert connection.pool.connection_pool_kw["ca_certs"] == str(tmp_path / "ca.crt")
    assert connection.namespace == ""
    (tmp_path / "namespace").write_text("shop\n")
    assert auth.connect(in_cluster=account(tmp_path)).namespace == "shop"
    (tmp_path / "token").write_text("rotated")
    assert connection.credentials.authorization() == "Bearer rotated"
    assert connection.server == "https://[fd00::1]:443"


@pytest.mark.parametrize(
    ("files", "told"),
    [
        pytest.param({"token": ""}, "empty", id="empty-token"),
        pytest.param({"token": " \n"}, "empty", id="blank-token"),
        pytest.param({"ca": ""}, "empty", id="empty-ca"),
    ],
)
def test_in_cluster_troubles_are_told(tmp_path: Path, files: dict[str, str], told: str) -> None:
    with pytest.raises(auth.LoginError, match=told):
        auth.connect(in_cluster=account(tmp_path, **files))


@pytest.mark.parametrize(
    ("environ", "found"),
    [
        pytest.param({"KUBERNETES_SERVICE_HOST": "h", "KUBERNETES_SERVICE_PORT": "1"}, ("h", "1"), id="inside"),
        pytest.param({"KUBERNETES_SERVICE_HOST": "h"}, None, id="no-port"),
        pytest.param({}, None, id="outside"),
    ],
)
def test_where_we_are(environ: dict[str, str], found: tuple[str, str] | None) -> None:
    around = auth.InCluster.from_environ(environ)
    assert (around and (around.host, around.port)) == found


def test_nothing_given_is_told() -> None:
    with pytest.raises(auth.LoginError, match="neither"):
        auth.connect()


def test_the_pool_neither_retries_nor_forgets_dead_peers(tmp_path: Path) -> None:
    connection = auth.connect(kubeconfig(tmp_path / "config", "http://127.0.0.1:1", {}))
    options = connection.pool.connection_pool_kw
    assert options["retries"].total is False
    assert options["maxsize"] == login.POOL_SIZE
    assert len(options["socket_options"]) > len(urllib3.connection.HTTPConnection.default_socket_options)


INSIDE = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


@pytest.mark.parametrize("context", [None, "main"])
def test_the_file_at_home_comes_before_the_cluster_around_a_pod(tmp_path: Path, context: str | None) -> None:
    """As for kubectl: a job in one cluster that works on another."""
    kubeconfig(tmp_path / ".kube" / "config", "https://prod:6443", {"token": "abc"})
    found = auth.as_kubectl(INSIDE, tmp_path, kubeconfig=None, context=context)
    assert found.server == "https://prod:6443"


def test_a_context_is_never_passed_over(tmp_path: Path) -> None:
    with pytest.raises(auth.LoginError, match="there is no kubeconfig at"):
        auth.as_kubectl(INSIDE, tmp_path, kubeconfig=None, context="prod")
    kubeconfig(tmp_path / ".kube" / "config", "https://prod:6443", {"token": "abc"})
    with pytest.raises(auth.LoginError, match="nowhere"):
        auth.as_kubectl(INSIDE, tmp_path, kubeconfig=None, context="nowhere")


@pytest.mark.parametrize("content", [None, "", "{}", '{"contexts": [], "current-context": ""}'])
def test_without_any_file_that_chooses_a_context_it_is_the_cluster_around_a_pod(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | None
) -> None:
    around = account(tmp_path)
    monkeypatch.setattr(auth.InCluster, "from_environ", lambda _: around)
    if content is not None:
        (tmp_path / ".kube").mkdir()
        (tmp_path / ".kube" / "config").write_text(content)
    assert auth.as_kubectl(INSIDE, tmp_path, kubeconfig=None, context=None).server == "https://[fd00::1]:443"


@pytest.mark.parametrize("token", ["SECRET\n", "SECRET\nX-Remote-User: admin", "SECRET\u20ac"])
@pytest.mark.parametrize("more", [{}, {"username": ""}], ids=["plain", "official"])
def test_a_token_that_no_header_can_carry_is_told_and_not_shown(
    tmp_path: Path, token: str, more: dict[str, str]
) -> None:
    path = kubeconfig(tmp_path / "config", "https://127.0.0.1:1", {"token": token, **more})
    with pytest.raises(auth.LoginError, match=r"the token of user 'main-user' of .* no header can carry") as caught:
        auth.connect(path)
    assert "SECRET" not in str(caught.value)


def test_a_file_at_home_that_cannot_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth.InCluster, "from_environ", lambda _: account(tmp_path))
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube" / "config").write_text("clusters: [")
    with pytest.raises(auth.LoginError, match="cannot use the kubeconfig"):
        auth.as_kubectl(INSIDE, tmp_path, kubeconfig=None, context=None)


def test_a_proxy_that_is_passed_by_is_nobodys_trouble(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "socks5://127.0.0.1:1080")
    monkeypatch.setenv("NO_PROXY", "10.0.0.1")
    path = kubeconfig(tmp_path / "config", "https://10.0.0.1:6443", {"token": "abc"})
    assert auth.connect(path).pool.proxy is None


def test_a_token_that_got_worse_is_not_used(api: FakeApi, tmp_path: Path) -> None:
    """The last good one may still do."""
    path = kubeconfig(tmp_path / "config", api.url, {"token": "first"})
    connection = auth.connect(path)
    kubeconfig(path, api.url, {"token": "se\ncond"})
    assert connection.credentials.authorization() == "Bearer first"
    connection.credentials.reload()
    assert connection.credentials.authorization() == "Bearer first"


@pytest.mark.parametrize("proxy", ["socks5://u:pw@localhost:1080", "localhost:1080", "foo", 5, ["x"]])
def test_a_proxy_that_cannot_be_used_is_told(tmp_path: Path, proxy: object) -> None:
    path = kubeconfig(tmp_path / "config", "https://127.0.0.1:1", {"token": "abc"})
    document = json.loads(path.read_text())
    document["clusters"][0]["cluster"]["proxy-url"] = proxy
    path.write_text(json.dumps(document))
    with pytest.raises(auth.LoginError, match=r"cannot use the proxy '[^@]*' for user .*: use http://HOST:PORT"):
        auth.connect(path)


PEM = "PEM"
"""Stands for what is made when the test runs."""
SPELLED_OUT: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "nothing about TLS": ({}, {}, "http"),
    "insecure": ({"insecure-skip-tls-verify": True}, {}, "https"),
    "insecure, said not to be": ({"insecure-skip-tls-verify": False}, {}, "http"),
    "an authority": ({"certificate-authority-data": PEM}, {}, "https"),
    "a client certificate": ({}, {"client-certificate-data": PEM, "client-key-data": PEM}, "https"),
}


@pytest.mark.parametrize(("cluster", "user", "scheme"), SPELLED_OUT.values(), ids=SPELLED_OUT.keys())
def test_a_server_without_a_scheme(
    tmp_path: Path, cluster: dict[str, Any], user: dict[str, Any], scheme: str
) -> None:
    """As for client-go; a token must not go out in the clear where there is an authority."""
    pem = base64.b64encode(pki.authority(tmp_path, "ca").bundle()).decode()
    path = kubeconfig(tmp_path / "config", "host:1", {"token": "abc"})
    document = json.loads(path.read_text())
    document["clusters"][0]["cluster"] |= cluster
    document["users"][0]["user"] |= user
    path.write_text(json.dumps(document).replace(PEM, pem))
    assert auth.connect(path).server == f"{scheme}://host:1"
