"""What we read of a kubeconfig or a ServiceAccount is what the official package reads, and the rest is left to it."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cluster import auth, official_login, plain_login
from cluster.login import Login
from testbed import pki

ROOT = Path(__file__).parents[3]
SERVER = "https://127.0.0.1:6443"


@pytest.fixture
def ca(tmp_path: Path) -> bytes:
    return pki.authority(tmp_path, "ca").bundle()


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [it for it in os.environ if it.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)


def written(folder: Path, user: Mapping[str, Any], cluster: Mapping[str, Any] | None = None, **more: Any) -> Path:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "here", "cluster": {"server": SERVER, **(cluster or {})}}],
        "users": [{"name": "me", "user": user}],
        "contexts": [{"name": "main", "context": {"cluster": "here", "user": "me", **more}}],
        "current-context": "main",
        "preferences": {},
    }
    path = folder / "config"
    path.write_text(json.dumps(document))
    return path


def trusts(login: Login) -> set[str]:
    """The certificates that its connections trust, whether they are named as a file or as text."""
    options = login.pool().connection_pool_kw
    data, file = options.get("ca_cert_data"), options.get("ca_certs")
    return {text.strip() for text in (data, Path(file).read_text() if file else None) if text}


def options(login: Login) -> dict[str, Any]:
    """How its connections are made, but for the certificates and what is unset."""
    made = login.pool().connection_pool_kw
    retries = made["retries"].total
    return {key: it for key, it in made.items() if it is not None and "ca_cert" not in key} | {"retries": retries}


PLAIN: Mapping[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "a token": ({"token": "abc"}, {}, {}),
    "a token file beside it": ({"tokenFile": "token"}, {}, {}),
    "both": ({"tokenFile": "token", "token": "old"}, {}, {}),
    "a namespace": ({"token": "abc"}, {}, {"namespace": "shop"}),
    "a server with a slash": ({"token": "abc"}, {"server": f"{SERVER}/"}, {}),
    "a server below a path": ({"token": "abc"}, {"server": f"{SERVER}/clusters/one"}, {}),
    "an authority in a file": ({"token": "abc"}, {"certificate-authority": "ca.crt"}, {}),
}


@pytest.mark.parametrize(("user", "cluster", "context"), PLAIN.values(), ids=PLAIN.keys())
def test_plain_ones_are_read_as_the_official_package_reads_them(
    tmp_path: Path, ca: bytes, user: dict[str, Any], cluster: dict[str, Any], context: dict[str, Any]
) -> None:
    (tmp_path / "token").write_text("rotated")
    authority = {"certificate-authority-data": base64.b64encode(ca).decode()}
    cluster = cluster if "certificate-authority" in cluster else {**authority, **cluster}
    paths = [written(tmp_path, user, cluster, **context)]
    mine, official = plain_login.from_kubeconfig(paths, None), official_login.from_kubeconfig(paths, None)
    assert mine is not None
    seen = [(it.server, it.told, it.token_file, it.namespace, it.certificate) for it in (mine, official)]
    assert seen[0] == seen[1]
    if not mine.token_file:
        assert mine.header() == official.header()
    assert trusts(mine) == trusts(official) == {ca.decode().strip()}
    assert options(mine) == {key: it for key, it in options(official).items() if key in options(mine)}


LEFT: Mapping[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "nobody": ({}, {}),
    "a password": ({"username": "u", "password": "p"}, {}),
    "a client certificate": ({"client-certificate": "a", "client-key": "b"}, {}),
    "a certificate beside a token": ({"token": "abc", "client-certificate-data": "YQ=="}, {}),
    "a plugin": ({"exec": {"command": "aws"}}, {}),
    "a provider": ({"auth-provider": {"name": "oidc"}}, {}),
    "somebody else": ({"token": "abc", "as": "admin"}, {}),
    "nothing is verified": ({"token": "abc"}, {"insecure-skip-tls-verify": True}),
    "another name": ({"token": "abc"}, {"tls-server-name": "kubernetes"}),
    "a proxy": ({"token": "abc"}, {"proxy-url": "http://proxy:3128"}),
    "an authority that is not there": ({"token": "abc"}, {"certificate-authority": "none.crt"}),
    "an authority that is no text": ({"token": "abc"}, {"certificate-authority-data": "!"}),
    "an authority with a comment": ({"token": "abc"}, {"certificate-authority-data": "xZEK"}),
    "an authority of other letters": ({"token": "abc"}, {"certificate-authority-data": "\u0151"}),
    "an authority whose name is too long": ({"token": "abc"}, {"certificate-authority": "x" * 5000}),
    "a number for a token": ({"token": 7}, {}),
}


@pytest.mark.parametrize(("user", "cluster"), LEFT.values(), ids=LEFT.keys())
def test_the_rest_is_left_to_the_official_package(
    tmp_path: Path, user: dict[str, Any], cluster: dict[str, Any]
) -> None:
    assert plain_login.from_kubeconfig([written(tmp_path, user, cluster)], None) is None


def test_so_are_several_files_unknown_contexts_and_what_is_no_kubeconfig(tmp_path: Path) -> None:
    path = written(tmp_path, {"token": "abc"})
    assert plain_login.from_kubeconfig([tmp_path / "missing", path], None) is not None
    assert plain_login.from_kubeconfig([path, path], None) is None
    assert plain_login.from_kubeconfig([path], "other") is None
    assert plain_login.from_kubeconfig([tmp_path / "missing"], None) is None
    assert plain_login.from_kubeconfig([Path("~/config"), path], None) is None
    assert plain_login.from_kubeconfig([tmp_path / ("x" * 5000), path], None) is None
    for text in ("", "{[", "just text", "users: []", "x: 2024-13-45"):
        path.write_text(text)
        assert plain_login.from_kubeconfig([path], None) is None
        with pytest.raises(auth.LoginError):
            auth.connect(path)


def test_a_token_that_moves_into_a_file_is_found_there(tmp_path: Path) -> None:
    path = written(tmp_path, {"token": "first"})
    connection = auth.connect(path)
    (tmp_path / "token").write_text("second\n")
    written(tmp_path, {"tokenFile": "token"})
    assert connection.credentials.authorization() == "Bearer first"
    assert connection.credentials.reload()
    assert connection.credentials.authorization() == "Bearer second"


def test_so_is_a_proxy_of_the_environment(tmp_path: Path, ca: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, {"token": "abc"})
    (tmp_path / "token").write_text("abc")
    around = auth.InCluster("10.0.0.1", "443", tmp_path / "token", tmp_path / "ca.crt", tmp_path / "namespace")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    assert plain_login.from_kubeconfig([path], None) is None
    for connection in (auth.connect(path), auth.connect(in_cluster=around)):
        assert str(connection.pool.connection_pool_kw["_proxy"]) == "http://proxy:3128"


@pytest.mark.parametrize("host", ["10.0.0.1", "fd00::1", "kubernetes.default"])
def test_an_account_is_read_as_the_official_package_reads_it(tmp_path: Path, ca: bytes, host: str) -> None:
    (tmp_path / "token").write_text("abc")
    mine = plain_login.from_account(host, "443", tmp_path / "ca.crt")
    official = official_login.from_account(host, "443", tmp_path / "token", tmp_path / "ca.crt")
    assert mine is not None
    assert mine.server == official.server
    assert trusts(mine) == trusts(official) == {ca.decode().strip()}


def test_a_plain_login_does_not_import_the_official_package(tmp_path: Path, ca: bytes) -> None:
    path = written(tmp_path, {"token": "abc"}, {"certificate-authority": "ca.crt"})
    (tmp_path / "token").write_text("abc")
    code = f"""
import sys
from pathlib import Path
from cluster import auth
folder = Path({str(tmp_path)!r})
auth.connect(folder / "config")
auth.connect(in_cluster=auth.InCluster("h", "1", folder / "token", folder / "ca.crt", folder / "none"))
sys.exit("kubernetes" in sys.modules)
"""
    assert path.exists()
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
