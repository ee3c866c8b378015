"""`python -m policy`."""

from pathlib import Path

import pytest

from policy import settings_doc
from policy.__main__ import main
from policy.settings import API_VERSION

HEAD = f"apiVersion: {API_VERSION}\nkind: Policy\n"


def test_prints_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert capsys.readouterr().out == settings_doc.markdown()


def test_a_good_file_is_printed_with_its_defaults(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "policy.yaml").write_text(f"{HEAD}cpuThreshold: 70\n")
    assert main([str(tmp_path / "policy.yaml")]) == 0
    printed = capsys.readouterr().out
    assert "cpuThreshold: 70.0\nmemoryThreshold: 80.0\n" in printed


def test_all_mistakes_of_a_bad_file_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "policy.yaml").write_text(f"{HEAD}cpuTreshold: 70\nmode: enforced\n")
    assert main([str(tmp_path / "policy.yaml")]) == 1
    first, second = capsys.readouterr().err.splitlines()
    assert "did you mean 'cpuThreshold'?" in first
    assert second == "error: mode: 'enforced' is not accepted, use 'enforce' or 'observe' (did you mean 'enforce'?)"


def test_a_missing_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "absent")]) == 1
    assert capsys.readouterr().err == f"error: {tmp_path / 'absent'}: No such file or directory\n"


CONFIG_MAP = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: spotshift-settings, namespace: spotshift-system}
data:
  settings.yaml: |
    apiVersion: spotshift.dev/v1alpha1
    kind: Policy
"""
NOT_SETTINGS = {
    "the whole ConfigMap": (
        CONFIG_MAP,
        "error: kind: 'ConfigMap' is not accepted, use the text that stands in it under settings.yaml, which",
    ),
    "a quote that is not closed": (
        f'{HEAD}mode: "observe\n',
        "error: document: broken YAML at line 4, column 1 (found unexpected end of stream while scanning a quoted ",
    ),
    "a tab": (f"{HEAD}\tmode: observe\n", "error: document: broken YAML at line 3, column 1 (found character '\\t'"),
    "nothing": ("", "error: document: an empty document is not accepted, use a mapping with kind: Policy"),
}


@pytest.mark.parametrize(("text", "told"), NOT_SETTINGS.values(), ids=NOT_SETTINGS.keys())
def test_what_is_no_settings_file_is_told_in_one_line(
    text: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "policy.yaml").write_text(text)
    assert main([str(tmp_path / "policy.yaml")]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(told)


def test_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert (main(["a", "b"]), main(["--help"])) == (2, 0)
    said = capsys.readouterr()
    assert (said.err, "python -m policy FILE" in said.out) == ("error: one FILE at a time, see --help\n", True)


def test_the_short_table_is_written_between_its_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{settings_doc.BEGIN}\nold\n{settings_doc.END}\nafter\n")
    assert main(["--into", str(page)]) == 0
    assert page.read_text() == f"before\n{settings_doc.BEGIN}\n{settings_doc.overview()}{settings_doc.END}\nafter\n"
    assert "| `cpuThreshold` | `80` | " in page.read_text()
    assert "| `limits` | [several](docs/configuration.md#limits) | " in page.read_text()
