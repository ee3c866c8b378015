"""What a Helm chart has besides its templates: its name, and its values with their schema."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from testbed import templating
from testbed.api import Object

GENERATED = "# Written by `make chart` from the kustomize manifests; change those.\n"
CHART = """\
apiVersion: v2
name: spotshift
description: Guided, proven and explained moves of pods between spot and on-demand nodes
type: application
version: {version}
appVersion: {version}
kubeVersion: ">=1.30.0-0"
"""


def of(
    version: str,
    *,
    base: Sequence[Object],
    everything: Sequence[Object],
    cleanup: Sequence[Object],
    switches: Mapping[str, Sequence[str]],
) -> dict[str, str]:
    """The files by their path. `everything` are the objects with all switches on, `base` those with none."""
    values = "".join(_values(base, everything, cleanup, switches))
    return {
        "Chart.yaml": GENERATED + CHART.format(version=version),
        "values.yaml": values,
        "values.schema.json": json.dumps(_schema(yaml.safe_load(values)), indent=2) + "\n",
    }


def _values(
    base: Sequence[Object],
    everything: Sequence[Object],
    cleanup: Sequence[Object],
    switches: Mapping[str, Sequence[str]],
) -> Iterator[str]:
    known = {it["metadata"]["name"]: it for it in [*everything, *base] if it["kind"] == "Deployment"}
    (job,) = (it for it in cleanup if it["kind"] == "Job")
    repository = templating.container(job)["image"].rpartition(":")[0]
    policy = templating.container(job)["imagePullPolicy"]
    priority = next(iter(known.values()))["spec"]["template"]["spec"].get("priorityClassName", "")
    yield GENERATED
    yield "\nimage:\n"
    yield templating.dump({"repository": repository}).replace("repository", "  repository")
    yield '  # The version of the chart, unless said otherwise.\n  tag: ""\n  digest: ""\n'
    yield f"  pullPolicy: {policy}\nimagePullSecrets: []\n"
    yield f"\n# Of all pods; empty for that of the cluster.\npriorityClassName: {priority}\n"
    yield "\n# Any setting of docs/configuration.md, such as `mode: observe`; followed without a restart.\n"
    yield "settings: {}\n"
    yield "\ncomponents:\n"
    for name, about in switches.items():
        yield "".join(f"  {line}\n" for line in about)
        yield f"  {name}: false\n"
    for workload in known.values():
        yield "\n" + templating.dump(
            {
                templating.component(workload): {
                    "replicas": workload["spec"].get("replicas", 1),
                    "resources": templating.container(workload)["resources"],
                }
            }
        )
    yield "\n# Runs before an uninstall: ends moves that are under way and takes back every mark.\n"
    yield templating.dump(
        {"cleanup": {"enabled": True, "podAnnotations": {}, "resources": templating.container(job)["resources"]}}
    )


def _schema(values: Mapping[str, Any]) -> dict[str, Any]:
    """A misspelt value must not be taken for none. What is a mapping without keys here may hold anything."""
    return {"$schema": "https://json-schema.org/draft-07/schema#", **_shape(values)}


def _shape(value: Any) -> dict[str, Any]:
    match value:
        case dict() if not value or "limits" in value or "requests" in value:
            return {"type": "object"}
        case dict():
            inner = {name: _shape(it) for name, it in value.items()}
            return {"type": "object", "additionalProperties": False, "properties": inner}
        case bool():
            return {"type": "boolean"}
        case int():
            return {"type": "integer", "minimum": 0}
        case list():
            return {"type": "array"}
        case _:
            return {"type": "string"}
