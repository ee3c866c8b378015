"""What may come next on the command line: words of the plugin itself, and names from the cluster.

Names are asked for only where a name stands, with little patience and without a word if it does not work: who presses
Tab wants an answer now or none.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

Names = Callable[[str, Mapping[str, str]], Iterable[str]]
"""Names of a kind (`pods`, `nodes` or `namespaces`), by the flags that stand on the line already."""

NAMED: Final = {
    "pod": "pods",
    "node": "nodes",
    "to": "nodes",
    "namespace": "namespaces",
    "system_namespace": "namespaces",
}
"""Which arguments take the name of what."""
EXPLAINED: Final = ("pod", "node")
WHERE: Final = {"-n": "namespace", "--namespace": "namespace", "--kubeconfig": "kubeconfig", "--context": "context"}
NO_FILES: Final = ":4"
FILES: Final = ":0"
"""How kubectl is told whether file names may come, too."""


def lines(words: Sequence[str], parser: argparse.ArgumentParser, names: Names) -> list[str]:
    """Candidates for the last of the words, each with what it is, and the last line that kubectl wants."""
    done, last = list(words[:-1]), words[-1] if words else ""
    at, pending, taken = _walk(done, parser)
    if pending is not None:
        return _of_action(pending, last, done, names)
    if last.startswith("-"):
        found = [(flag, action.help or "") for action in at._actions for flag in action.option_strings]  # noqa: SLF001
        return [*_lines(found, last), NO_FILES]
    positional = _positional(at, taken)
    return [NO_FILES] if positional is None else _of_action(positional, last, done, names)


def _walk(
    done: Sequence[str], parser: argparse.ArgumentParser
) -> tuple[argparse.ArgumentParser, argparse.Action | None, list[str]]:
    """The parser whose turn it is, the flag that still wants its value, and the positional words so far."""
    at, pending = parser, None
    taken: list[str] = []
    for word in done:
        if pending is not None:
            pending = None
        elif word.startswith("-"):
            flag = next((it for it in at._actions if word in it.option_strings), None)  # noqa: SLF001
            pending = flag if flag is not None and flag.nargs != 0 else None
        else:
            sub = _commands(at)
            if sub is not None and word in sub:
                at, taken = sub[word], []
            else:
                taken.append(word)
    return at, pending, taken


def _commands(at: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser] | None:
    for action in at._actions:  # noqa: SLF001 - there is no other way to ask argparse what it knows
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            return dict(action.choices)
    return None


def _positional(at: argparse.ArgumentParser, taken: Sequence[str]) -> argparse.Action | None:
    left = len(taken)
    for action in at._actions:  # noqa: SLF001
        if action.option_strings:
            continue
        if action.nargs in {"*", "+"} or left == 0:
            return action
        left -= 1
    return None


def _of_action(action: argparse.Action, last: str, done: Sequence[str], names: Names) -> list[str]:
    if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
        helps = {it.dest: it.help or "" for it in action._choices_actions}  # noqa: SLF001
        return [*_lines(((name, helps.get(name, "")) for name in action.choices), last), NO_FILES]
    if action.dest == "kind":
        return [*_subjects(last, done, names), NO_FILES]
    if action.choices is not None:
        return [*_lines(((str(it), "") for it in action.choices), last), NO_FILES]
    kind = NAMED.get(action.dest)
    if action.dest == "name":  # of `explain`: what it is stands before it
        kind = f"{done[-1]}s" if done and done[-1] in EXPLAINED else None
    if kind is None:
        return [FILES if action.type is not None and action.metavar == "FILE" else NO_FILES]
    found = [(name, "") for name in names(kind, _flags(done)) if name not in done]
    return [*_lines(found, last), NO_FILES]


def _subjects(last: str, done: Sequence[str], names: Names) -> list[str]:
    """What `explain` takes: the kind, or the kind and a name in one word."""
    kind, slash, _ = last.partition("/")
    if slash and kind in EXPLAINED:
        return _lines(((f"{kind}/{name}", "") for name in names(f"{kind}s", _flags(done))), last)
    return _lines(((it, "") for it in EXPLAINED), last)


def _flags(done: Sequence[str]) -> dict[str, str]:
    """Those that say where to look for names."""
    found = {}
    for word, after in zip(done, (*done[1:], ""), strict=True):
        flag, joined, value = word.partition("=")
        if flag in WHERE:
            found[WHERE[flag]] = value if joined else after
    return found


def _lines(found: Iterable[tuple[str, str]], start: str) -> list[str]:
    return [f"{word}\t{what}" if what else word for word, what in found if word.startswith(start)]
