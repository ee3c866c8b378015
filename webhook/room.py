"""Whether the annotations of a pod have room for ours, and what is left of a change where they have not.

An API server counts all keys and values together, after admission, and refuses the pod: then it would be our
annotations that cost somebody a pod. They are worth less than that.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from webhook.patch import Change
from webhook.pod import Pod
from webhook.reasons import Note

ANNOTATIONS_AT_MOST_BYTES: Final = 256 * 1024
"""TotalAnnotationSizeLimitB of k8s.io/apimachinery."""


def fits(pod: Pod, change: Change) -> bool:
    """Whether the API server takes the annotations that come out. Without ours in it, that is the user's matter."""
    if not change.annotations:
        return True
    kept = {key: value for key, value in pod.annotations.items() if key not in change.drop_annotations}
    return _size({**kept, **change.annotations}) <= ANNOTATIONS_AT_MOST_BYTES


def without_annotations(pod: Pod, change: Change) -> Change:
    """The change without its additions. What they would have replaced goes as well: it is of another move."""
    stale = tuple(key for key in change.annotations if key in pod.annotations)
    return msgspec.structs.replace(
        change,
        annotations={},
        drop_annotations=change.drop_annotations + stale,
        notes=(*change.notes, Note.ANNOTATIONS_FULL),
    )


def _size(annotations: Mapping[str, str]) -> int:
    return sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
