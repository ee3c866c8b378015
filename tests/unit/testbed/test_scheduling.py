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
