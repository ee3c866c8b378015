"""Documents that somebody else wrote: are the fields that we read there, and are they what they have to be."""

from collections.abc import Mapping
from typing import Any

OPTIONAL = "?"
"""Ends the name of a field that may be missing."""
_ANYTHING = object
_CONTAINER = {
    "name": str,
    "command?": [str],
    "args?": [str],
    "ports?": [{"containerPort": int}],
    "env?": [{"name": str, "value?": str, "valueFrom?": {"fieldRef?": {"fieldPath": str}}}],
    "volumeMounts?": [{"name": str, "mountPath": str}],
    "readinessProbe?": {"httpGet?": {"port": _ANYTHING}, "tcpSocket?": {"port": _ANYTHING}},
}
_ITEMS = [{"key": str, "path": str}]
_VOLUME = {
    "name": str,
    "configMap?": {"name": str, "items?": _ITEMS},
    "secret?": {"secretName": str, "items?": _ITEMS},
}
_TEMPLATE = {"metadata?": {"labels?": dict}, "spec": {"containers": [_CONTAINER], "volumes?": [_VOLUME]}}
DEPLOYMENT = {"metadata": {"name": str}, "spec": {"replicas?": int, "template": _TEMPLATE}}
"""What is read of one to plan its pods."""
_WORDS = {dict: "a mapping", list: "a list", str: "text", int: "a whole number", bool: "true or false"}


class Unlike(Exception):
    """The message says which field is missing, or what it has to be."""


def read(found: Any, shape: Any, path: str = "") -> Any:
    """What was found, without the fields that are null: to Kubernetes they are not there.

    A shape is a type, a list with the shape of its items, or a mapping from field to shape; other fields may be
    anything.
    """
    return _read(_without_nulls(found), shape, path)


def _read(found: Any, shape: Any, path: str) -> Any:
    kind: Any = shape if isinstance(shape, type) else type(shape)
    if found is None:
        raise Unlike(f"{path} is missing")
    if not isinstance(found, kind):
        raise Unlike(f"{path}: {_short(found)} is not accepted, use {_WORDS[kind]}")
    if isinstance(shape, list):
        for index, item in enumerate(found):
            _read(item, shape[0], f"{path}[{index}]")
    if isinstance(shape, Mapping):
        for name, inner in shape.items():
            field = name.removesuffix(OPTIONAL)
            if field in found or field == name:
                _read(found.get(field), inner, f"{path}.{field}".removeprefix("."))
    return found


def _without_nulls(found: Any) -> Any:
    if isinstance(found, dict):
        return {key: _without_nulls(value) for key, value in found.items() if value is not None}
    return [_without_nulls(item) for item in found] if isinstance(found, list) else found


def _short(found: Any) -> str:
    text = repr(found)
    return text if len(text) <= 40 else f"{text[:37]}..."
