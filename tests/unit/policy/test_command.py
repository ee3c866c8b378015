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


def test_the_short_table_is_written_between_its_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{settings_doc.BEGIN}\nold\n{settings_doc.END}\nafter\n")
    assert main(["--into", str(page)]) == 0
    assert page.read_text() == f"before\n{settings_doc.BEGIN}\n{settings_doc.overview()}{settings_doc.END}\nafter\n"
    assert "| `cpuThreshold` | `80` | " in page.read_text()
    assert "| `limits` | [several](docs/configuration.md#limits) | " in page.read_text()
