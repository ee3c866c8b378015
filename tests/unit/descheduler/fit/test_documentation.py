"""The documentation knows the codes, and no others."""

import re
from pathlib import Path

from descheduler.fit import FitCode

PAGE = Path(__file__).resolve().parents[4] / "docs" / "fit.md"


def test_every_code_has_its_row() -> None:
    rows = re.findall(r"^\| `([A-Z_]+)` \|", PAGE.read_text(), flags=re.MULTILINE)
    assert rows == [code.value for code in FitCode]
