"""Processor time of one question, from its bytes to those of the answer, by the number of nodes in it."""

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from extender import answer, view
from extender.promises import Promises
from extender.view import NodeFacts, View
from policy.capacity import CapacityType
from policy.settings import Settings
from testbed import objects

REPEATED = 20
NAMES, KNOWN, NEW = "names", "whole nodes", "whole nodes that changed just now"


def measure() -> Iterator[tuple[str, float]]:
    """The best of some runs, in microseconds."""
    for form, sizes in ((NAMES, (100, 1000, 5000)), (KNOWN, (100, 800)), (NEW, (100, 800))):
        for size in sizes:
            body, seen = _body(form, size), _view(size)
            for verb, ask in (("filter", answer.to_filter), ("prioritize", answer.to_prioritize)):
                best = min(_timed(ask, body, seen) for _ in range(REPEATED))
                yield f"{verb}, {size} {form}", best * 1e6


def _timed(ask: Any, body: bytes, seen: View) -> float:
    now, promises = datetime.now(UTC), Promises()
    began = time.process_time()
    found = ask(body, seen, now, promises)
    spent = time.process_time() - began
    assert found.result is answer.Result.ANSWERED
    return spent


def _body(form: str, size: int) -> bytes:
    pod = objects.pod("web-1", annotations={"scheduler.alpha.kubernetes.io/spot": "avoid"})
    pod["metadata"]["namespace"] = "shop"
    if form == NAMES:
        return json.dumps({"Pod": pod, "NodeNames": [f"node-{number:05}" for number in range(size)]}).encode()
    nodes = [objects.node(f"node-{number:05}", spot=number % 2 == 0) for number in range(size)]
    for node in nodes:
        node["metadata"]["resourceVersion"] = "1" if form == KNOWN else "2"
    return json.dumps({"Pod": pod, "Nodes": {"items": nodes}}).encode()


def _view(size: int) -> View:
    facts = {
        f"node-{number:05}": NodeFacts(CapacityType.SPOT if number % 2 else CapacityType.ON_DEMAND, version="1")
        for number in range(size)
    }
    return replace(view.empty(Settings()), nodes=facts, loads=dict.fromkeys(facts, 0.4))
