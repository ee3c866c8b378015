"""The wire: bytes of an AdmissionReview to a `Review`, and a decision back to bytes.

Whoever reaches the port can send bytes, so nothing here trusts them: what is not a review of a pod becomes a
`BadRequest`, a value like any other. An answer always allows; this module has no way to write another one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import msgspec

from webhook.pod import Metadata, Pod, Spec

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"
PATCH_TYPE: Final = "JSONPatch"

# The API server cuts warnings to 256 characters once all of a request's exceed 4096, and other webhooks warn
# too: half of that is ours, and every single one is short enough never to be cut.
WARNING_CHARACTERS: Final = 256
WARNINGS_CHARACTERS: Final = 2048


@dataclass(frozen=True, slots=True)
class BadRequest:
    """Not a review of a pod: the HTTP status and why. The message quotes types and places, never values."""

    status: int
    message: str


class Review(msgspec.Struct, frozen=True, kw_only=True):
    """One request."""

    uid: str
    namespace: str
    operation: str
    subresource: str
    dry_run: bool
    """Makes no difference: a dry run gets the same patch, and there is no side effect to leave out."""
    pod: Pod | None
    """None for operations that we leave alone."""
    body: bytes
    """What was received, for the check of the patch."""


class _Part(msgspec.Struct, frozen=True, rename="camel"):
    """A part of the wire format."""


class _Kind(_Part, frozen=True):
    group: str = ""
    kind: str = ""


class _Resource(_Part, frozen=True):
    group: str = ""
    resource: str = ""


class _Object(_Part, frozen=True):
    metadata: Metadata | None = None
    spec: Spec | None = None


class _Request(_Part, frozen=True):
    uid: str
    kind: _Kind
    resource: _Resource
    operation: str
    sub_resource: str | None = None
    namespace: str | None = None
    dry_run: bool | None = None
    object: _Object | None = None


class _Incoming(_Part, frozen=True):
    api_version: str
    kind: str
    request: _Request | None = None


class _Response(_Part, frozen=True):
    uid: str
    allowed: Literal[True] = True
    patch: bytes | msgspec.UnsetType = msgspec.UNSET
    patch_type: str | msgspec.UnsetType = msgspec.UNSET
    warnings: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    audit_annotations: Mapping[str, str] | msgspec.UnsetType = msgspec.UNSET


class _Outgoing(_Part, frozen=True):
    api_version: str
    kind: str
    response: _Response


_DECODER: Final = msgspec.json.Decoder(_Incoming)
_ENCODER: Final = msgspec.json.Encoder()
_UID: Final = b'"uid":'
"""The first field of a response, so its first occurrence is the one."""


class Frame(NamedTuple):
    """An answer without its uid."""

    before: bytes
    after: bytes


def parse(body: bytes) -> Review | BadRequest:
    """The request in these bytes."""
    try:
        body.decode()  # the decoder skips what nobody reads, and with it bytes that are no text
        incoming = _DECODER.decode(body)
    except RecursionError:
        return BadRequest(400, "the body is nested too deeply")
    except UnicodeDecodeError:
        return BadRequest(400, "the body is not UTF-8")
    except msgspec.DecodeError as error:  # names a type and a place, no value
        return BadRequest(400, f"the body is not an {KIND}: {error}")
    if (incoming.api_version, incoming.kind) != (API_VERSION, KIND):
        return BadRequest(400, f"the body must be {API_VERSION} {KIND}")
    request = incoming.request
    if request is None or not request.uid:
        return BadRequest(400, "the review has no request with a uid")
    return _review(request, body)


def allowed(uid: str, *, warnings: Iterable[str] = (), audit: Mapping[str, str] | None = None) -> bytes:
    """An answer that lets the pod through as it is."""
    return _encoded(_Response(uid, warnings=_bounded(warnings), audit_annotations=audit or msgspec.UNSET))


def patched(uid: str, patch: bytes, *, warnings: Iterable[str] = (), audit: Mapping[str, str] | None = None) -> bytes:
    """An answer that lets the pod through with a patch; `patch` is its JSON, encoded to base64 here."""
    response = _Response(
        uid,
        patch=patch,
        patch_type=PATCH_TYPE,  # the API server refuses an answer that has only one of the two
        warnings=_bounded(warnings),
        audit_annotations=audit or msgspec.UNSET,
    )
    return _encoded(response)


def frame(sent: bytes, uid: str) -> Frame:
    """An answer to this uid, cut open for others: encoding what they share costs more than their decision."""
    before, around, after = sent.partition(_UID + _ENCODER.encode(uid))
    if not around:
        raise ValueError("not an answer to this uid")
    return Frame(before + _UID, after)


def framed(frame: Frame, uid: str) -> bytes:
    """The same answer to another uid."""
    return frame.before + _ENCODER.encode(uid) + frame.after


def _review(request: _Request, body: bytes) -> Review | BadRequest:
    if (request.resource.group, request.resource.resource) != ("", "pods"):
        return BadRequest(400, "the review is not about pods")
    pod: Pod | None = None
    if request.operation == "CREATE" and not request.sub_resource:
        found = request.object or _Object()
        if (request.kind.group, request.kind.kind) != ("", "Pod"):
            return BadRequest(400, "the review is not about a Pod")
        if found.metadata is None or found.spec is None:
            return BadRequest(400, "the review has no pod with metadata and spec")
        pod = Pod(found.metadata, found.spec)
    return Review(
        uid=request.uid,
        namespace=request.namespace or "",
        operation=request.operation,
        subresource=request.sub_resource or "",
        dry_run=bool(request.dry_run),
        pod=pod,
        body=body,
    )


def _encoded(response: _Response) -> bytes:
    return _ENCODER.encode(_Outgoing(API_VERSION, KIND, response))


def _bounded(warnings: Iterable[str]) -> tuple[str, ...] | msgspec.UnsetType:
    """Each warning once and short, and not more of them than fit."""
    left, found = WARNINGS_CHARACTERS, dict[str, None]()
    for warning in warnings:
        short = warning if len(warning) <= WARNING_CHARACTERS else warning[: WARNING_CHARACTERS - 3] + "..."
        if short not in found and len(short) <= left:
            found[short] = None
            left -= len(short)
    return tuple(found) or msgspec.UNSET
