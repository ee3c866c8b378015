"""The command line as kubectl's users expect it: flags before or after the command, examples in the help."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Final, NoReturn

from console import arguments, usage
from policy import names

PROG: Final = "kubectl spotshift"
FORMATS: Final = ("table", "wide", "json", "yaml")
EPILOG: Final = """\
exit codes:
  0  done, or printed
  1  it could not be done, or what was looked for is not well
  2  wrong usage
  3  printed, but not everything could be seen, or the settings are wrong; what was assumed is printed with it
  4  asked for, but not at its end within --timeout
  5  the node is drained, but pods are left on it whose owners keep them there
"""
DEFAULTS: Final = {
    "namespace": "",
    "all_namespaces": False,
    "output": "table",
    "kubeconfig": None,
    "context": None,
    "request_timeout": timedelta(seconds=30),
    "system_namespace": names.NAMESPACE,
    "settings": None,
}


class _Parser(argparse.ArgumentParser):
    """No flag of ours begins with a digit, so `-1s` is the value of the flag before it, and refused as one: argparse
    itself knows only plain numbers, and would say that there is none.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._negative_number_matcher = re.compile(r"-\.?[0-9]")


def parse(given: Sequence[str]) -> argparse.Namespace:
    """Exits with 2 and a sentence if it is not accepted."""
    found = parser().parse_args(given, argparse.Namespace(**DEFAULTS))
    refuse: Callable[[str], NoReturn] = found.refuse
    del found.refuse
    try:
        wrong = next(it for it in usage.REGISTRY if it.name == found.command).settle(found)
    except argparse.ArgumentTypeError as unknown:
        wrong = str(unknown)
    if wrong:
        refuse(wrong)
    return found


def parser() -> argparse.ArgumentParser:
    """The whole of it."""
    shared = _shared()
    made = _Parser(
        prog=PROG,
        description="See and steer spotshift: what it does, what it would do, and why it does not.",
        epilog=_examples("\n".join(it.examples.splitlines()[0] for it in usage.REGISTRY)) + "\n" + EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[shared],
    )
    found = made.add_subparsers(required=True, metavar="COMMAND", dest="command")
    for command in usage.REGISTRY:
        sub = found.add_parser(
            command.name,
            help=command.help,
            description=f"{command.help[0].upper()}{command.help[1:]}.",
            epilog=_examples(command.examples) + "\n" + EPILOG,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            parents=[shared],
        )
        command.add(sub)
        sub.set_defaults(refuse=sub.error)  # with its own usage
    return made


def _examples(lines: str) -> str:
    return f"examples:\n{lines}\n"


def _shared() -> _Parser:
    """What every command takes. Without defaults, or those after the command would undo what stood before it."""
    shared = _Parser(add_help=False, argument_default=argparse.SUPPRESS)
    group = shared.add_argument_group("of all commands")
    group.add_argument(
        "-n",
        "--namespace",
        type=arguments.context_or_namespace,
        metavar="NAME",
        help="namespace (that of the context)",
    )
    group.add_argument("-A", "--all-namespaces", action="store_true", help="all namespaces")
    group.add_argument("-o", "--output", choices=FORMATS, help="form of the output (table)")
    group.add_argument("--kubeconfig", type=arguments.kubeconfig, metavar="FILE", help="as for kubectl")
    group.add_argument("--context", metavar="NAME", help="context of the kubeconfig")
    group.add_argument(
        "--request-timeout",
        type=arguments.patience,
        metavar="TIME",
        help="longest wait for an answer (30s); 0 is no limit",
    )
    group.add_argument(
        "--system-namespace",
        type=arguments.namespace,
        metavar="NAME",
        help=f"where spotshift is installed ({names.NAMESPACE})",
    )
    group.add_argument("--settings", type=arguments.file, metavar="FILE", help="settings instead of those in force")
    return shared
