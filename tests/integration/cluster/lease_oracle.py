"""What must hold of an election, checked from the diaries of all candidates."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

GAP_SECONDS = 0.05
"""Candidates ask every 4 ms; where the answers are further apart, nobody said anything about the time between."""


@dataclass(frozen=True, slots=True)
class Led:
    """A time in which a candidate said, whenever it asked, that it leads."""

    who: str
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Diary:
    """What one candidate wrote."""

    who: str
    lines: tuple[tuple[str, ...], ...]

    def led(self) -> list[Led]:
        """Its times of leading."""
        found: list[Led] = []
        for mark, at in ((line[0], float(line[1])) for line in self.lines if line[0] in {"P", "N"}):
            if mark == "N":
                continue
            last = found[-1] if found else None
            if last is not None and at - last.end <= GAP_SECONDS and not self._denied(last.end, at):
                found[-1] = Led(self.who, last.start, at)
            else:
                found.append(Led(self.who, at, at))
        return found

    def leads_since(self, at: float) -> float | None:
        """The first time after `at` at which it said that it leads."""
        return next((float(line[1]) for line in self.lines if line[0] == "P" and float(line[1]) > at), None)

    def _denied(self, start: float, end: float) -> bool:
        return any(line[0] == "N" and start < float(line[1]) < end for line in self.lines)


def read(path: Path) -> Diary:
    """The diary as far as it got; a kill may cut the last line."""
    text = path.read_text(errors="replace") if path.exists() else ""
    whole = text[: text.rfind("\n") + 1]
    lines = (tuple(line.split(maxsplit=3)) for line in whole.splitlines() if not line.startswith("L"))
    return Diary(path.name, tuple(lines))


def overlaps(diaries: Iterable[Diary]) -> list[str]:
    """Every pair of candidates that led at the same time."""
    times = sorted((led for diary in diaries for led in diary.led()), key=lambda led: led.start)
    return [
        f"{one.who} until {one.end:.6f} and {other.who} from {other.start:.6f} (by {one.end - other.start:.6f} s)"
        for one, other in _neighbours(times)
        if other.start <= one.end
    ]


def closest(diaries: Iterable[Diary]) -> float:
    """The shortest time between the end of one candidate's leading and the start of another's."""
    times = sorted((led for diary in diaries for led in diary.led()), key=lambda led: led.start)
    return min((other.start - one.end for one, other in _neighbours(times)), default=float("inf"))


def _neighbours(times: Sequence[Led]) -> Iterable[tuple[Led, Led]]:
    """Each time with the latest-ending earlier time of another candidate."""
    latest: dict[str, Led] = {}
    for led in times:
        others = [earlier for who, earlier in latest.items() if who != led.who]
        if others:
            yield max(others, key=lambda earlier: earlier.end), led
        known = latest.get(led.who)
        if known is None or known.end < led.end:
            latest[led.who] = led


def broken_terms(diary: Diary, *, killed: bool) -> list[str]:
    """Terms whose begin and end were not each told exactly once, or that overlapped within one process."""
    problems: list[str] = []
    marks = [(line[0], int(line[1])) for line in diary.lines if line[0] in {"S", "E", "X"}]
    terms = sorted({number for _, number in marks})
    for number in terms:
        told = [mark for mark, of in marks if of == number]
        complete = sorted(told) == ["E", "S", "X"] and told[0] == "S"
        if not complete and not (killed and number == terms[-1]):
            problems.append(f"{diary.who}: term {number} was told as {told}")
    begun = [index for index, (mark, _) in enumerate(marks) if mark == "S"]
    for index in begun[1:]:
        open_before = sum(mark == "S" for mark, _ in marks[:index]) - sum(mark == "E" for mark, _ in marks[:index])
        if open_before:
            problems.append(f"{diary.who}: a term began while the work of another ran")
    return problems
