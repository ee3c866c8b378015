"""The audit log is followed line by line, also when it is begun anew."""

import json
from pathlib import Path
from typing import Any

from tests.chaos.doing import DEEDS
from tests.chaos.model import Kind
from tests.chaos.watching import Audit


def line(name: str, **more: Any) -> str:
    told = {
        "stage": "ResponseComplete",
        "requestReceivedTimestamp": "2026-01-01T00:00:01.500000Z",
        "verb": "create",
        "user": {
            "username": "system:serviceaccount:spotshift-system:spotshift-descheduler",
            "extra": {"authentication.kubernetes.io/credential-id": ["JTI=abc"]},
        },
        "objectRef": {"resource": "pods", "subresource": "eviction", "namespace": "chaos", "name": name},
        "responseStatus": {"code": 201},
    }
    return json.dumps({**told, **more}) + "\n"


def names(audit: Audit) -> list[str]:
    return [it.name for it in audit.new()]


def test_the_audit_log_is_followed(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    log.write_text(line("a") + line("other", user={"username": "admin"}) + line("begun", stage="ResponseStarted"))
    audit = Audit(log)
    (request,) = audit.new()
    assert (request.account, request.credential, request.verb) == ("spotshift-descheduler", "abc", "create")
    assert (request.resource, request.name, request.code, request.writes) == ("pods/eviction", "a", 201, True)
    assert request.at % 60 == 1.5
    whole = line("b")
    with log.open("a") as more:
        more.write(whole[:20])
    assert names(audit) == [], "a line that is still being written"
    with log.open("a") as more:
        more.write(whole[20:])
    assert names(audit) == ["b"]
    log.write_text(line("c"))
    assert names(audit) == ["c"], "begun anew"


def test_everything_that_can_be_drawn_can_be_done() -> None:
    assert set(DEEDS) == set(Kind)
