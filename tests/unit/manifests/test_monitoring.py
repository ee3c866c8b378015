"""Alerts and panels ask for metrics and label values that exist, and every alert tells somebody what to do."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from telemetry.metrics import LABELS, PREFIX, Kind, Metric

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "manifests" / "components" / "monitoring"
RULES: list[dict[str, Any]] = [
    rule for group in yaml.safe_load((FOLDER / "rules.yaml").read_text())["spec"]["groups"] for rule in group["rules"]
]
DASHBOARD: dict[str, Any] = json.loads((FOLDER / "dashboard.json").read_text())
PANELS: list[dict[str, Any]] = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]

FOREIGN = {
    # Of the API server, and of every Python process; the test of the installed product scrapes both.
    "apiserver_admission_webhook_fail_open_count": {"name", "type"},
    "process_resident_memory_bytes": set[str](),
    "process_cpu_seconds_total": set[str](),
}
SCRAPED = {"instance", "component", "le"}
"""Labels that come from being scraped, or with a histogram."""
WORDS = {"and", "or", "unless", "by", "on", "bool"}


def declared() -> dict[str, dict[str, frozenset[str]]]:
    """Series by name, with the values each label may have."""
    found: dict[str, dict[str, frozenset[str]]] = {
        name: dict.fromkeys(it, frozenset()) for name, it in FOREIGN.items()
    }
    for metric in Metric:
        spec = metric.value
        endings = ("_bucket", "_count", "_sum") if spec.kind is Kind.HISTOGRAM else ("",)
        for ending in endings:
            found[f"{PREFIX}{spec.name}{ending}"] = {label: LABELS[name] for label, name in spec.labels.items()}
    return found


def series(expression: str) -> Iterator[tuple[str, str]]:
    """Every metric of an expression with what its braces hold."""
    bare = re.sub(r"\b(by|on)\s*\([^)]*\)", " ", expression)
    for name, matchers in re.findall(
        r"(?<![\w$])([a-z_]+)\b(?!\s*\()(?:\{([^}]*)\})?", re.sub(r"\[[^]]*\]", "", bare)
    ):
        if name not in WORDS and "_" in name:
            yield name, matchers


def asked() -> Iterator[tuple[str, str]]:
    for rule in RULES:
        yield rule["alert"], rule["expr"]
    for panel in PANELS:
        for number, target in enumerate(panel["targets"]):
            yield f"{panel['title']} {number}", target["expr"]


ASKED = list(asked())


@pytest.mark.parametrize("expression", [it for _, it in ASKED], ids=[name for name, _ in ASKED])
def test_what_is_asked_for_exists(expression: str) -> None:
    known, found = declared(), list(series(expression))
    assert found, "an expression without a metric"
    for name, matchers in found:
        assert name in known
        for label, value in re.findall(r'(\w+)=~?"([^"]*)"', matchers):
            assert label in known[name]
            if name.startswith(PREFIX):
                assert set(value.split("|")) <= known[name][label]
    labels = {label for name, _ in found for label in known[name]} | SCRAPED
    for group in re.findall(r"\b(?:by|on)\s*\(([^)]*)\)", expression):
        assert {it.strip() for it in group.split(",")} <= labels


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ('sum by (le) (rate(a_b{x="y", z="1"}[5m])) / sum(c_d) > 5', ["a_b", "c_d"]),
        ("time() - max(a_b and on (instance) c_d == 1)", ["a_b", "c_d"]),
        ("vector(0) or no", []),
    ],
)
def test_metrics_are_found_in_expressions(expression: str, names: list[str]) -> None:
    assert [name for name, _ in series(expression)] == names


@pytest.mark.parametrize("rule", RULES, ids=[rule["alert"] for rule in RULES])
def test_an_alert_has_its_runbook(rule: dict[str, Any]) -> None:
    page, anchor = rule["annotations"]["runbook"].split("#")
    assert anchor == rule["alert"].lower()
    section = re.search(
        rf"^### {rule['alert']}\n(.+?)(?=^##|\Z)", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL
    )
    assert section is not None
    for word in ("**Means**", "**Look**", "**Do**"):
        assert word in section[1]
    assert rule["labels"]["severity"] in {"warning", "critical"}
    assert set(rule["annotations"]) == {"summary", "description", "runbook"}


def test_the_dashboard_is_laid_out() -> None:
    """Nothing overlaps, nothing has the same number, and every panel asks the chosen data source."""
    taken: dict[tuple[int, int], str] = {}
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        for cell in (
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        ):
            assert taken.setdefault(cell, panel["title"]) == panel["title"]
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    assert {target["datasource"]["uid"] for panel in PANELS for target in panel["targets"]} == {"${datasource}"}
