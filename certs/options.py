"""The command line: what may be said, and the settings it means. Reads no environment and does nothing."""

import argparse
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from certs.settings import InvalidSettings, Settings
from policy import durations
from policy.reasons import Malformed

_DEFAULTS = Settings()


def parse(arguments: Sequence[str]) -> tuple[argparse.Namespace, Settings]:
    """Options and settings; what is not accepted ends the process with 2 and says what is."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        return options, _settings(options)
    except InvalidSettings as invalid:
        parser.error("\n".join(("these settings do not work:", *str(invalid).splitlines())))


def _settings(options: argparse.Namespace) -> Settings:
    return Settings(
        namespace=options.namespace,
        service=options.service,
        configuration=options.configuration,
        ca_secret=options.ca_secret,
        leaf_secret=options.leaf_secret,
        cluster_domain=options.cluster_domain,
        extra_names=tuple(options.extra_name),
        ca_life=options.ca_life,
        leaf_life=options.leaf_life,
        overlap=options.overlap,
        interval=getattr(options, "interval", _DEFAULTS.interval),
        at_once=getattr(options, "now", False),
        external=options.external,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m certs", description="Keep the certificates of the webhook valid and trusted."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    shared = _shared()
    run = commands.add_parser("run", parents=[shared], help="reconcile until SIGTERM; /metrics, /healthz, /readyz")
    run.add_argument("--interval", type=_duration, default=_DEFAULTS.interval, help="look at least so often (1m)")
    run.add_argument("--listen", type=_address, default=("", 8080), help="host:port of the probes (:8080)")
    run.add_argument("--log-format", choices=("json", "console"), default="json")
    _now(run)
    ensure = commands.add_parser("ensure", parents=[shared], help="reconcile until stable, then end")
    ensure.add_argument("--timeout", type=_duration, default=timedelta(minutes=10), help="give up after (10m)")
    ensure.add_argument("--rotate", choices=("ca", "leaf"), help="replace this even if it is fine")
    _now(ensure)
    commands.add_parser("check", parents=[shared], help="print the state; exit code 1 if something is wrong")
    return parser


def _shared() -> argparse.ArgumentParser:
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--kubeconfig", type=Path, help="as for kubectl; in a pod its ServiceAccount is the default")
    shared.add_argument("--context", help="context of the kubeconfig")
    for name in ("namespace", "service", "configuration", "ca_secret", "leaf_secret", "cluster_domain"):
        default = getattr(_DEFAULTS, name)
        shared.add_argument(f"--{name.replace('_', '-')}", default=default, help=f"default: {default}")
    shared.add_argument(
        "--extra-name", action="append", default=[], help="further DNS name or address of the webhook"
    )
    shared.add_argument("--ca-life", type=_duration, default=_DEFAULTS.ca_life, help="default: 8760h")
    shared.add_argument("--leaf-life", type=_duration, default=_DEFAULTS.leaf_life, help="default: 720h")
    shared.add_argument("--overlap", type=_duration, default=_DEFAULTS.overlap, help="old and new together for (2m)")
    shared.add_argument("--external", action="store_true", help="never write; somebody else makes the certificates")
    return shared


def _now(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--now", action="store_true", help="skip the overlap while there is no usable leaf")


def _duration(text: str) -> timedelta:
    parsed = durations.parse(text)
    if isinstance(parsed, Malformed):
        raise argparse.ArgumentTypeError(f"{text!r} is not accepted, use {durations.FORMAT}")
    return parsed


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not accepted, use host:port such as 127.0.0.1:8080 or :8080")
    return host.strip("[]"), int(port)
