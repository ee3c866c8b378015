"""Requests that get through in the end: users repeat what was lost, and believe a plain no."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import urllib3

from testbed.api import ApiError
from testbed.waiting import patient

INSIST_SECONDS: Final = 90.0


class Refused(Exception):
    """The API said no to something that users may do."""


@dataclass(frozen=True, slots=True)
class Asking:
    """Somebody who asks again."""

    rest: Callable[[], object]
    """What is done between two requests: kubelets and watchers go on meanwhile."""

    def insist(self, ask: Callable[[], Any], *, passing: int | tuple[int, ...] = ()) -> Any:
        """Until the answer is yes; `passing` are answers that mean it is so already."""
        fine = (passing,) if isinstance(passing, int) else passing
        deadline = time.monotonic() + patient(INSIST_SECONDS)
        while True:
            try:
                return ask()
            except ApiError as refusal:
                if refusal.status in fine:
                    return None
                if refusal.status < 500 and refusal.status not in {409, 429}:
                    raise Refused(str(refusal)) from None
                last: Exception = refusal
            except urllib3.exceptions.HTTPError as lost:
                last = lost
            if time.monotonic() > deadline:
                raise Refused(f"no answer for {INSIST_SECONDS:g} s: {last}")
            self.rest()

    def once(self, holds: Callable[[], bool]) -> None:
        """Wait until it holds."""
        deadline = time.monotonic() + patient(INSIST_SECONDS)
        while not self.insist(holds):
            if time.monotonic() > deadline:
                raise Refused(f"for {INSIST_SECONDS:g} s it was as the product had made it for a move")
            self.rest()
