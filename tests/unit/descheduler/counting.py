"""How often a part was asked: the cost of a plan in something that does not depend on the machine."""

from typing import Any

import pytest


def calls(patch: pytest.MonkeyPatch, owner: type, name: str) -> list[tuple[Any, ...]]:
    """The arguments of every call of a method from now on, without `self`. It does what it always does."""
    real, seen = getattr(owner, name), list[tuple[Any, ...]]()

    def counted(self: Any, *args: Any, **named: Any) -> Any:
        seen.append(args)
        return real(self, *args, **named)

    patch.setattr(owner, name, counted)
    return seen
