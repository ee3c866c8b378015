"""The Helm chart, written from the kustomize manifests, so that there is one truth about what is installed.

What `kubectl kustomize` renders for the overlay `production` is the chart; each folder of `components` becomes a
switch. An object that a component changes is in the chart once for each way it can look. Only what differs between
clusters (image, replicas, resources, settings) is a value.
"""

import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from testbed import chart_files, templating
from testbed.api import Object

OVERLAY = "production"
CLEANUP = "cleanup"
"""Folder of what has to run before the objects are deleted."""
HOOK = {"helm.sh/hook": "pre-delete", "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded"}
"""A Job that failed stays for its logs. Its rights were created well, so helm takes those away all the same."""
OMITTED = ("Namespace",)
"""The release itself is kept in the namespace, so that must be there before."""
BY_HAND = ("templates/_image.tpl", "templates/NOTES.txt")
"""Files of the chart that no manifest says anything about."""

Render = Callable[[Sequence[Path], Sequence[Path]], list[Object]]
"""The objects of these kustomize folders with these components."""
Identity = tuple[str, str, str]
Ways = Sequence[tuple[str, Object]]
"""An object in each way it can look, with the condition of that way; an empty condition always holds."""


@dataclass(frozen=True, slots=True)
class Switch:
    """A component, as people find it in values.yaml."""

    folder: Path

    @property
    def value(self) -> str:
        first, *rest = self.folder.name.split("-")
        return first + "".join(word.capitalize() for word in rest)

    @property
    def about(self) -> list[str]:
        """What its kustomization says in the comment at its top."""
        lines = (self.folder / "kustomization.yaml").read_text().splitlines()
        return list(itertools.takewhile(lambda line: line.startswith("#"), lines))


def switches(manifests: Path) -> list[Switch]:
    found = sorted((manifests / "components").glob("*/kustomization.yaml"))
    return [Switch(path.parent) for path in found]


def files(manifests: Path, version: str, render: Render) -> dict[str, str]:
    """Every file of the chart by its path."""
    overlay, parts = manifests / "overlays" / OVERLAY, switches(manifests)
    base = render([overlay], [])
    own = render([manifests / CLEANUP], [])
    everything = render([overlay], [part.folder for part in parts])
    grouped: dict[str, list[str]] = {}
    for key, ways in _ways(overlay, parts, render).items():
        if key[0] not in OMITTED:
            grouped.setdefault(f"templates/{key[0].lower()}.yaml", []).append(_chosen(ways))
    grouped["templates/cleanup.yaml"] = [_hooked(it) for it in own]
    templates = {path: "---\n".join(documents) for path, documents in grouped.items()}
    about = {part.value: part.about for part in parts}
    return chart_files.of(version, base=base, everything=everything, cleanup=own, switches=about) | templates


def write(folder: Path, content: Mapping[str, str]) -> None:
    """Make the folder hold these files, those written by hand and no others."""
    for path in [it for it in folder.rglob("*") if it.is_file()]:
        if path.relative_to(folder).as_posix() not in {*content, *BY_HAND}:
            path.unlink()
    for name, text in content.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def identity(document: Object) -> Identity:
    metadata = document["metadata"]
    return document["kind"], metadata.get("namespace", ""), metadata["name"]


def combine(folder: Path, resources: Sequence[Path], components: Sequence[Path]) -> None:
    """Write a kustomization of these into a folder; kustomize wants relative paths."""
    parts = {"resources": resources, "components": components}
    here = folder.resolve()
    relative = {kind: [os.path.relpath(path.resolve(), here) for path in paths] for kind, paths in parts.items()}
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(relative))


# ---- objects and switches


def _ways(overlay: Path, parts: Sequence[Switch], render: Render) -> dict[Identity, Ways]:
    rendered: dict[tuple[Switch, ...], dict[Identity, Object]] = {}

    def with_parts(*chosen: Switch) -> dict[Identity, Object]:
        if chosen not in rendered:
            documents = render([overlay], [part.folder for part in chosen])
            rendered[chosen] = {identity(it): it for it in documents}
        return rendered[chosen]

    found: dict[Identity, Ways] = {}
    for key in sorted({key for chosen in ((), *((part,) for part in parts)) for key in with_parts(*chosen)}):
        changing = [part for part in parts if _changes(part, key, parts, with_parts)]
        found[key] = list(_each(key, changing, with_parts))
    return found


def _changes(
    part: Switch, key: Identity, parts: Sequence[Switch], with_parts: Callable[..., dict[Identity, Object]]
) -> bool:
    """Whether it matters for an object: by itself, or only to what another component brings."""
    others = [it for it in parts if it != part]
    return any(
        with_parts(*after).get(key) != with_parts(*before).get(key)
        for before, after in (((), (part,)), (others, parts))
    )


def _each(
    key: Identity, changing: Sequence[Switch], with_parts: Callable[..., dict[Identity, Object]]
) -> Iterator[tuple[str, Object]]:
    for count in range(len(changing) + 1):
        for chosen in itertools.combinations(changing, count):
            document = with_parts(*chosen).get(key)
            if document is not None:
                yield _condition(chosen, changing), document


def _condition(chosen: Sequence[Switch], changing: Sequence[Switch]) -> str:
    terms = [(f".Values.components.{part.value}", part in chosen) for part in changing]
    if len(terms) == 1:
        ((name, on),) = terms
        return name if on else f"not {name}"
    return " ".join(["and", *(name if on else f"(not {name})" for name, on in terms)]) if terms else ""


def _chosen(ways: Ways) -> str:
    return "".join(_when(condition, templating.template(document)) for condition, document in ways)


def _hooked(document: Object) -> str:
    weight = {"helm.sh/hook-weight": "0" if document["kind"] == "Job" else "-1"}
    metadata = {**document["metadata"], "annotations": {**HOOK, **weight}}
    return _when(".Values.cleanup.enabled", templating.template({**document, "metadata": metadata}))


def _when(condition: str, text: str) -> str:
    return f"{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n" if condition else text
