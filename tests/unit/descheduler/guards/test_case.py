"""What a pod asks for, the short way and the long way."""

from typing import Any

import pytest

from descheduler.guards import Context
from descheduler.guards.case import Case
from policy import keys, placement
from policy.settings import Placement, Settings
from policy.values import Rescheduling
from tests.unit.descheduler import build
from tests.unit.descheduler.scenes import NOW, PREFIX

SETTINGS = Settings(placement=Placement(rescheduling=Rescheduling.DISABLED, spot_percentage=50))


@pytest.mark.parametrize("namespace", ["default", "kube-system", "kube-public"])
@pytest.mark.parametrize(
    ("pod", "above"),
    [
        pytest.param({}, {}, id="nothing said"),
        pytest.param({"labels": {f"{PREFIX}managed": "true"}}, {}, id="our mark says nothing"),
        pytest.param({"labels": {f"{PREFIX}rescheduling": "enabled"}}, {}, id="a label of the pod"),
        pytest.param({"annotations": {f"{PREFIX}tier": "batch"}}, {}, id="an annotation of the pod"),
        pytest.param({}, {"annotations": {f"{PREFIX}spot": "avoid"}}, id="of its namespace"),
    ],
)
def test_the_short_way_says_the_same(namespace: str, pod: dict[str, Any], above: dict[str, Any]) -> None:
    found = build.pod("p", namespace=namespace, **pod)
    space = build.thing("Namespace", namespace, "", metadata=above)
    context = Context(build.state(found, space), SETTINGS, keys.under(), NOW, {})
    subject = placement.Subject(namespace_name=namespace, pod=found.metadata, namespace=space.metadata)
    assert Case(found, context).decision == placement.decide(subject, keys=keys.under(), settings=SETTINGS)
