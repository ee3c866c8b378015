"""Tiers and the real Priority plugin, which fills in a class before the webhook sees a pod and checks it after."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import yaml

from testbed import objects
from testbed.api import Api, Object, path
from testbed.waiting import eventually
from tests.integration.webhook.serving import Serving
from tests.unit.webhook.building import PREFIX

URGENT, LOW, ABSENT, MINE = "urgent", "low", "absent", "mine"
CLASSES: tuple[Object, ...] = (
    {"metadata": {"name": URGENT}, "value": 1000, "preemptionPolicy": "Never"},
    {"metadata": {"name": LOW}, "value": -100},
    {"metadata": {"name": MINE}, "value": 7},
)
SETTINGS = {
    "apiVersion": "spotshift.dev/v1alpha1",
    "kind": "Policy",
    "placement": {
        "criticalNamespaces": ["*"],
        "priorityClasses": {"critical": URGENT, "batch": LOW, "standard": ABSENT},
    },
}
MISSING = "tier standard: PriorityClass absent does not exist, so the pod keeps its priority"


@dataclass(frozen=True, slots=True)
class Priority:
    """The three fields of a pod that belong together."""

    name: str
    value: int
    preemption: str = "PreemptLowerPriority"


@dataclass(frozen=True, slots=True)
class Case:
    tier: str
    own: str
    """The class that the user chose."""
    gets: Priority | None
    """None is what every pod of the cluster gets."""
    warning: str = ""


CASES = {
    "a class that never pre-empts": Case("critical", "", Priority(URGENT, 1000, "Never")),
    "a class that may": Case("batch", "", Priority(LOW, -100)),
    "a class that is missing": Case("standard", "", None, MISSING),
    "a class of the user's": Case("batch", MINE, Priority(MINE, 7)),
    "the class of the tier, chosen by the user": Case("critical", URGENT, Priority(URGENT, 1000, "Never")),
}
DEFAULTS = {
    "no global default": Priority("", 0),
    "a global default": Priority("ordinary", 50),
    "a global default that never pre-empts": Priority("ordinary", 50, "Never"),
}


@pytest.fixture(params=DEFAULTS.values(), ids=list(DEFAULTS))
def ordinary(kube: Api, namespace: str, request: pytest.FixtureRequest) -> Iterator[Priority]:
    """What a pod gets that nobody says anything about; the API server knows it by now."""
    found: Priority = request.param
    classes = list(CLASSES)
    if found.name:
        default: Object = {"value": found.value, "preemptionPolicy": found.preemption, "globalDefault": True}
        classes.append({"metadata": {"name": found.name}, **default})
    for body in classes:
        kube.create("priorityclasses", body)
    eventually(
        lambda: priority(kube.create("pods", objects.pod("plain"), namespace, dry_run=True)),
        until=lambda given: given == found,
        what="the global default in force",
    )
    yield found
    for body in classes:
        kube.delete("priorityclasses", body["metadata"]["name"])


def priority(pod: Object) -> Priority:
    spec = pod["spec"]
    return Priority(spec.get("priorityClassName", ""), spec["priority"], spec["preemptionPolicy"])


def test_a_tier_brings_its_class(
    kube: Api, namespace: str, ordinary: Priority, webhook: Serving, subtests: pytest.Subtests
) -> None:
    (webhook.folder / "settings.yaml").write_text(yaml.safe_dump(SETTINGS))
    eventually(
        lambda: priority(kube.create("pods", said("batch", name="probe"), namespace, dry_run=True)),
        until=lambda given: given == Priority(LOW, -100),
        what="the settings in force",
    )
    for number, (name, case) in enumerate(CASES.items()):
        with subtests.test(name):
            pod = said(case.tier, name=f"pod-{number}", **({"priorityClassName": case.own} if case.own else {}))
            warning = created(kube, pod, namespace)
            stored = kube.get("pods", f"pod-{number}", namespace)
            assert priority(stored) == (case.gets or ordinary)
            assert warning == (f'299 - "{case.warning}"' if case.warning else "")


def said(tier: str, *, name: str, **spec: str) -> Object:
    return objects.pod(name, annotations={PREFIX + "tier": tier}, **spec)


def created(kube: Api, pod: Object, namespace: str) -> str:
    """Create a pod and return the warnings that come with it."""
    answer = kube._send("POST", path("pods", None, namespace), pod, "application/json", preload=True, timeout=30)
    return str(answer.headers.get("Warning", ""))
