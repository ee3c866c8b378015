"""What the log tells of a pod that was admitted, when somebody asks to see every one.   Pure.

Read from the request once more: an answer that was remembered knows nothing of the pod it is for, and nobody else
should pay for a line that is hardly ever written.
"""

from collections.abc import Iterator
from datetime import datetime

from webhook import migration, review
from webhook.handle import Outcome
from webhook.reasons import Note
from webhook.review import BadRequest
from webhook.view import View


def fields(body: bytes, view: View, outcome: Outcome, now: datetime) -> Iterator[dict[str, object]]:
    """By the names of the catalogue; nothing if there was no pod to admit."""
    parsed = review.parse(body)
    if isinstance(parsed, BadRequest) or parsed.pod is None:
        return
    pod, owner = parsed.pod, parsed.pod.controller
    moves = migration.matching(pod, parsed.namespace, view, now) if Note.HINTED in outcome.notes else ()
    yield {
        "namespace": parsed.namespace,
        "pod": pod.name or None,
        "workload": f"{owner.kind}/{owner.name}" if owner is not None else None,
        "preferredNode": ",".join(dict.fromkeys(it.target for it in moves if it.target)) or None,
        "avoidNode": ",".join(dict.fromkeys(it.source for it in moves if it.source)) or None,
        "count": outcome.operations,
    }
