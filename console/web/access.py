"""Who may look: requests for this host, with the token where there is one.   Pure.

The page is bound to loopback unless somebody asks for more. Even there a foreign page could reach it by a name of its
own that resolves to this machine, so the name that a browser asked for is looked at.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from telemetry import listening

COOKIE: Final = "spotshift-token"
LOCAL: Final = frozenset({"localhost", "127.0.0.1", "::1"})
EVERYWHERE: Final = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - what is asked for, not chosen
"""Every address of the machine, as it is asked for, with one of them that a browser takes."""


@dataclass(frozen=True, slots=True)
class Access:
    """The rules."""

    token: str = ""
    """Empty: whoever can connect may look."""
    hosts: frozenset[str] = LOCAL
    """Names by which the page may be asked for; `*` for any."""

    def knows_host(self, host: str) -> bool:
        """Whether a `Host` header is one of ours."""
        return "*" in self.hosts or bare(host) in self.hosts

    def admits(self, given: str) -> bool:
        """Whether this is the token; takes as long for a wrong one as for a right one."""
        return not self.token or hmac.compare_digest(given.encode(), self.token.encode())

    def presented(self, headers: Mapping[str, str], cookies: Mapping[str, str]) -> str:
        """The token of a request."""
        kind, _, value = headers.get("Authorization", "").partition(" ")
        return value.strip() if kind.lower() == "bearer" else cookies.get(COOKIE, "")


def is_private(host: str) -> bool:
    """Whether only this machine can connect to what listens there. Nobody can tell of a name but one."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def names(host: str, further: Iterable[str]) -> frozenset[str]:
    """What the page may be asked for by: where it listens, unless that is everywhere, and what was named besides."""
    return LOCAL | ({host.lower()} - EVERYWHERE.keys()) | {it.lower() for it in further}


def url(host: str, port: int) -> str:
    """What to type into a browser on this machine."""
    return f"http://{listening.shown(EVERYWHERE.get(host, host), port)}/"


def bare(host: str) -> str:
    """`localhost:8090` and `[::1]:8090` without the port."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()
