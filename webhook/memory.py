"""Decisions that were made before: pods of one template are created by the hundred, and get the same answer.

What a decision depends on is the view, the request and a few fields of the pod. While the view is the same and the
bytes of those fields are the same, so is the decision, and the check of its patch with it: the fields that a patch
can name are among them. The one thing that depends on the time as well is an open move, so nothing is remembered
while there is one, and nothing of a pod whose workload asks for a mix, where the next may get the other side. Not
safe from two threads; the worker has one.
"""

from typing import Final

import msgspec

from webhook.mutate import Decision
from webhook.reasons import Result
from webhook.review import Frame
from webhook.view import View

REMEMBERED: Final = 1024
"""Decisions; about one for each template that pods are being created from."""
KEY_LIMIT_BYTES: Final = 16 * 1024
"""Of what one decision is remembered by, so 16 MiB of them at most. Whoever may create a pod chooses how long its
annotations are, and the API server refuses those that are too long only after it has asked us.
"""
ANSWER_LIMIT_BYTES: Final = 16 * 1024
"""Of one answer that is remembered, for the same reason: the rule for spot joins each required term of a pod, so its
patch is many times as long as they are.
"""

_ABSENT: Final = msgspec.Raw()
_BETWEEN: Final = b"\xff"
"""Between the parts of a key: no text in UTF-8 has this byte, so where one part ends is never in doubt."""
Key = bytes


class Remembered(msgspec.Struct, frozen=True):
    """A decision, and what was made of it."""

    decision: Decision
    result: Result
    frame: Frame
    """The answer around the uid."""
    namespace: str


class Known(msgspec.Struct, frozen=True, gc=False):
    """A request whose decision is remembered."""

    uid: str
    dry_run: bool
    remembered: Remembered


class _Part(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """Everything of a request that `review` reads, as the bytes it came in; in the order in which API servers write
    it, which is the order that the decoder expects.
    """


class _Metadata(_Part, frozen=True):
    labels: msgspec.Raw = _ABSENT
    annotations: msgspec.Raw = _ABSENT
    owner_references: msgspec.Raw = _ABSENT


class _Spec(_Part, frozen=True):
    node_selector: msgspec.Raw = _ABSENT
    node_name: msgspec.Raw = _ABSENT
    affinity: msgspec.Raw = _ABSENT
    scheduler_name: msgspec.Raw = _ABSENT
    tolerations: msgspec.Raw = _ABSENT
    priority_class_name: msgspec.Raw = _ABSENT
    priority: msgspec.Raw = _ABSENT
    preemption_policy: msgspec.Raw = _ABSENT
    os: msgspec.Raw = _ABSENT


class _Object(_Part, frozen=True):
    metadata: _Metadata
    spec: _Spec


class _Request(_Part, frozen=True, kw_only=True):
    uid: str
    kind: msgspec.Raw
    resource: msgspec.Raw
    sub_resource: msgspec.Raw = _ABSENT
    namespace: msgspec.Raw = _ABSENT
    operation: msgspec.Raw
    object: _Object
    dry_run: bool | None = None


class _Review(_Part, frozen=True):
    kind: msgspec.Raw
    api_version: msgspec.Raw
    request: _Request


_DECODER: Final = msgspec.json.Decoder(_Review)


class Memory:
    """What was decided under one view; another one empties it."""

    def __init__(self) -> None:
        self._view: View | None = None
        self._decisions: dict[Key, Remembered] = {}
        self._asked: Key | None = None

    def recall(self, body: bytes, view: View) -> Known | None:
        """The request in this body, if one like it was decided before. Bytes that are no text are never recalled."""
        self._asked = None
        if view.migrations or not _is_text(body):
            return None
        try:
            review = _DECODER.decode(body)
        except (msgspec.DecodeError, RecursionError):  # whoever reads all of it knows what to say
            return None
        if view is not self._view:
            self._view = view
            self._decisions.clear()
        self._asked = key = _key(review)
        found = self._decisions.get(key)
        if found is None or not review.request.uid:
            return None
        return Known(review.request.uid, bool(review.request.dry_run), found)

    def keep(self, decision: Decision, frame: Frame, namespace: str) -> None:
        """Remember the decision on the body that was asked for last, and its answer."""
        if self._asked is None or len(self._asked) > KEY_LIMIT_BYTES or sum(map(len, frame)) > ANSWER_LIMIT_BYTES:
            return
        if len(self._decisions) >= REMEMBERED:
            self._decisions.clear()
        self._decisions[self._asked] = Remembered(decision, decision.result, frame, namespace)


def _is_text(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _key(review: _Review) -> Key:
    """Everything that a decision reads."""
    request = review.request
    metadata, spec = request.object.metadata, request.object.spec
    return _BETWEEN.join(
        (
            review.api_version,
            review.kind,
            request.kind,
            request.resource,
            request.operation,
            request.sub_resource,
            request.namespace,
            metadata.labels,
            metadata.annotations,
            metadata.owner_references,
            spec.node_name,
            spec.scheduler_name,
            spec.os,
            spec.node_selector,
            spec.affinity,
            spec.tolerations,
            spec.priority_class_name,
            spec.priority,
            spec.preemption_policy,
        )
    )
