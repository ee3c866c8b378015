"""The webhooks that are compared do the same to a pod, and the load gets through to them.

wrk is left to the benchmark itself: the tests need nothing but Python and Go.
"""

import base64
import json
from pathlib import Path
from typing import Any

import jsonpatch
import pytest

from bench.webhook import contenders, creations, load, review, usage
from testbed import objects
from testbed.bed import ControlPlane
from testbed.pytest_plugin import Nodes
from testbed.waiting import eventually

CORE = 0


def changed(answer: bytes, pod: dict[str, Any]) -> Any:
    """The pod as the answer makes it."""
    response = json.loads(answer)["response"]
    assert (response["allowed"], response["patchType"]) == (True, "JSONPatch")
    return jsonpatch.apply_patch(pod, json.loads(base64.b64decode(response["patch"])))


@pytest.mark.timeout(1500)  # the first run on a machine compiles the other two
def test_all_three_do_the_same_and_can_be_measured(
    cluster: ControlPlane, namespace: str, nodes: Nodes, tmp_path: Path
) -> None:
    nodes.add([objects.node(f"{namespace}-tainted", spot=True, taints=[review.TAINT])])
    body = tmp_path / "review.json"
    body.write_bytes(review.body(namespace))
    program = contenders.programs() / "load"
    sent = json.loads(review.body(namespace, "0"))["request"]["object"]
    with contenders.running(cluster, tmp_path, namespace=namespace, core=CORE) as running:
        made = {}
        for each in running:
            status, answer = contenders.ask(each, review.body(namespace, "0"))
            assert status == 200
            made[each.name] = changed(answer, sent)
            assert made[each.name] != sent
            before = usage.of(each.pid)
            flood = load.turns(program, {each.name: each.url}, body, "-connections=4", "-seconds=1", core=CORE)
            assert (flood[each.name].requests > 10, flood[each.name].failed) == (True, 0), each.name
            assert (usage.of(each.pid) - before).seconds > 0
            assert usage.resident_mib(each.pid) > 1
        assert made[contenders.IDIOMATIC] == made[contenders.LEAN] == made[contenders.OURS]
        to = {each.name: each.url for each in running}
        paced = load.turns(program, to, body, "-rate=60", "-connections=3", "-seconds=1", core=CORE)
        assert {name: it.failed for name, it in paced.items()} == dict.fromkeys(to, 0)
        assert all(it.requests == pytest.approx(20, abs=5) for it in paced.values())
        with creations.registered(cluster, running) as namespaces:
            for each in running:
                eventually(
                    lambda where=namespaces[each.name]: creations.is_called(cluster, where),  # type: ignore[misc]
                    what=f"a pod changed by {each.name}",
                )
            assert not creations.is_called(cluster, namespaces[creations.NONE])
            created = creations.measure(cluster, namespaces, program, tmp_path, seconds=1, core=CORE)
        assert {name: it.failed for name, it in created.items()} == dict.fromkeys(namespaces, 0)
        assert all(it.requests > 0 for it in created.values())
