"""Plain data to typed settings and back, collecting every mistake instead of stopping at the first.

The types themselves say what is accepted: bounds stand in `msgspec.Meta`, everything else in its `extra` as a
`check` function and an `accepted` text.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from enum import Enum
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import inspect

from policy import durations, values
from policy.mistakes import Mistake, at, did_you_mean
from policy.reasons import Malformed

_BAD: Final = object()
_Converter: TypeAlias = Callable[[Any, object, str, list[Mistake]], Any]


def from_plain(kind: Any, plain: object, path: str, mistakes: list[Mistake]) -> Any:
    """A value of this type, with defaults for what was wrong; None if not even that can be made."""
    value = _convert(_type_info(kind), plain, path, mistakes)
    return None if value is _BAD else value


def to_plain(value: object) -> Any:
    """What `from_plain` reads back to an equal value."""
    if isinstance(value, msgspec.Struct):
        fields = msgspec.structs.fields(value)
        return {field.encode_name: to_plain(getattr(value, field.name)) for field in fields}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, timedelta):
        return durations.text_of(value)
    if isinstance(value, Mapping):
        return {key: to_plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [to_plain(item) for item in value]
    return value


def flatten(plain: Any, path: str = "") -> dict[str, Any]:
    """Nested settings as one level of dotted names, as log lines want them; lists of scalars stay lists."""
    if isinstance(plain, dict) and plain:
        return {name: item for key, part in plain.items() for name, item in flatten(part, at(path, key)).items()}
    if isinstance(plain, list) and any(isinstance(part, dict) for part in plain):
        return {name: item for n, part in enumerate(plain) for name, item in flatten(part, at(path, n)).items()}
    return {path: None if plain == {} else plain}


@functools.cache
def _type_info(kind: Any) -> inspect.Type:
    return inspect.type_info(kind)


def _convert(info: inspect.Type, plain: object, path: str, mistakes: list[Mistake]) -> Any:
    converter: _Converter = _CONVERTERS.get(type(info), _leaf)
    return converter(info, plain, path, mistakes)


def _checked(info: inspect.Metadata, plain: object, path: str, mistakes: list[Mistake]) -> Any:
    before = len(mistakes)
    value = _convert(info.type, plain, path, mistakes)
    extra = info.extra or {}
    if len(mistakes) == before and "check" in extra and not extra["check"](value):
        mistakes.append(Mistake(path, shown(plain), extra["accepted"]))
    return value if len(mistakes) == before else _BAD


def _optional(info: inspect.UnionType, plain: object, path: str, mistakes: list[Mistake]) -> Any:
    """Unions here are always a type or null."""
    if plain is None:
        return None
    before = len(mistakes)
    value = _convert(_without_none(info), plain, path, mistakes)
    for number, mistake in enumerate(mistakes[before:], before):
        if mistake.path == path:
            mistakes[number] = dataclasses.replace(mistake, accepted=accepted_by(info))
    return value


def _without_none(info: inspect.UnionType) -> inspect.Type:
    return next(kind for kind in info.types if not isinstance(kind, inspect.NoneType))


def _struct(info: inspect.StructType, plain: object, path: str, mistakes: list[Mistake]) -> Any:
    if not isinstance(plain, dict):
        mistakes.append(Mistake(path, shown(plain), "a mapping of settings"))
        return _BAD
    known = {field.encode_name: field for field in info.fields}
    mistakes.extend(_unknown(path, key, known) for key in plain if key not in known)
    missing = [name for name, field in known.items() if field.required and name not in plain]
    mistakes.extend(Mistake(at(path, name), "nothing", accepted_by(known[name].type)) for name in missing)
    parts = {
        field.name: _convert(field.type, plain[name], at(path, name), mistakes)
        for name, field in known.items()
        if name in plain
    }
    good = {name: part for name, part in parts.items() if part is not _BAD}
    complete = all(field.name in good for field in info.fields if field.required)
    return info.cls(**good) if complete else _BAD


def _unknown(path: str, key: str, known: Iterable[str]) -> Mistake:
    hint = did_you_mean(key, known)
    accepted = "a known key" if hint else f"one of {', '.join(known)}"
    return Mistake(at(path, key), "an unknown key", accepted, hint)


def _tuple(info: inspect.VarTupleType, plain: object, path: str, mistakes: list[Mistake]) -> Any:
    if not isinstance(plain, list) or len(plain) < (info.min_length or 0):
        mistakes.append(Mistake(path, shown(plain), accepted_by(info)))
        return _BAD
    before = len(mistakes)
    items = tuple(_convert(info.item_type, item, at(path, n), mistakes) for n, item in enumerate(plain))
    return items if len(mistakes) == before else _BAD


def _dict(info: inspect.DictType, plain: object, path: str, mistakes: list[Mistake]) -> Any:
    if not isinstance(plain, dict):
        mistakes.append(Mistake(path, shown(plain), accepted_by(info)))
        return _BAD
    before = len(mistakes)
    found = {key: _convert(info.value_type, item, at(path, key), mistakes) for key, item in plain.items()}
    return found if len(mistakes) == before else _BAD


def _any(_info: inspect.Type, plain: object, _path: str, _mistakes: list[Mistake]) -> Any:
    return plain


_CONVERTERS: Final[Mapping[type[inspect.Type], _Converter]] = {
    inspect.Metadata: _checked,
    inspect.UnionType: _optional,
    inspect.StructType: _struct,
    inspect.VarTupleType: _tuple,
    inspect.DictType: _dict,
    inspect.AnyType: _any,
}


def _leaf(info: inspect.Type, plain: object, path: str, mistakes: list[Mistake]) -> Any:
    value = _BAD
    match info:
        case inspect.BoolType() | inspect.StrType() if isinstance(plain, _PYTHON[type(info)]):
            value = plain
        case inspect.IntType() | inspect.FloatType() if _in_bounds(info, plain):
            value = plain if isinstance(info, inspect.IntType) else float(plain)  # type: ignore[arg-type]
        case inspect.EnumType() if plain in [member.value for member in info.cls]:
            value = info.cls(plain)
        case inspect.TimeDeltaType() if isinstance(plain, str):
            parsed = durations.parse(plain)
            value = _BAD if isinstance(parsed, Malformed) else parsed
    if value is _BAD:
        mistakes.append(Mistake(path, shown(plain), accepted_by(info), _hint(info, plain)))
    return value


LONGEST_NUMBER: Final = 30
"""Digits: more than any bound has."""
_PYTHON: Final[Mapping[type[inspect.Type], type]] = {inspect.BoolType: bool, inspect.StrType: str}


def _in_bounds(info: inspect.IntType | inspect.FloatType, plain: object) -> bool:
    wanted = int if isinstance(info, inspect.IntType) else int | float
    if isinstance(plain, bool) or not isinstance(plain, wanted):
        return False
    return (info.ge is None or plain >= info.ge) and (info.le is None or plain <= info.le)


def _hint(info: inspect.Type, plain: object) -> str:
    if isinstance(info, inspect.EnumType) and isinstance(plain, str):
        return did_you_mean(plain, [member.value for member in info.cls])
    if isinstance(info, inspect.TimeDeltaType) and isinstance(plain, int | float):
        return "add a unit"
    if isinstance(info, inspect.IntType | inspect.FloatType) and isinstance(plain, str):
        return "remove the quotes" if _in_bounds(info, _number(plain)) else ""
    return ""


def _number(text: str) -> int | float | None:
    """What a text says without its quotes. A number that is too long to be read comes as text as well."""
    if not text.replace(".", "", 1).isdecimal() or not text.isascii():
        return None
    return float(text) if "." in text else int(text[:LONGEST_NUMBER])


def accepted_by(info: inspect.Type) -> str:
    """What a person may write where a value of this type stands."""
    return _ACCEPTED[type(info)](info)


def _accepted_number(info: inspect.IntType | inspect.FloatType) -> str:
    noun = "a whole number" if isinstance(info, inspect.IntType) else "a number"
    if info.ge is not None and info.le is not None:
        return f"{noun} from {info.ge} to {info.le}"
    return noun if info.ge is None else f"{noun} of at least {info.ge}"


_ACCEPTED: Final[Mapping[type[inspect.Type], Callable[[Any], str]]] = {
    inspect.Metadata: lambda info: (info.extra or {}).get("accepted") or accepted_by(info.type),
    inspect.UnionType: lambda info: f"{accepted_by(_without_none(info))} or null",
    inspect.BoolType: lambda _: "true or false",
    inspect.IntType: _accepted_number,
    inspect.FloatType: _accepted_number,
    inspect.EnumType: lambda info: values.one_of(tuple(member.value for member in info.cls)),
    inspect.TimeDeltaType: lambda _: durations.FORMAT,
    inspect.VarTupleType: lambda info: f"a list, each item {accepted_by(info.item_type)}",
    inspect.DictType: lambda info: f"a mapping of names to {accepted_by(info.value_type)}",
    inspect.StructType: lambda _: "a mapping of settings",
    inspect.StrType: lambda _: "text",
    inspect.AnyType: lambda _: "any value",
}


def shown(plain: object) -> str:
    """How a message quotes what was written."""
    if plain is None:
        return "null"
    if isinstance(plain, bool):
        return str(plain).lower()
    if isinstance(plain, dict | list):
        return "a mapping" if isinstance(plain, dict) else f"a list of {len(plain)}"
    return repr(plain)
