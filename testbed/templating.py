"""One Kubernetes object as a Helm template: what differs between clusters becomes a value.   Pure."""

import copy
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import yaml

from testbed.api import Object

SETTINGS = "spotshift-settings"
COMPONENT = "app.kubernetes.io/component"


class Unsuited(Exception):
    """An object cannot become a template; the message says which and why."""


class Form(Enum):
    """How an expression stands in the text."""

    SCALAR = "{indent}{key}: {{{{ {value} }}}}"
    BLOCK = "{indent}{key}:\n{indent}  {{{{- toYaml {value} | nindent {deeper} }}}}"
    OPTIONAL_SCALAR = "{indent}{{{{- with {value} }}}}\n{indent}{key}: {{{{ . }}}}\n{indent}{{{{- end }}}}"
    OPTIONAL_BLOCK = (
        "{indent}{{{{- with {value} }}}}\n{indent}{key}:\n{indent}  {{{{- toYaml . | nindent {deeper} }}}}\n"
        "{indent}{{{{- end }}}}"
    )
    APPENDED = "{indent}{{{{- with {value} }}}}\n{indent}{{{{- toYaml . | nindent {here} }}}}\n{indent}{{{{- end }}}}"
    """More lines of a text; the key is not written."""


@dataclass(slots=True)
class _Marks:
    """What stands in the text for an expression until the text is made."""

    found: list[tuple[Form, str]] = field(default_factory=list)

    def put(self, form: Form, value: str) -> str:
        self.found.append((form, value))
        return f"HELM{len(self.found) - 1}HELM"

    def resolved(self, text: str) -> str:
        """Braces that the object itself has are not Helm's."""
        escaped = re.sub(r"\{\{|\}\}", lambda brace: f'{{{{ "{brace[0]}" }}}}', text)
        return re.sub(r"^( *)([\w-]+): HELM(\d+)HELM$", self._line, escaped, flags=re.MULTILINE)

    def _line(self, line: re.Match[str]) -> str:
        form, value = self.found[int(line[3])]
        indent = line[1]
        return form.value.format(indent=indent, key=line[2], value=value, deeper=len(indent) + 2, here=len(indent))


def template(document: Object) -> str:
    """The object as text with expressions in it."""
    made, marks = copy.deepcopy(document), _Marks()
    if made["kind"] in ("Deployment", "Job"):
        _parametrise(made, marks)
    if made["kind"] == "ConfigMap" and made["metadata"]["name"] == SETTINGS:
        lines = made["data"]["settings.yaml"].rstrip("\n")
        made["data"]["settings.yaml"] = f"{lines}\nmore: {marks.put(Form.APPENDED, '.Values.settings')}\n"
    return marks.resolved(dump(made))


def component(workload: Object) -> str:
    """Which program it runs: its part of values.yaml."""
    name: str = workload["spec"]["template"]["metadata"]["labels"][COMPONENT]
    return name


def container(workload: Object) -> dict[str, Any]:
    containers = workload["spec"]["template"]["spec"]["containers"]
    if len(containers) != 1:
        raise Unsuited(
            f"{workload['kind']} {workload['metadata']['name']} has {len(containers)} containers, wanted: 1"
        )
    only: dict[str, Any] = containers[0]
    return only


def _parametrise(made: Object, marks: _Marks) -> None:
    values, template = f".Values.{component(made)}", made["spec"]["template"]
    if made["kind"] == "Deployment":
        made["spec"]["replicas"] = marks.put(Form.SCALAR, f"{values}.replicas")
        if "priorityClassName" in template["spec"]:
            template["spec"]["priorityClassName"] = marks.put(Form.OPTIONAL_SCALAR, ".Values.priorityClassName")
    else:
        template["metadata"]["annotations"] = marks.put(Form.OPTIONAL_BLOCK, f"{values}.podAnnotations")
    template["spec"]["imagePullSecrets"] = marks.put(Form.OPTIONAL_BLOCK, ".Values.imagePullSecrets")
    only = container(made)
    only["image"] = marks.put(Form.SCALAR, 'include "spotshift.image" .')
    only["imagePullPolicy"] = marks.put(Form.SCALAR, ".Values.image.pullPolicy")
    only["resources"] = marks.put(Form.BLOCK, f"{values}.resources")


class _Dumper(yaml.SafeDumper):
    """Writes a text of several lines as several lines."""


def _string(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _string)


def dump(document: Mapping[str, Any]) -> str:
    """YAML for people: in the order given, long lines left whole."""
    text: str = yaml.dump(dict(document), Dumper=_Dumper, sort_keys=False, width=10**6, allow_unicode=True)
    return text
