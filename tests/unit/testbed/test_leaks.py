"""Secrets in logs are found, named, never quoted, and fail the run; what opens nothing is left alone."""

import base64
import secrets
from pathlib import Path

import pytest
import yaml

from testbed import leaks, pki, pytest_plugin, remains
from tests.unit.repository.test_checks import run_pytest


def a_token() -> str:
    """With the shape of a ServiceAccount's; it opens nothing."""
    parts = ('{"alg":"RS256","kid":"x"}', '{"iss":"kubernetes"}', secrets.token_urlsafe(40))
    return ".".join(base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts)


ADMIN = pki.User("admin", "system:masters")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The folder of a test bed, with a credential of each kind."""
    made = tmp_path / "bed"
    (made / "logs").mkdir(parents=True)
    (made / "logs" / "audit.log").touch()
    ca = pki.authority(made / "pki", "ca")
    made_tokens = pki.tokens(made / "pki" / "tokens.csv", [ADMIN])
    pki.kubeconfig(made / "pki" / "admin.kubeconfig", server="x", ca=ca.bundle(), user={"token": made_tokens[ADMIN]})
    pki.kubeconfig(made / "pki" / "dev.kubeconfig", server="x", ca=ca.bundle(), user={"token": a_token()})
    mounted = made / "pods" / "web-0" / "volumes" / "account"
    mounted.mkdir(parents=True)
    (mounted / "token").write_text(a_token())
    return made


def body_of(home: Path, name: str) -> str:
    """A line out of the middle of a key."""
    return (home / "pki" / name).read_text().splitlines()[1]


def token_of(home: Path, name: str = "dev") -> str:
    document = yaml.safe_load((home / "pki" / f"{name}.kubeconfig").read_text())
    return str(document["users"][0]["user"]["token"])


PLANTED = {
    "a token": (token_of, "a credential of pki/dev.kubeconfig"),
    "a token of the test bed's own": (lambda it: token_of(it, "admin"), "a credential of pki/admin.kubeconfig"),
    "its signature alone": (lambda it: token_of(it).rpartition(".")[2], "a credential of pki/dev.kubeconfig"),
    "a mounted token": (
        lambda it: (it / "pods/web-0/volumes/account/token").read_text(),
        "the token pods/web-0/volumes/account/token",
    ),
    "a line of a private key": (lambda it: body_of(it, "ca.key"), "the private key pki/ca.key"),
    "a line of it in quoted text": (lambda it: f"n{body_of(it, 'ca.key')}n", "the private key pki/ca.key"),
    "a token of elsewhere": (lambda _: a_token(), "something that looks like a token"),
    "a key of elsewhere": (lambda _: "-----BEGIN EC PRIVATE KEY-----", "something that looks like a private key"),
}


@pytest.mark.parametrize(("secret", "what"), PLANTED.values(), ids=PLANTED.keys())
def test_a_secret_in_a_log_is_named(home: Path, secret: object, what: str) -> None:
    planted = secret(home)  # type: ignore[operator]
    (home / "logs" / "planted.log").write_text(f"started\nheader: Bearer {planted} said no\n")
    environ = {remains.FOLDER: str(home.parent / "notes")}
    remains.note(home, environ)
    (found,) = remains.gather(home.parent / "notes").leaks
    assert (found.path, found.line, found.what) == ("logs/planted.log", 2, what)
    assert planted not in str(found)


HARMLESS = {
    "a certificate": lambda it: (it / "pki" / "ca.crt").read_text(),
    "a token without its signature": lambda it: token_of(it).rpartition(".")[0],
    "words": lambda _: "the token of the ServiceAccount has expired, private key not found",
}


@pytest.mark.parametrize("text", HARMLESS.values(), ids=HARMLESS.keys())
def test_what_opens_nothing_is_left_alone(home: Path, text: object) -> None:
    (home / "logs" / "planted.log").write_text(text(home))  # type: ignore[operator]
    assert leaks.search(leaks.logs(home), leaks.secrets_of(home), below=home) == []


WRITES = "def test_it(tmp_path): (tmp_path / '{name}').write_text('Authorization: Bearer {token}')\n"


@pytest.mark.parametrize(("name", "workers"), [("web.log", "0"), ("log", "2")], ids=["here", "in a worker"])
def test_a_token_in_the_log_of_a_test_fails_the_run(tmp_path: Path, name: str, workers: str) -> None:
    token = a_token()
    done = run_pytest(tmp_path, WRITES.format(name=name, token=token), "-n", workers)
    assert done.returncode == pytest_plugin.TAINTED, done.stdout
    assert f"{name}:1: something that looks like a token" in done.stdout
    assert token not in done.stdout
    assert "1 passed" in done.stdout


def test_a_file_that_is_no_log_does_not(tmp_path: Path) -> None:
    assert run_pytest(tmp_path, WRITES.format(name="token", token=a_token())).returncode == 0
