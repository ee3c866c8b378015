"""What keeps the page from being served is told in a line, before anything is begun."""

import socket
from pathlib import Path

import pytest
import yaml
from flask import Flask

from console import arguments
from console.web import access, serve
from console.web.program import main

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


NOT_ADDRESSES = {"a port alone": "8090", "no port": "127.0.0.1:", "a word": "here", "too large": ":99999"}


@pytest.mark.parametrize("text", NOT_ADDRESSES.values(), ids=NOT_ADDRESSES.keys())
def test_what_is_no_address(text: str, capsys: Said) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--listen", text])
    told = f"argument --listen: '{text}' is not accepted, use HOST:PORT, such as 127.0.0.1:8090\n"
    assert (ended.value.code, capsys.readouterr().err.endswith(told)) == (2, True)


OTHERS_CAN_CONNECT = {
    "every address": ":8090",
    "every address of version 4": "0.0.0.0:8090",
    "every address of version 6": "[::]:8090",
    "one address": "192.0.2.1:8090",
    "a name": "example.org:8090",
}


@pytest.mark.parametrize("listen", OTHERS_CAN_CONNECT.values(), ids=OTHERS_CAN_CONNECT.keys())
def test_where_others_can_connect_a_token_is_needed(listen: str, capsys: Said, tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--listen", listen])
    told = (
        f"argument --listen: '{listen}' can be reached from elsewhere and is not accepted without --token-file, use "
    )
    assert (ended.value.code, told in capsys.readouterr().err) == (2, True)
    # With one it goes on, here to the next mistake.
    assert main(["--listen", listen, "--token-file", str(tmp_path / "none")]) == 1
    assert "No such file" in capsys.readouterr().err


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1", "localhost"])
def test_on_loopback_no_token_is_needed(host: str) -> None:
    assert access.is_private(host)


def test_the_shipped_form_needs_no_token() -> None:
    file = Path(__file__).parents[4] / "manifests" / "components" / "console" / "deployment.yaml"
    (container,) = yaml.safe_load(file.read_text())["spec"]["template"]["spec"]["containers"]
    (listen,) = (it.partition("=")[2] for it in container["args"] if it.startswith("--listen="))
    assert access.is_private(arguments.address(listen)[0])


PRINTED = {
    "usual": ("127.0.0.1:8090", "http://127.0.0.1:8090/"),
    "version 6": ("[::1]:8090", "http://[::1]:8090/"),
    "every address": (":8090", "http://127.0.0.1:8090/"),
    "every address of version 4": ("0.0.0.0:8090", "http://127.0.0.1:8090/"),
    "every address of version 6": ("[::]:8090", "http://[::1]:8090/"),
    "one address": ("192.0.2.1:8090", "http://192.0.2.1:8090/"),
    "a name": ("Example.org:8090", "http://Example.org:8090/"),
}


@pytest.mark.parametrize(("listen", "url"), PRINTED.values(), ids=PRINTED.keys())
def test_the_address_that_is_printed_can_be_opened(listen: str, url: str) -> None:
    host, port = arguments.address(listen)
    assert access.url(host, port) == url
    allowed = access.Access("secret", access.names(host, ("Spotshift.Example.org",)))
    assert allowed.knows_host("Spotshift.example.org:8090")
    assert allowed.knows_host(url.removeprefix("http://").removesuffix("/"))


def test_the_port_that_is_printed_is_the_real_one() -> None:
    server = serve.Server(lambda: Flask("page"), listen=("127.0.0.1", 0), stop=lambda: None)
    socket.create_connection(("127.0.0.1", server.port)).close()
