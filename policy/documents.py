"""YAML text to plain data, safely: no tags, no aliases, no duplicate keys, no surprises of YAML 1.1.

`22:00` stays text and `on` stays a word; only `true`, `false`, `null`, whole and decimal numbers are read as
such.
"""

import math
import re
from typing import Any, Final, TypeAlias

import yaml

from policy.mistakes import Mistake, at

Plain: TypeAlias = "dict[str, Plain] | list[Plain] | str | int | float | bool | None"

# Every setting with a comment of its own is about 10 KiB. Five hundred windows, five hundred labels and five
# hundred signals at about 100 bytes each make 150 KiB more. What is larger is not a settings file.
LIMIT_BYTES: Final = 256 * 1024
# The deepest setting lies five levels down.
LIMIT_DEPTH: Final = 12

_TAG: Final = "tag:yaml.org,2002:"


class _Refusal(Exception):
    def __init__(self, mistake: Mistake) -> None:
        super().__init__(str(mistake))
        self.mistake = mistake


class _Loader(yaml.SafeLoader):
    """Composes nodes only; refuses aliases, because they can unfold without end, and endless nesting."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - PyYAML's own name
    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            raise _Refusal(_at_line(event.start_mark, "an anchor or alias", "plain YAML without & and *"))
        self.depth += 1
        if self.depth > LIMIT_DEPTH:
            raise _Refusal(_at_line(event.start_mark, "this nesting", f"at most {LIMIT_DEPTH} levels"))
        try:
            return super().compose_node(parent, index)
        finally:
            self.depth -= 1


class _Dumper(yaml.SafeDumper):
    """Quotes a text that either YAML 1.1 or our reader would take for something else."""


def _add_resolver(tag: str, pattern: str, first: str) -> None:
    for kind in (_Loader, _Dumper):
        kind.add_implicit_resolver(_TAG + tag, re.compile(pattern + r"\Z"), [*first] or [""])


_add_resolver("null", r"(null|~)", "n~")
_add_resolver("null", r"", "")
_add_resolver("bool", r"(true|false)", "tf")
_add_resolver("int", r"[-+]?[0-9]{1,18}", "-+0123456789")
_add_resolver("float", r"[-+]?([0-9]{1,18}\.[0-9]{0,24}|\.[0-9]{1,24})([eE][-+]?[0-9]{1,3})?", "-+0123456789.")


def read(text: str) -> tuple[Plain, tuple[Mistake, ...]]:
    """The document, and what was wrong with its form; with mistakes the data is what could be read."""
    size = len(text.encode(errors="replace"))
    if size > LIMIT_BYTES:
        return None, (Mistake("", f"{size} bytes", f"at most {LIMIT_BYTES} bytes"),)
    try:
        node = yaml.compose(text, Loader=_Loader)
    except _Refusal as refusal:
        return None, (refusal.mistake,)
    except yaml.MarkedYAMLError as error:
        return None, (_broken(error),)
    except yaml.YAMLError as error:  # a byte that YAML does not know
        return None, (Mistake("", str(error).splitlines()[0], "YAML text in UTF-8"),)
    mistakes: list[Mistake] = []
    return (None if node is None else _plain(node, "", mistakes)), tuple(mistakes)


def write(document: Plain) -> str:
    """YAML text that `read` reads back to the same data, and every other YAML 1.1 or 1.2 reader too."""
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=100)


def _plain(node: yaml.Node, path: str, mistakes: list[Mistake]) -> Plain:
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, path, mistakes)
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item, at(path, number), mistakes) for number, item in enumerate(node.value)]
    return _scalar(node, path, mistakes)


def _mapping(node: yaml.MappingNode, path: str, mistakes: list[Mistake]) -> dict[str, Plain]:
    found: dict[str, Plain] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            mistakes.append(Mistake(path, f"a key on line {_line(key.start_mark)}", "keys that are words"))
            continue
        if key.value in found:
            where = f"a second value on line {_line(key.start_mark)}"
            mistakes.append(Mistake(at(path, key.value), where, "each key once"))
        found[key.value] = _plain(value, at(path, key.value), mistakes)
    return found


def _scalar(node: Any, path: str, mistakes: list[Mistake]) -> Plain:
    text: str = node.value
    match node.tag.removeprefix(_TAG):
        case "str":
            return text
        case "null":
            return None
        case "bool":
            return text == "true"
        case "int":
            return int(text)
        case "float" if math.isfinite(float(text)):
            return float(text)
        case "float":
            mistakes.append(Mistake(path, text, "a smaller number"))
        case other:
            mistakes.append(Mistake(path, f"the tag {other}", "plain values without tags"))
    return text


def _broken(error: yaml.MarkedYAMLError) -> Mistake:
    """Where the reader gave up, and where what it was reading began: that is where the mistake mostly is."""
    mark, began = error.problem_mark or error.context_mark, error.context_mark
    where = "" if mark is None else f" at line {_line(mark)}, column {mark.column + 1}"
    if error.context and error.context.startswith("while "):
        since = "" if began is None or began is mark else f" that begins on line {_line(began)}"
        told = f"{error.problem} {error.context}{since}"
    else:
        told = " ".join(filter(None, (error.context, error.problem)))
    return Mistake("", f"broken YAML{where} ({told})", "one YAML document")


def _at_line(mark: yaml.Mark | None, what: str, accepted: str) -> Mistake:
    where = "" if mark is None else f"line {_line(mark)}, column {mark.column + 1}: "
    return Mistake("", where + what, accepted)


def _line(mark: yaml.Mark) -> int:
    return mark.line + 1
