"""Which addresses of this machine answer, for servers that may listen on all of them."""

import socket


def family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def exists(address: str) -> bool:
    """A container may have no IPv6 address at all; what is not there cannot answer."""
    try:
        with socket.socket(family(address)) as free:
            free.bind((address, 0))
    except OSError:
        return False
    return True


def reaches(address: str, port: int) -> bool:
    with socket.socket(family(address)) as client:
        return client.connect_ex((address, port)) == 0


LOOPBACKS = [address for address in ("127.0.0.1", "::1") if exists(address)]
LISTENING = {
    "everywhere": ("", LOOPBACKS),
    "IPv4 only": ("0.0.0.0", ["127.0.0.1"]),  # noqa: S104
    **{f"only {address}": (address, [address]) for address in LOOPBACKS},
}
"""The host that is asked for, and who answers then."""
