"""A number that follows a picture: made once from the state, then kept by what is taken and put.   Pure.

Aims are asked after every booking; counting all pods of a workload each time would cost its replicas squared.
"""

from __future__ import annotations

from collections.abc import Callable

from descheduler.picture import Change, Picture


class Followed:
    """`begin` counts in the state, `weigh` says what one change adds."""

    def __init__(self, begin: Callable[[], int], weigh: Callable[[Change], int]) -> None:
        self._begin = begin
        self._weigh = weigh
        self._picture: Picture | None = None
        self._total = self._seen = 0

    def of(self, picture: Picture) -> int:
        """The number in this picture."""
        if picture is not self._picture:
            self._picture, self._total, self._seen = picture, self._begin(), 0
        for change in picture.changes[self._seen :]:
            self._total += self._weigh(change)
        self._seen = len(picture.changes)
        return self._total
