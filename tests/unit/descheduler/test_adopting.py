"""What an answer shows is put into the state, unless the state is newer."""

import pytest

from cluster.objects import Deployment
from descheduler.migration import migrator
from descheduler.migration.outcomes import Done, Shown
from policy import keys
from tests.unit.descheduler import build

MOVING = keys.under().moving


@pytest.mark.parametrize(
    ("version", "adopted"), [("6", False), ("7", False), ("8", True)], ids=["older", "same", "newer"]
)
def test_labels_of_a_workload(version: str, adopted: bool) -> None:
    """The answer that took the label away may be taken in when the label of the next move is there already."""
    web = build.thing("Deployment", "web", metadata={"resourceVersion": "7", "labels": {MOVING: "m-2"}})
    state = build.state(web)
    migrator.adopt(Done(workload=Shown(web.metadata.uid, version, {})), state)
    known = state.controllers[web.metadata.uid]
    assert (MOVING in known.labels) == (not adopted)
    assert isinstance(known.object, Deployment)
    assert known.object.metadata.resource_version == (version if adopted else "7")


@pytest.mark.parametrize(("version", "replicas"), [("6", 2), ("7", 2), ("8", 1)], ids=["older", "same", "newer"])
def test_replicas_of_a_workload(version: str, replicas: int) -> None:
    """Whoever lowered the number, lost the lead and has it again must not believe in that number for ever."""
    web = build.thing("Deployment", "web", metadata={"resourceVersion": "7"}, spec={"replicas": 2})
    state = build.state(web)
    migrator.adopt(Done(workload=Shown(web.metadata.uid, version, replicas=1)), state)
    assert state.controllers[web.metadata.uid].replicas == replicas
