"""Mistakes in settings as values: where, what, and what would have been accepted."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from policy.reasons import shorten

_SHOWN_CHARACTERS = 160  # room for a parser's complaint with its line
_SHOWN_NAMES = 3  # enough to see how they are made


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing wrong with a settings document."""

    path: str
    """Field path such as `windows[0].from`; empty for the document itself."""
    value: str
    """What stands there, as text."""
    accepted: str
    """What may stand there."""
    hint: str = ""
    """What was probably meant."""

    def __str__(self) -> str:
        """One line for a person."""
        place = self.path or "document"
        value = shorten(self.value, limit=_SHOWN_CHARACTERS)
        hint = f" ({self.hint})" if self.hint else ""
        return f"{place}: {value} is not accepted, use {self.accepted}{hint}"


class InvalidSettings(ValueError):
    """A settings document with all its mistakes."""

    def __init__(self, mistakes: Iterable[Mistake]) -> None:
        """One message with a line for each."""
        self.mistakes = tuple(mistakes)
        super().__init__("\n".join(str(mistake) for mistake in self.mistakes))


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint, if a known word is near; case does not count, since that is the most common slip."""
    by_folded = {candidate.casefold(): candidate for candidate in known}
    near = difflib.get_close_matches(word.casefold(), by_folded, n=1, cutoff=0.6)
    return f"did you mean '{by_folded[near[0]]}'?" if near else ""


def names_like(word: str, known: Iterable[str]) -> str:
    """A hint for names that controllers make longer than the one people know: those that begin with the word, which
    may be that of a workload, else the nearest.
    """
    names = sorted(known)
    longer = [it for it in names if word and it.startswith(word)]
    if not longer:
        return did_you_mean(word, names)
    more = len(longer) - _SHOWN_NAMES
    return f"did you mean {', '.join(longer[:_SHOWN_NAMES])}{f', or one of {more} more' if more > 0 else ''}?"


def at(path: str, name: str | int) -> str:
    """Path of a field or of an item."""
    if isinstance(name, int):
        return f"{path}[{name}]"
    return f"{path}.{name}" if path else name
