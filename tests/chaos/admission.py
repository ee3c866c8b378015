"""Every pod that is created is shown to the webhook and answered, unless nobody is there to answer.   Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

WEBHOOK: Final = "pods.webhook.spotshift.dev"


def _counter(name: str) -> re.Pattern[str]:
    metric = f"apiserver_admission_webhook_{name}"
    return re.compile(rf'^{metric}\{{[^}}]*name="{re.escape(WEBHOOK)}"[^}}]*\}} (\S+)$', re.MULTILINE)


ASKED: Final = _counter("request_total")
FAILED_OPEN: Final = _counter("fail_open_count")
REJECTED: Final = _counter("rejection_count")


@dataclass(slots=True)
class Admission:
    """Reads the apiserver's own metrics every now and then."""

    excused: Sequence[tuple[float, float]]
    """When nobody may have been there: from, to."""
    asked: int = 0
    missed: int = 0
    """Pods that were let through without an answer while nobody was there."""
    _before: dict[re.Pattern[str], float] = field(default_factory=dict)
    _at: float | None = None

    def see(self, page: str, now: float) -> Iterator[str]:
        """One page of metrics, as it was at that time."""
        since, self._at = self._at or now, now
        self.asked += int(self._more(ASKED, page))
        rejected = self._more(REJECTED, page)
        if rejected:
            yield f"the webhook kept {rejected:g} pods from being created"
        opened = self._more(FAILED_OPEN, page)
        if opened and any(begin < now and end > since for begin, end in self.excused):
            self.missed += int(opened)
        elif opened:
            yield f"{opened:g} pods were created without an answer of the webhook, and it was there"

    def _more(self, counter: re.Pattern[str], page: str) -> float:
        """Since the last page; an apiserver that was restarted counts from nothing."""
        count, before = sum(map(float, counter.findall(page))), self._before.get(counter, 0.0)
        self._before[counter] = count
        return count - before if count >= before else count
