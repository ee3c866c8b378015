from pathlib import Path

import msgspec
import pytest

from policy import settings_doc
from policy.settings import Settings

PAGE = Path(__file__).parents[3] / "docs" / "configuration.md"
GROUPS = list(settings_doc._groups("", Settings))


def test_the_page_is_the_one_the_settings_make() -> None:
    assert PAGE.read_text() == settings_doc.markdown()


@pytest.mark.parametrize(("path", "kind"), GROUPS, ids=[path or "top" for path, _ in GROUPS])
def test_every_setting_says_what_it_is_for(path: str, kind: type[msgspec.Struct]) -> None:
    documented = settings_doc.field_docs(kind)
    assert [name for name in kind.__struct_fields__ if not documented.get(name)] == []


def test_every_group_has_a_section() -> None:
    page = settings_doc.markdown()
    assert all(f"## `{path}`" in page for path, _ in GROUPS if path)
