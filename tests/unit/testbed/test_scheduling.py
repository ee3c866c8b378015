"""Configurations of the scheduler: what is taken from the user, what stays, and where extenders are led."""

from pathlib import Path
from typing import Any

import pytest

from testbed import scheduling
from testbed.folder import Refused

OWN: dict[str, Any] = {
    "kind": "KubeSchedulerConfiguration",
    "clientConnection": {"kubeconfig": "here"},
    "leaderElection": {"leaderElect": False},
    "podMaxBackoffSeconds": 2,
    "profiles": [{"schedulerName": "default-scheduler"}],
}
LISTEN = {"ext.shop:8080": 29000, "ext.shop:443": 29443}


def test_login_and_election_stay_and_the_rest_is_the_users() -> None:
    given = {"clientConnection": {"kubeconfig": "there"}, "leaderElection": {"leaderElect": True}, "parallelism": 4}
    made = scheduling.configured(OWN, given, LISTEN)
    assert made == {**OWN, "parallelism": 4}


@pytest.mark.parametrize(
    ("given", "led"),
    [
        pytest.param("http://ext.shop.svc:8080", "http://127.0.0.1:29000", id="a Service"),
        pytest.param(
            "http://ext.shop.svc.cluster.local:8080/v1", "http://127.0.0.1:29000/v1", id="in full, with a path"
        ),
        pytest.param("https://ext.shop.svc", "https://127.0.0.1:29443", id="the port of the scheme"),
        pytest.param("http://127.0.0.1:9", "http://127.0.0.1:9", id="an address"),
        pytest.param("http://example.org", "http://example.org", id="a host"),
    ],
)
def test_where_an_extender_is_asked(given: str, led: str) -> None:
    (made,) = scheduling.configured(OWN, {"extenders": [{"urlPrefix": given, "weight": 1}]}, LISTEN)["extenders"]
    assert (made["urlPrefix"], made["weight"]) == (led, 1)
    assert made.get("tlsConfig") == ({"serverName": "ext.shop.svc"} if led.startswith("https") else None)


def test_a_service_that_is_not_installed_is_refused() -> None:
    with pytest.raises(Refused, match=r"no Service ext\.other:80 "):
        scheduling.configured(OWN, {"extenders": [{"urlPrefix": "http://ext.other.svc"}]}, LISTEN)


@pytest.mark.parametrize(
    "text", ["[]", "kind: Policy", "{", None], ids=["a list", "another kind", "no YAML", "no file"]
)
def test_a_file_that_is_no_configuration_is_refused(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "scheduler.yaml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(Refused, match=r"^config: "):
        scheduling._read(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("extenders: 5", "extenders: 5 is not accepted, use a list"),
        ("extenders: [7]", "extenders[0]: 7 is not accepted, use a mapping"),
        ("extenders: [{urlPrefix: 7}]", "extenders[0].urlPrefix: 7 is not accepted, use text"),
        ("extenders: [{tlsConfig: yes}]", "extenders[0].tlsConfig: True is not accepted, use a mapping"),
        ("profiles: 5", "profiles: 5 is not accepted, use a list"),
    ],
)
def test_a_field_that_is_something_else_is_named(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "scheduler.yaml"
    path.write_text(f"kind: KubeSchedulerConfiguration\n{text}\n")
    with pytest.raises(Refused) as refused:
        scheduling._read(path)
    assert str(refused.value) == f"config: {path}: {said}"


def test_what_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "scheduler.yaml"
    path.write_bytes(b"kind: KubeSchedulerConfiguration # \xff")
    with pytest.raises(Refused, match=f"^config: {path} cannot be read: "):
        scheduling._read(path)


def test_null_is_the_same_as_no_field(tmp_path: Path) -> None:
    path = tmp_path / "scheduler.yaml"
    path.write_text("{kind: KubeSchedulerConfiguration, extenders: null, profiles: null}")
    assert scheduling.configured(OWN, scheduling._read(path), LISTEN) == OWN


LOG = """kube-scheduler ended:
E1119 23:11:26.118869   30316 run.go:72] "command failed" err="finished without leader elect"
E1119 23:11:29.793206    4911 run.go:72] "command failed" err="profile: ScorePlugin \\"Nope\\" does not exist"
"""


@pytest.mark.parametrize(
    ("log", "why"), [(LOG, 'profile: ScorePlugin "Nope" does not exist'), ("not healthy after 90 s:\n", "")]
)
def test_only_the_last_words_of_the_scheduler_are_told(log: str, why: str) -> None:
    assert scheduling._why(log) == why
