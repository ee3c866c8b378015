"""What keeps the page from being served is told in a line, before anything is begun."""

import socket
from pathlib import Path

import pytest
import yaml

from console import arguments
from console.web.__main__ import main

NOBODY = "http://127.0.0.1:1"
"""Nothing listens there."""


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    path = tmp_path / "kubeconfig"
    named = {"clusters": [{"name": "a", "cluster": {"server": NOBODY}}], "users": [{"name": "a", "user": {}}]}
    context = {"name": "a", "context": {"cluster": "a", "user": "a"}}
    path.write_text(yaml.safe_dump({**named, "contexts": [context], "current-context": "a"}))
    return path


Said = pytest.CaptureFixture[str]


def started(kubeconfig: Path, listen: str, said: Said) -> tuple[int, str]:
    code = main(["--kubeconfig", str(kubeconfig), "--listen", listen])
    told = said.readouterr()
    assert told.out == ""
    return code, told.err


def test_a_port_that_is_taken(kubeconfig: Path, capsys: Said) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        wanted = f"error: cannot listen on {where}: Address already in use; --listen HOST:PORT names another place\n"
        assert started(kubeconfig, where, capsys) == (1, wanted)


def test_a_cluster_that_does_not_answer(kubeconfig: Path, capsys: Said) -> None:
    code, told = started(kubeconfig, "127.0.0.1:0", capsys)
    assert (code, len(told.splitlines())) == (1, 1)
    assert told.startswith(f"error: the cluster at {NOBODY} does not answer: ")


ADDRESSES = {
    "usual": ("127.0.0.1:8090", ("127.0.0.1", 8090)),
    "version 6": ("[::1]:8090", ("::1", 8090)),
    "all": (":8090", ("", 8090)),
}


@pytest.mark.parametrize(("text", "wanted"), ADDRESSES.values(), ids=ADDRESSES.keys())
def test_addresses(text: str, wanted: tuple[str, int]) -> None:
    assert arguments.address(text) == wanted
