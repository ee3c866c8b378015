"""Token files that are replaced under us, and what is said when a token is refused."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster import errors, resources, tokens
from cluster.client import Client
from tests.unit.cluster import fake_api
from tests.unit.cluster.fake_api import Answer, FakeApi, Seen, status

NOW = 1_800_000_000.0


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with fake_api.running() as fake:
        yield fake


def jwt(**claims: object) -> str:
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()
    return f"eyJhbGciOiJFUzI1NiJ9.{payload}.c2lnbmF0dXJl"


def file_token(path: Path) -> tokens.FileToken:
    return tokens.FileToken(path, clock=lambda: NOW)


def overwrite(path: Path, token: str) -> None:
    path.write_text(token)


def rename(path: Path, token: str) -> None:
    new = path.with_suffix(".new")
    new.write_text(token)
    new.rename(path)


@pytest.mark.parametrize("replace", [pytest.param(overwrite, id="overwritten"), pytest.param(rename, id="renamed")])
def test_a_new_token_is_used_with_the_next_request(tmp_path: Path, replace: Callable[[Path, str], None]) -> None:
    path = tmp_path / "token"
    path.write_text("first\n")
    found = file_token(path)
    assert found.authorization() == "Bearer first"
    replace(path, "second-token")
    assert found.authorization() == "Bearer second-token"


def test_a_file_of_the_same_size_and_time_is_another_file(tmp_path: Path) -> None:
    path, other = tmp_path / "token", tmp_path / "other"
    path.write_text("first-token")
    other.write_text("other-token")
    os.utime(other, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    found = file_token(path)
    other.replace(path)
    assert found.authorization() == "Bearer other-token"


def test_the_symlink_swap_of_a_projected_volume(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "token").write_text(name)
    (tmp_path / "..data").symlink_to("one")
    (tmp_path / "token").symlink_to("..data/token")
    found = file_token(tmp_path / "token")
    assert found.authorization() == "Bearer one"
    (tmp_path / "..tmp").symlink_to("two")
    (tmp_path / "..tmp").rename(tmp_path / "..data")
    assert found.authorization() == "Bearer two"


@pytest.mark.parametrize(
    "spoil",
    [pytest.param(Path.unlink, id="missing"), pytest.param(lambda path: path.write_text(" \n"), id="empty")],
)
def test_the_last_good_token_outlives_a_bad_moment(tmp_path: Path, spoil: Callable[[Path], object]) -> None:
    path = tmp_path / "token"
    path.write_text("good")
    found = file_token(path)
    spoil(path)
    assert found.authorization() == "Bearer good"
    path.write_text("better")
    assert found.authorization() == "Bearer better"


def test_an_empty_file_is_refused_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("")
    with pytest.raises(ValueError, match="is empty"):
        file_token(tmp_path / "token")


@pytest.mark.parametrize(
    ("token", "told"),
    [
        pytest.param(jwt(exp=NOW - 60), "expired at 2027-01-15T07:59:00Z", id="expired"),
        pytest.param(jwt(exp=NOW + 60), "runs until 2027-01-15T08:01:00Z", id="not-expired"),
        pytest.param(jwt(sub="x"), "is not valid for this server", id="no-expiry"),
        pytest.param("opaque", "is not valid for this server", id="not-a-jwt"),
        pytest.param(jwt(exp=1e300), "is not valid for this server", id="absurd-expiry"),
    ],
)
def test_why_a_token_was_refused(token: str, told: str) -> None:
    assert told in tokens.expiry_sentence(token, NOW)


@given(st.text(max_size=80))
def test_no_text_breaks_the_sentence(token: str) -> None:
    assert tokens.expiry_sentence(f"a.{token}.b", NOW)
    assert tokens.expiry_sentence(token, NOW)


def accepting(token: str) -> Callable[[Seen], Answer]:
    def script(seen: Seen) -> Answer:
        return Answer() if seen.headers.get("Authorization") == f"Bearer {token}" else status(401, "Unauthorized")

    return script


def test_the_client_goes_on_after_a_rotation(api: FakeApi, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("first")
    client = api.client(file_token(path))
    api.script = accepting("first")
    client.get(resources.NODES, "x")
    path.write_text("second")
    api.script = accepting("second")
    client.get(resources.NODES, "x")
    with client.watch(resources.NODES, resource_version="1"):
        pass
    assert len(api.seen) == 3


def test_a_401_reads_the_file_again_and_tries_once(api: FakeApi, tmp_path: Path) -> None:
    """The file is replaced after the request was built: the first answer is 401, the second try has the new token."""
    path = tmp_path / "token"
    path.write_text("first")

    def rotate_late(seen: Seen) -> Answer:
        if len(api.seen) == 1:
            path.write_text("second")
        return accepting("second")(seen)

    api.script = rotate_late
    api.client(file_token(path)).get(resources.NODES, "x")
    assert [seen.headers["Authorization"] for seen in api.seen] == ["Bearer first", "Bearer second"]


def get(client: Client) -> None:
    client.get(resources.NODES, "x")


def watch(client: Client) -> None:
    with client.watch(resources.NODES, resource_version="1"):
        pass


@pytest.mark.parametrize("call", [get, watch])
def test_an_expired_token_is_told_clearly_and_not_shown(
    api: FakeApi, tmp_path: Path, call: Callable[[Client], None]
) -> None:
    path = tmp_path / "token"
    path.write_text(jwt(exp=NOW - 60))
    api.script = lambda _: status(401, "Unauthorized")
    client = api.client(file_token(path))
    with pytest.raises(errors.Unauthorized) as caught:
        call(client)
    told = str(caught.value)
    assert f"the token in {path} expired at 2027-01-15T07:59:00Z" in told
    assert api.url in told
    assert path.read_text() not in told
    assert len(api.seen) == 2


def test_without_credentials_a_401_is_final(api: FakeApi) -> None:
    api.script = lambda _: status(401, "Unauthorized")
    with pytest.raises(errors.Unauthorized, match="no credentials are configured"):
        api.client().get(resources.NODES, "x")
    assert len(api.seen) == 1
