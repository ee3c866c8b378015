"""What an answer shows is put into the state, unless the state is newer."""

import pytest

from cluster.objects import Deployment
from descheduler.migration import migrator
from descheduler.migration.executor import Done, Labelled
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
    migrator.adopt(Done(workload=Labelled(web.metadata.uid, version, {})), state)
    known = state.controllers[web.metadata.uid]
    assert (MOVING in known.labels) == (not adopted)
    assert isinstance(known.object, Deployment)
    assert known.object.metadata.resource_version == (version if adopted else "7")
