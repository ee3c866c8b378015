"""`python -m descheduler plan`: what would be moved now, and why the rest is not; `explain POD`: why this one (not).

Both look at the current cluster, by kubectl's rules, or at a dump (-f), and change nothing. `cleanup`: before the
product is taken off a cluster, end moves that are under way and take back every mark.

Exit codes: 0 the plan or the explanation is printed, whether or not there is anything to move; 1 it could not be
made, standard error says why; 2 wrong usage; 3 it is printed, but not everything was known: what was assumed is
printed with it.
"""

import signal

if __name__ == "__main__":  # an interrupt while the rest is loaded has nothing to clean up
    INTERRUPTED = signal.signal(signal.SIGINT, signal.SIG_DFL)

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from descheduler import kinds
from telemetry import logs

FORMATS = ("table", "json", "yaml")


def main(arguments: Sequence[str]) -> int:
    options = _parser().parse_args(arguments)
    try:
        return _run(options)
    except KeyboardInterrupt:
        return 130


def _run(options: argparse.Namespace) -> int:
    if options.command == "run":
        from descheduler import run as process

        return process.run(options)
    if options.command == "cleanup":
        from descheduler import cleanup

        return cleanup.main(options)
    from descheduler import commands  # usage and help need none of it

    return {"plan": commands.run_plan, "explain": commands.run_explain}[options.command](options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m descheduler",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    plan = commands.add_parser("plan", help="print what would be moved, without moving it")
    _add_input(plan)
    plan.add_argument("-v", "--verbose", action="store_true", help="list every refusal and every node")
    explain = commands.add_parser("explain", help="print why a pod is moved or is not")
    explain.add_argument("pod", metavar="POD", help="name of the pod, or NAMESPACE/NAME")
    explain.add_argument("-n", "--namespace", default="default", help="its namespace (default)")
    _add_input(explain)
    _add_run(commands.add_parser("run", help="plan and move until SIGTERM; the one that holds the lease acts"))
    _add_cleanup(commands.add_parser("cleanup", help="end moves and take back every mark, before an uninstall"))
    return parser


def _add_cleanup(command: argparse.ArgumentParser) -> None:
    command.add_argument("--kubeconfig", type=Path, metavar="FILE", help="as for kubectl")
    command.add_argument("--context", help="context of the kubeconfig")
    command.add_argument("--namespace", default="spotshift-system", help="where it is installed (spotshift-system)")
    command.add_argument(
        "--timeout", type=float, default=240.0, metavar="SECONDS", help="for moves under way to end (240)"
    )
    command.add_argument("--dry-run", action="store_true", help="only print what would be taken back")


def _add_run(command: argparse.ArgumentParser) -> None:
    command.add_argument("--settings", type=Path, metavar="FILE", help="settings document, followed while running")
    command.add_argument("--probes", type=_address, default=("", 8081), help="host:port of probes, metrics (:8081)")
    command.add_argument(
        "--kubeconfig", type=Path, metavar="FILE", help="as for kubectl; in a pod its ServiceAccount"
    )
    command.add_argument("--context", help="context of the kubeconfig")
    command.add_argument("--namespace", default="spotshift-system", help="where we run (spotshift-system)")
    command.add_argument("--identity", default="", help="name in the election; by default host name and chance")
    command.add_argument("--lease-seconds", type=int, help="how long others leave a silent leader alone (15)")
    command.add_argument("--log-format", choices=("json", "console"), default="json")
    command.add_argument("--log-level", choices=tuple(logs.LEVELS), default="info", help="debug tells more (info)")


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not accepted, use host:port, such as 127.0.0.1:8081 or :8081")
    return host.strip("[]"), int(port)


def _add_input(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "-f",
        "--file",
        action="append",
        metavar="FILE",
        help=f"instead of a cluster, the output of: {kinds.COMMAND}; may be given several times, - is standard input",
    )
    command.add_argument(
        "--none",
        type=_kinds,
        default=(),
        metavar="KINDS",
        help="kinds of which the cluster has none, such as poddisruptionbudgets, so that a dump without is complete",
    )
    command.add_argument(
        "--settings", type=Path, metavar="FILE", help="settings document; without it the defaults hold"
    )
    command.add_argument(
        "--now", type=_time, metavar="TIME", help="plan as of this time, such as 2026-11-16T06:00:00Z"
    )
    command.add_argument("--kubeconfig", type=Path, metavar="FILE", help="as for kubectl")
    command.add_argument("--context", help="context of the kubeconfig")
    command.add_argument("-o", "--output", choices=FORMATS, default="table", help="form of the output (table)")


def _kinds(text: str) -> tuple[str, ...]:
    known = [kind.name for kind in kinds.ALL]
    asked = tuple(filter(None, text.split(",")))
    for name in asked:
        if name not in known:
            raise argparse.ArgumentTypeError(f"{name!r} is not accepted, use any of {', '.join(known)}")
    return asked


def _time(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError as malformed:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not accepted, use a time such as 2026-11-16T06:00:00Z"
        ) from malformed
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, INTERRUPTED)
    sys.exit(main(sys.argv[1:]))
