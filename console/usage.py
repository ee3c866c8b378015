"""Every command as the help and the completion know it: name, one line, examples, arguments.

Apart from the commands themselves, because whoever asks for help or presses Tab should not wait for what the commands
need to run. `console.commands` has a module of the same name for each.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from console import arguments
from console.states import State
from policy.capacity import CapacityType

MODES: Final = ("Evict", "Surge", "Recreate")
SHELLS: Final = ("bash", "zsh")


@dataclass(frozen=True, slots=True)
class Usage:
    """One command."""

    name: str
    help: str
    """One line for the list of commands."""
    examples: str
    """Lines that can be typed as they are."""
    add: Callable[[argparse.ArgumentParser], None] = lambda _: None
    """Arguments beyond those that all commands have."""
    settle: Callable[[argparse.Namespace], str] = lambda _: ""
    """What is wrong with the arguments taken together; may bring them into their last form."""


def _nodes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sort", choices=("name", "load", "pods"), default="name", help="order (name)")
    parser.add_argument(
        "--state",
        action="append",
        choices=[str(it) for it in State],
        help="only nodes in this state; may be repeated",
    )
    parser.add_argument(
        "--capacity", choices=[str(it) for it in CapacityType], help="only nodes of this capacity type"
    )


def _top(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--interval", type=arguments.pause, default=timedelta(seconds=2), metavar="TIME", help="pause (2s)"
    )
    parser.add_argument("--count", type=arguments.count, metavar="N", help="end after so many pictures")


def _explain(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", metavar="pod|node", type=arguments.subject, help="what to explain")
    parser.add_argument(
        "name", metavar="NAME", nargs="?", help="name of the pod or node; pod/NAME and node/NAME do too"
    )


def _explained(options: argparse.Namespace) -> str:
    """`pod web-0`, `pod/web-0`, and `pod pod/web-0` are the same."""
    kind, name = options.kind
    if options.name and not name:
        other, name = arguments.subject(options.name) if "/" in options.name else (kind, options.name)
        if other != kind:
            return f"{options.name} is no {kind}"
    elif options.name:
        return f"one at a time, not {kind}/{name} and {options.name}"
    options.kind, options.name = kind, name
    return "" if name else "the following arguments are required: NAME"


def _migrations(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-w", "--watch", action="store_true", help="go on with every change")
    parser.add_argument("--open", action="store_true", help="only moves under way")
    parser.add_argument("--timeout", type=arguments.duration, metavar="TIME", help="end -w after this time")


def _followed(options: argparse.Namespace) -> str:
    """A flag that changes nothing is a mistake: whoever gave it expects something of it."""
    return "--timeout has no effect without -w" if options.timeout is not None and not options.watch else ""


def _migrate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pod", metavar="POD", type=arguments.pod, help="name of the pod")
    parser.add_argument("--to", metavar="NODE", type=arguments.node, help="node to move it to (the best one)")
    parser.add_argument("--mode", choices=MODES, help="how (what suits the workload)")
    parser.add_argument("--wait", action="store_true", help="wait for the end of the move")
    parser.add_argument("--timeout", type=arguments.duration, metavar="TIME", help="longest wait (for ever)")
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="let the API server check it, tell what would come of it now, and create nothing",
    )


def _moved(options: argparse.Namespace) -> str:
    if options.dry_run and options.wait:
        return "--wait has no effect with --dry-run, which creates nothing that could be waited for"
    return _awaited(options)


def _awaited(options: argparse.Namespace) -> str:
    return "--timeout has no effect without --wait" if options.timeout is not None and not options.wait else ""


def _maintenance(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", metavar="start|stop|status", choices=("start", "stop", "status"), help="what to do")
    parser.add_argument("node", metavar="NODE", type=arguments.node, nargs="*", help="which nodes")
    parser.add_argument("--deadline", type=arguments.deadline, metavar="TIME", help="by when, such as 2h or a time")
    parser.add_argument("--wait", action="store_true", help="wait until it is drained, or as it was found")
    parser.add_argument("--timeout", type=arguments.duration, metavar="TIME", help="longest wait (for ever)")


def _named(options: argparse.Namespace) -> str:
    """All nodes at once is nothing that one types by mistake."""
    if options.action != "status" and not options.node:
        return "the following arguments are required: NODE"
    if options.deadline is not None and options.action != "start":
        return f"--deadline has no effect with {options.action}, use it with start"
    if options.wait and options.action == "status":
        return "--wait has no effect with status, use it with start or stop"
    return _awaited(options)


def _completion(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="which shell")


# In the order of the help: looking at everything, at one thing, asking for something, the installation itself.
REGISTRY: Final[tuple[Usage, ...]] = (
    Usage(
        "status",
        "show who leads, the mode, the last pass, budgets and cool-downs",
        """\
  kubectl spotshift status                  # the installation in a few lines
  kubectl spotshift status -o json          # for programs""",
    ),
    Usage(
        "nodes",
        "list nodes with capacity type, load, state and pods",
        """\
  kubectl spotshift nodes                   # every node
  kubectl spotshift nodes --sort load       # the fullest last
  kubectl spotshift nodes --state hot       # only those that a strategy would relieve
  kubectl spotshift nodes -o wide           # with zone, shares and measured usage""",
        _nodes,
    ),
    Usage(
        "top",
        "show nodes and moves live; Ctrl-C ends it",
        """\
  kubectl spotshift top                     # live, the fullest nodes first
  kubectl spotshift top --interval 5s       # quieter
  kubectl spotshift top --count 1           # one picture, as into a file or a pipe""",
        _top,
    ),
    Usage(
        "plan",
        "show what would be moved now, and why the rest is not",
        """\
  kubectl spotshift plan                    # the plan of this moment, with the settings in force
  kubectl spotshift plan -o wide            # every refusal and every node
  kubectl spotshift plan -n shop            # what it does with the pods of one namespace
  kubectl spotshift plan --settings new.yaml    # what other settings would do""",
    ),
    Usage(
        "explain",
        "explain why a pod is moved or is not, or what is the matter with a node",
        """\
  kubectl spotshift explain pod web-7d4b9c-x2x -n shop     # every strategy, guard and node
  kubectl spotshift explain pod/web-7d4b9c-x2x -n shop     # the same, as kubectl prints names
  kubectl spotshift explain node spot-3                    # its signs, its load, the plan, its pods""",
        _explain,
        _explained,
    ),
    Usage(
        "migrations",
        "list moves under way and before; -w follows them",
        """\
  kubectl spotshift migrations -A           # of all namespaces, those under way last
  kubectl spotshift migrations --open       # only those under way
  kubectl spotshift migrations -A -w        # and go on with every change
  kubectl spotshift migrations -o wide      # with mode, attempts and messages""",
        _migrations,
        _followed,
    ),
    Usage(
        "migrate",
        "ask for the move of one pod; --wait follows it to its end",
        """\
  kubectl spotshift migrate web-7d4b9c-x2x -n shop              # to the best node
  kubectl spotshift migrate web-7d4b9c-x2x -n shop --to spot-3  # to this one, if it fits there
  kubectl spotshift migrate web-7d4b9c-x2x -n shop --wait --timeout 5m
  kubectl delete podmigration NAME -n shop                      # call it off""",
        _migrate,
        _moved,
    ),
    Usage(
        "maintenance",
        "empty a node, take that back, or show how far it is",
        """\
  kubectl spotshift maintenance start spot-3 --wait      # cordon it, move its pods, wait until it is drained
  kubectl spotshift maintenance start spot-3 spot-4 --deadline 2h
  kubectl spotshift maintenance status                   # every node in maintenance
  kubectl spotshift maintenance status spot-3            # and which pods are left on it, and why
  kubectl spotshift maintenance stop spot-3 --wait       # as it was found""",
        _maintenance,
        _named,
    ),
    Usage(
        "check",
        "check the installation: certificates, rights, webhook, settings, leader",
        """\
  kubectl spotshift check                   # everything, with what to do about it
  kubectl spotshift check -n shop           # try the webhook with a pod of this namespace (nothing is created)
  kubectl spotshift check -o json           # for programs; exit code 1 if something is wrong""",
    ),
    Usage(
        "completion",
        "print a completion script for bash or zsh",
        """\
  source <(kubectl-spotshift completion bash)      # in ~/.bashrc
  source <(kubectl-spotshift completion zsh)       # in ~/.zshrc, after compinit""",
        _completion,
    ),
)
