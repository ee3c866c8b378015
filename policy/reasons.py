"""The one value that says why a piece of user input was not taken."""

from dataclasses import dataclass

_SHOWN_CHARACTERS = 80  # a message fits one line of `kubectl describe`; the object itself holds the rest


@dataclass(frozen=True, slots=True)
class Malformed:
    """A key with a value that means nothing to us: it is ignored, or taken as a no, and its owner is told."""

    key: str
    value: str
    accepted: str

    def __str__(self) -> str:
        """One sentence for an admission warning or an Event."""
        return f"{self.key}: {shorten(self.value)!r} is not accepted, use {self.accepted}"


def shorten(text: str, *, limit: int = _SHOWN_CHARACTERS) -> str:
    """Cut what a message quotes, so that a huge annotation cannot flood logs and Events."""
    return text if len(text) <= limit else text[: limit - 3] + "..."
