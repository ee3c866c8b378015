"""The reference of all settings as Markdown, made from the settings themselves so that it cannot drift."""

import ast
import functools
import inspect
import textwrap
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec import inspect as shapes

from policy import convert
from policy.mistakes import at
from policy.settings import API_VERSION, KIND, Settings

_HEAD: Final = f"""# Configuration

One YAML document, `apiVersion: {API_VERSION}` and `kind: {KIND}`. Every other key may be left out.
All mistakes are reported at once, with the path of the field; a key that does not exist is refused. The file
is read again when it changes; a version with mistakes is reported and the one before stays in force.

Arguments that were written for the scheduler plugin `Rescheduler` load unchanged, either pasted below `kind`
or as its `pluginConfig` entry.

This page is made by `policy.settings_doc.markdown()`.

"""


_PAGE: Final = "docs/configuration.md"
BEGIN: Final = "<!-- settings: written by `make docs` -->"
END: Final = "<!-- end of settings -->"


def overview() -> str:
    """The outermost settings as a table for pages outside of docs/; groups lead to their section of the page."""
    return "| key | default | meaning |\n|---|---|---|\n" + "".join(_short_rows())


def renewed(text: str) -> str:
    """A page with the table between its two marks as the settings make it now."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"the marks {BEGIN!r} and {END!r} are missing")
    return f"{before}{BEGIN}\n{overview()}{END}{after}"


def markdown() -> str:
    """The whole page."""
    return _HEAD + "".join(_section(path, kind) for path, kind in _groups("", Settings))


@functools.cache
def field_docs(kind: type) -> dict[str, str]:
    """The docstring under each field of a class."""
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    assert isinstance(body, ast.ClassDef)  # noqa: S101 - the source of a class is a class
    found = {}
    for field, text in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            found[field.target.id] = _text(text)
    return found


def _text(node: ast.stmt) -> str:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return " ".join(node.value.value.split())
    return ""


def _groups(path: str, kind: type[msgspec.Struct]) -> Iterator[tuple[str, type[msgspec.Struct]]]:
    """Every struct of the settings with the path at which it stands, outermost first."""
    yield path, kind
    info = shapes.type_info(kind)
    assert isinstance(info, shapes.StructType)  # noqa: S101 - a struct's shape is a struct
    for field in info.fields:
        inner, mark = _inner(field.type)
        if inner is not None:
            yield from _groups(at(path, field.encode_name) + mark, inner)


def _inner(info: shapes.Type) -> tuple[type[msgspec.Struct] | None, str]:
    match info:
        case shapes.StructType():
            return info.cls, ""
        case shapes.VarTupleType():
            return _inner(info.item_type)[0], "[]"
        case shapes.DictType():
            return _inner(info.value_type)[0], ".<name>"
        case _:
            return None, ""


def _section(path: str, kind: type[msgspec.Struct]) -> str:
    intro = " ".join((kind.__doc__ or "").split())
    title = f"`{path}`" if path else "Top level"
    rows = "".join(_rows(kind))
    return f"## {title}\n\n{intro}\n\n| key | default | accepted | meaning |\n|---|---|---|---|\n{rows}\n"


def _rows(kind: type[msgspec.Struct]) -> Iterator[str]:
    info = shapes.type_info(kind)
    assert isinstance(info, shapes.StructType)  # noqa: S101 - a struct's shape is a struct
    docs = field_docs(kind)
    for field in info.fields:
        cells = (f"`{field.encode_name}`", _default(field), convert.accepted_by(field.type), docs[field.name])
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def _short_rows() -> Iterator[str]:
    info = shapes.type_info(Settings)
    assert isinstance(info, shapes.StructType)  # noqa: S101 - a struct's shape is a struct
    docs = field_docs(Settings)
    for field in info.fields:
        group = isinstance(field.type, shapes.StructType)
        default = f"[several]({_PAGE}#{field.encode_name.lower()})" if group else _default(field)
        yield f"| `{field.encode_name}` | {default} | {docs[field.name]} |\n"


def _default(field: shapes.Field) -> str:
    if field.required:
        return "needed"
    value: Any = field.default
    if value is msgspec.NODEFAULT:
        value = field.default_factory() if callable(field.default_factory) else None
    if isinstance(value, msgspec.Struct):
        return "see below"
    plain = convert.to_plain(value)
    return "unset" if plain is None else f"`{_compact(plain)}`"


def _compact(plain: Any) -> str:
    if isinstance(plain, list):
        return "[" + ", ".join(str(item) for item in plain) + "]"
    if isinstance(plain, bool):
        return str(plain).lower()
    return f"{plain:g}" if isinstance(plain, float) else str(plain) or "''"
