"""Where a small server listens, and how many may be connected to it. Decides nothing about what they say."""

import threading
from collections import OrderedDict
from socket import AF_INET6, IPPROTO_IPV6, IPV6_V6ONLY, SHUT_RDWR, has_dualstack_ipv6, socket
from socketserver import BaseServer
from typing import Any, Final

MAX_CONNECTIONS: Final = 32
"""A kubelet and two scrapers use three. When more come, the oldest is closed: who is slow loses, not who is new."""

ALL_IPV6: Final = "::"
ALL_IPV4: Final = "0.0.0.0"  # noqa: S104 - what an empty host asks for


def where(host: str) -> str:
    """The address to listen on. An empty host is every address of the machine, IPv6 and IPv4 where it has both."""
    return host or (ALL_IPV6 if has_dualstack_ipv6() else ALL_IPV4)


def answer_both(listener: socket, host: str) -> None:
    """The kubelet probes the address of the pod's first family, a scraper perhaps the other. Before it is bound."""
    if host == ALL_IPV6:
        listener.setsockopt(IPPROTO_IPV6, IPV6_V6ONLY, 0)


def is_ipv6_apart() -> bool:
    """Whether this machine keeps IPv4 away from IPv6 listeners that do not ask for it; most do not."""
    if not has_dualstack_ipv6():
        return True
    with socket(AF_INET6) as asked:
        return bool(asked.getsockopt(IPPROTO_IPV6, IPV6_V6ONLY))


def shown(host: str, port: int) -> str:
    """The address as people write it."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class Connections:
    """Those of one server, the oldest first."""

    def __init__(self) -> None:
        self._open: OrderedDict[int, socket] = OrderedDict()
        self._guard = threading.Lock()

    def came(self, connection: object) -> None:
        """It is there. If it is one too many, the oldest has to go."""
        if not isinstance(connection, socket):
            return
        with self._guard:
            if len(self._open) >= MAX_CONNECTIONS:
                _hang_up(self._open.popitem(last=False)[1])
            self._open[id(connection)] = connection

    def gone(self, connection: object) -> None:
        """It is about to be closed."""
        with self._guard:
            self._open.pop(id(connection), None)

    def drop_all(self) -> None:
        """Hang up on everybody."""
        with self._guard:
            for connection in self._open.values():
                _hang_up(connection)


class Limited(BaseServer):
    """To be put before a server with a thread for each connection, which is what the limit is about."""

    connections: Connections

    def process_request(self, request: socket | tuple[bytes, socket], client_address: Any) -> None:
        self.connections.came(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: socket | tuple[bytes, socket]) -> None:
        self.connections.gone(request)
        super().shutdown_request(request)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away in the middle is not worth a stack on stderr."""


def _hang_up(connection: socket) -> None:
    try:
        connection.shutdown(SHUT_RDWR)
    except OSError:
        return
