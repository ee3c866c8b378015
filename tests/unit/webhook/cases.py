"""The golden cases: where they are, and what a file of them means."""

from pathlib import Path
from typing import Any

import yaml

from tests.unit.webhook import building
from webhook.view import View

ROOT = Path(__file__).parents[2] / "golden" / "webhook"
FILES = sorted(ROOT.rglob("*.yaml"))
INPUTS = {"why", "settings", "namespace", "nodes", "classes", "objects", "request", "pod", "expect"}
OUTPUTS = {"decision", "reasons", "warnings", "intent", "migrations", "patch"}

Case = dict[str, Any]


def load(path: Path) -> Case:
    # With libyaml, in a tenth of the time: every worker reads all of them before it runs its first test.
    case: Case = yaml.load(path.read_text(), Loader=yaml.CSafeLoader)
    unknown = set(case) - INPUTS | set(case["expect"]) - OUTPUTS
    if unknown:
        raise ValueError(f"{path}: {unknown} mean nothing, so they would test nothing")
    return case


def view_of(case: Case) -> View:
    given = {name: case[name] for name in ("nodes", "classes", "objects") if name in case}
    namespace = case.get("namespace", {})
    return building.view(
        policy=case.get("settings"), namespace=namespace, namespace_known=namespace is not None, **given
    )


def body_of(case: Case, pod: Any) -> bytes:
    name = (case.get("namespace") or {}).get("name", "shop")
    return building.body(pod, **{"namespace": name, "object": pod, **case.get("request", {})})
