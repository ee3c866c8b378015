"""The documents hold together: links lead somewhere, both languages say the same, and nothing is left out."""

import re
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
import yaml

from bench.report import quoted
from descheduler.fit import FitCode
from descheduler.reasons import Code
from policy import settings_doc
from telemetry.metrics import PREFIX, Kind, Metric
from tests import markdown
from tests.markdown import ROOT, Page

PAGES = sorted(path for folder in (".", "docs", "docs/decisions") for path in (ROOT / folder).glob("*.md"))
ENGLISH, CHINESE = ROOT / "README.md", ROOT / "README.zh-CN.md"
OPERATIONS = ROOT / "docs" / "operations.md"
RULES = ROOT / "manifests" / "components" / "monitoring" / "rules.yaml"


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", PAGES, ids=named)
def test_links_lead_somewhere(path: Path) -> None:
    for link in markdown.read(path).links:
        target, _, anchor = link.partition("#")
        found = (path.parent / target).resolve() if target else path
        assert found.exists(), f"{link} in {named(path)}"
        if anchor:
            assert anchor in {it.anchor for it in markdown.read(found).headings}, f"{link} in {named(path)}"


def test_every_page_is_listed_in_the_readme() -> None:
    page = markdown.read(ENGLISH)
    listed = {link.partition("#")[0] for link in page.links}
    assert {f"docs/{path.name}" for path in PAGES if path.parent == ROOT / "docs"} <= listed


# ---- two languages


@pytest.fixture(scope="module")
def english() -> Page:
    return markdown.read(ENGLISH)


@pytest.fixture(scope="module")
def chinese() -> Page:
    return markdown.read(CHINESE)


def test_both_have_the_same_headings(english: Page, chinese: Page) -> None:
    assert [it.level for it in chinese.headings] == [it.level for it in english.headings]
    untranslated = [it.text for it in chinese.headings[1:] if not re.search(r"[\u4e00-\u9fff]", it.text)]
    assert untranslated == []


def test_both_have_the_same_blocks(english: Page, chinese: Page) -> None:
    def told(page: Page) -> list[tuple[str, str]]:
        return [(it.kind, it.text) for it in page.blocks]

    assert told(chinese) == told(english)


def test_both_have_the_same_tables(english: Page, chinese: Page) -> None:
    """As many rows in each table, and what stands in code is not translated."""

    def rows(page: Page) -> list[list[str]]:
        return [re.findall(r"`([^`]+)`", line) for line in page.prose.splitlines() if line.startswith("|")]

    assert [len(row) for row in rows(chinese)] == [len(row) for row in rows(english)]
    assert [sorted(row) for row in rows(chinese)] == [sorted(row) for row in rows(english)]


def test_both_lead_to_the_same_places(english: Page, chinese: Page) -> None:
    def within(page: Page) -> set[str]:
        return {it for it in page.links if not it.startswith("#")} - {ENGLISH.name, CHINESE.name}

    assert within(chinese) == within(english)
    assert CHINESE.name in english.links
    assert ENGLISH.name in chinese.links


# ---- what cannot drift


def test_the_settings_of_the_readme_are_those_there_are() -> None:
    text = ENGLISH.read_text()
    assert settings_doc.renewed(text) == text, "`make docs` writes them anew"


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="marks"):
        settings_doc.renewed("# a page\n")


QUOTING = [it for it in quoted.documents() if quoted.MARK.search(it.read_text())]


@pytest.mark.parametrize("path", QUOTING, ids=named)
def test_figures_are_those_of_the_results(path: Path) -> None:
    text = path.read_text()
    assert quoted.renewed(text, quoted.figures()) == text, "run `make docs`"


def test_both_readmes_quote_the_same() -> None:
    english, chinese = ([it["name"] for it in quoted.MARK.finditer(at.read_text())] for at in (ENGLISH, CHINESE))
    assert english == chinese
    assert len(english) > 10


def test_a_figure_that_nobody_measures_is_an_error() -> None:
    with pytest.raises(KeyError, match="nobody"):
        quoted.renewed("<!-- =nobody.knows -->1<!-- / -->", {"plan.small.pass": "1 ms"})


# ---- operations


def operations() -> str:
    return OPERATIONS.read_text()


@pytest.mark.parametrize("page", ["reasons.md", "metrics.md", "logs.md", "sizing.md", "configuration.md"])
def test_operations_lead_to_the_page(page: str) -> None:
    assert page in {link.partition("#")[0] for link in markdown.read(OPERATIONS).links}


@pytest.mark.parametrize("closed_set", [Code, FitCode])
def test_every_reason_is_explained(closed_set: type[StrEnum]) -> None:
    text = (ROOT / "docs" / "reasons.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \|$", text, re.MULTILINE))
    assert [code.value for code in closed_set if not rows.get(code.value, "").strip()] == []


def test_every_metric_is_explained() -> None:
    text = (ROOT / "docs" / "metrics.md").read_text()
    assert [it.value.name for it in Metric if f"| `{PREFIX}{it.value.name}` |" not in text] == []


def test_metrics_that_operations_name_exist() -> None:
    endings = ("_bucket", "_count", "_sum")
    known = {f"{PREFIX}{it.value.name}" for it in Metric}
    known |= {f"{PREFIX}{it.value.name}{end}" for it in Metric if it.value.kind is Kind.HISTOGRAM for end in endings}
    quoted = set(re.findall(rf"`({PREFIX}\w+)", operations()))
    assert quoted
    assert quoted <= known


def test_every_alert_is_in_the_table_and_has_its_section() -> None:
    groups: list[dict[str, Any]] = yaml.safe_load(RULES.read_text())["spec"]["groups"]
    alerts = [(rule["alert"], rule["labels"]["severity"]) for group in groups for rule in group["rules"]]
    table = re.findall(r"^\| \[(Spotshift\w+)\]\(#(\w+)\) \| (\w+) \|", operations(), re.MULTILINE)
    assert [(name, severity) for name, _, severity in table] == alerts
    sections = {it.text for it in markdown.read(OPERATIONS).headings}
    assert {name for name, _ in alerts} <= sections


SECTIONS = (
    "Roll back in one command",
    "Reasons",
    "Metrics, alerts and the dashboard",
    "Logs",
    "Sizing",
    "What a move does to open connections",
    "Troubleshooting",
    "It does not start",
    "It does nothing",
    "A move fails",
    "Alerts",
    "Uninstall",
)


@pytest.mark.parametrize("section", SECTIONS)
def test_operations_have_the_section(section: str) -> None:
    assert section in {it.text for it in markdown.read(OPERATIONS).headings}
