"""Does our patch apply? Asked before it is sent, because the API server refuses the pod if it does not.

An independent implementation (`jsonpatch`) applies the patch to what was received. Two things make that cheap
without making it weaker; docs/decisions/0006 has the argument and the figures, a property test the proof:

* Only the fields that a patch of ours can name are decoded. Whether an operation applies depends on the
  containers along its path alone, and every path begins with one of these fields.
* Pods of one template look alike: the answer is remembered for what it depends on, which is the operations
  and the containers along their paths. Long patches are applied each time: they are rare, and would fill the memory.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import jsonpatch
import jsonpointer
import msgspec

from webhook.patch import Op

REMEMBERED: Final = 1024
"""Shapes of patches; a cluster has a handful of them for each kind of workload."""

STEPS_REMEMBERED: Final = 32
"""Operations of a patch whose answer is remembered; the replacement of a moved pod has 11. This bounds what is kept,
and the comparison of each path with each other one.
"""

_FIELDS: Final = frozenset(
    {
        "/metadata/labels",
        "/metadata/annotations",
        "/spec/affinity",
        "/spec/tolerations",
        "/spec/priorityClassName",
        "/spec/priority",
        "/spec/preemptionPolicy",
    }
)
_NOTHING: Final = object()
_MAPPING, _LIST, _SCALAR, _MISSING = range(4)


class _Metadata(msgspec.Struct):
    labels: Any = msgspec.UNSET
    annotations: Any = msgspec.UNSET


class _Spec(msgspec.Struct, rename="camel"):
    affinity: Any = msgspec.UNSET
    tolerations: Any = msgspec.UNSET
    priority_class_name: Any = msgspec.UNSET
    priority: Any = msgspec.UNSET
    preemption_policy: Any = msgspec.UNSET


class _Touched(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec


class _Request(msgspec.Struct):
    object: _Touched


class _Review(msgspec.Struct):
    request: _Request


_DECODER: Final = msgspec.json.Decoder(_Review)


# What jsonpatch said. Not a setting and not a secret: paths of ours, kinds of containers, yes or no.
_verdicts: Final[dict[object, bool]] = {}


def applies(ops: Sequence[Op], body: bytes) -> bool:
    """Whether the patch applies to the pod in this review."""
    try:
        document = _document(ops, body)
    except (msgspec.DecodeError, RecursionError):  # in a part of the pod that nobody has read before
        return False
    if len(ops) > STEPS_REMEMBERED:
        return _apply(ops, document)
    steps = tuple((op.op, op.path) for op in ops)
    if not _independent(steps):
        return _apply(ops, document)
    key = (steps, tuple(_shape(document, path) for _, path in steps))
    verdict = _verdicts.get(key)
    if verdict is None:
        if len(_verdicts) >= REMEMBERED:
            _verdicts.clear()
        verdict = _verdicts[key] = _apply(ops, document)
    return verdict


def _apply(ops: Sequence[Op], document: Any) -> bool:
    try:
        jsonpatch.JsonPatch([op.plain() for op in ops]).apply(document, in_place=True)
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, TypeError):
        return False
    return True


def _document(ops: Sequence[Op], body: bytes) -> Any:
    named = {_field(op.path) for op in ops} | {_field(op.source) for op in ops if op.source}
    if named <= _FIELDS:
        return msgspec.to_builtins(_DECODER.decode(body).request.object)
    return msgspec.json.decode(body)["request"]["object"]


@lru_cache(REMEMBERED)
def _field(pointer: str) -> str:
    return "/".join(pointer.split("/", 3)[:3])


@lru_cache(REMEMBERED)
def _independent(steps: tuple[tuple[str, str], ...]) -> bool:
    """Whether no operation changes what another one finds along its path.

    A copy brings in what its path does not show, an index moves what stands behind it, and an operation at or
    above the path of another one changes what that finds; appending twice to one list is harmless.
    """
    paths = [path for _, path in steps]
    if any(op == "copy" for op, _ in steps) or any(path.rpartition("/")[2].isdecimal() for path in paths):
        return False
    appended = {path for path in paths if path.endswith("/-")}
    if len(set(paths)) < len(paths) and any(path not in appended and paths.count(path) > 1 for path in paths):
        return False
    return not any(
        other != path and other.startswith(path[:-1] if path in appended else f"{path}/")
        for path in paths
        for other in paths
    )


def _shape(document: Any, path: str) -> tuple[int, ...]:
    """What stands along a path; the length of a list does not matter to independent operations."""
    found, here = [], document
    for part in _parts(path):
        if isinstance(here, dict):
            found.append(_MAPPING)
            here = here.get(part, _NOTHING)
        elif isinstance(here, list):
            found.append(_LIST)
            here = here[int(part)] if part.isdecimal() and int(part) < len(here) else _NOTHING
        else:
            break
    found.append(_kind(here))
    return tuple(found)


@lru_cache(REMEMBERED)
def _parts(path: str) -> tuple[str, ...]:
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:])


def _kind(value: Any) -> int:
    if value is _NOTHING:
        return _MISSING
    if isinstance(value, dict):
        return _MAPPING
    return _LIST if isinstance(value, list) else _SCALAR
