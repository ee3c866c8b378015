"""Where a server listens: what the command line means, and who reaches the sockets that gunicorn makes of it."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from gunicorn import sock  # type: ignore[import-untyped]
from gunicorn.config import Config  # type: ignore[import-untyped]
from gunicorn.glogging import Logger  # type: ignore[import-untyped]

from serving import gunicorn_conf, options
from telemetry import listening
from tests.unit.telemetry.loopbacks import LISTENING, LOOPBACKS, reaches

ADDRESSES = {
    ":8443": ("", 8443),
    "127.0.0.1:8443": ("127.0.0.1", 8443),
    "[::]:8081": ("::", 8081),
    "[::1]:8081": ("::1", 8081),
}


@pytest.mark.parametrize(("text", "meant"), ADDRESSES.items(), ids=ADDRESSES.keys())
def test_addresses(text: str, meant: tuple[str, int]) -> None:
    assert options.address(text) == meant


@pytest.mark.parametrize("text", ["8443", "[::1]", ":https", ":70000"])
def test_no_addresses(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="use host:port"):
        options.address(text)


@contextmanager
def listeners(host: str) -> Iterator[list[Any]]:
    cfg = Config()
    cfg.set("bind", gunicorn_conf.settings((host, 0), 1)["bind"])
    made = sock.create_sockets(cfg, Logger(cfg))
    try:
        yield made
    finally:
        sock.close_sockets(made)


@pytest.mark.parametrize(("host", "answering"), LISTENING.values(), ids=LISTENING.keys())
def test_who_can_reach_it(host: str, answering: list[str]) -> None:
    with listeners(host) as made:
        ports = [it.getsockname()[1] for it in made]
        for address in LOOPBACKS:
            assert any(reaches(address, port) for port in ports) is (address in answering)


MACHINES = {
    "both families in one": (True, False, ["[::]:8443"]),
    "both families apart": (True, True, ["[::]:8443", "0.0.0.0:8443"]),
    "IPv4 alone": (False, True, ["0.0.0.0:8443"]),
}


@pytest.mark.parametrize(("ipv6", "apart", "expected"), MACHINES.values(), ids=MACHINES.keys())
def test_everywhere_depends_on_the_machine(
    monkeypatch: pytest.MonkeyPatch, ipv6: bool, apart: bool, expected: list[str]
) -> None:
    monkeypatch.setattr(listening, "has_dualstack_ipv6", lambda: ipv6)
    monkeypatch.setattr(listening, "is_ipv6_apart", lambda: apart)
    assert gunicorn_conf.binds("", 8443) == expected
