"""What the apiserver was asked, by whom, and what it said: its audit log, line by line."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

ACCOUNT = "system:serviceaccount:"


@dataclass(frozen=True, slots=True)
class Request:
    """One line."""

    user: str
    agent: str
    """The program, as it calls itself."""
    verb: str
    resource: str
    """With its API group and subresource: `pods/eviction`, `deployments.apps`."""
    namespace: str
    name: str
    code: int
    at: datetime
    """When it was answered; of a watch, when it began."""
    decision: str
    """Of the authorizer: `allow` or `forbid`."""


def requests(log: Path, user: str) -> Iterator[Request]:
    """Everything that one user asked for. A line that is still being written is left out."""
    return (it for it in matching(log, user) if it.user == user)


def matching(log: Path, text: str) -> Iterator[Request]:
    """Requests whose line holds a text: a log is long, and looking costs less than decoding."""
    with log.open() as lines:
        for line in lines:
            if text in line and line.endswith("\n"):
                found = json.loads(line)
                if not _is_end_of_watch(found):
                    yield _request(found)


def _is_end_of_watch(found: dict[str, Any]) -> bool:
    """A watch that was answered has a line for its beginning, too."""
    answered = int(found.get("responseStatus", {}).get("code", 0)) < 400
    return answered and (found["verb"], found["stage"]) == ("watch", "ResponseComplete")


def of_account(namespace: str, name: str) -> str:
    """The user that a ServiceAccount is."""
    return f"{ACCOUNT}{namespace}:{name}"


def resource(ref: dict[str, Any]) -> str:
    """The name of a resource, with its group and subresource."""
    group = f".{ref['apiGroup']}" if ref.get("apiGroup") else ""
    part = f"/{ref['subresource']}" if ref.get("subresource") else ""
    return f"{ref.get('resource', '')}{group}{part}"


def _request(found: dict[str, Any]) -> Request:
    ref: dict[str, Any] = found.get("objectRef", {})
    return Request(
        found["user"]["username"],
        found.get("userAgent", ""),
        found["verb"],
        resource(ref),
        ref.get("namespace", ""),
        ref.get("name", ""),
        found.get("responseStatus", {}).get("code", 0),
        datetime.fromisoformat(found["stageTimestamp"]),
        found.get("annotations", {}).get("authorization.k8s.io/decision", ""),
    )
