"""The command line that our servers have in common."""

import argparse
from pathlib import Path

from telemetry import logs

OWN_NAMESPACE = "spotshift-system"


def add(command: argparse.ArgumentParser, *, port: int, what: str, tls_needed: bool) -> None:
    """Where to listen, for whom, with which certificate and settings."""
    command.add_argument("--settings", type=Path, metavar="FILE", help="settings document, followed while serving")
    for name, text in (("--cert", "certificate chain, PEM; followed"), ("--key", "its private key, PEM; followed")):
        command.add_argument(name, type=Path, required=tls_needed, metavar="FILE", help=text)
    command.add_argument("--listen", type=address, default=("", port), help=f"host:port of {what} (:{port})")
    command.add_argument("--probes", type=address, default=("", 8081), help="host:port of probes, metrics (:8081)")
    command.add_argument("--kubeconfig", type=Path, help="as for kubectl; in a pod its ServiceAccount is the default")
    command.add_argument("--context", help="context of the kubeconfig")
    command.add_argument("--namespace", default=OWN_NAMESPACE, help=f"where we run (default: {OWN_NAMESPACE})")
    command.add_argument(
        "--grace-seconds", type=int, default=30, help="after SIGTERM, wait so long for open connections (30)"
    )
    command.add_argument("--log-format", choices=("json", "console"), default="json")
    command.add_argument("--log-level", choices=tuple(logs.LEVELS), default="info", help="debug tells more (info)")


def address(text: str) -> tuple[str, int]:
    """`host:port`, `[host]:port` for IPv6; an empty host is every address of the machine."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not accepted, use host:port such as 127.0.0.1:8443 or :8443")
    return host.strip("[]"), int(port)
