"""What `check` says about the webhook when a pod that is tried comes back without its label, or with it."""

import pytest

from console.health import admission
from console.health.finding import Level
from console.installation import InForce
from policy import keys
from policy.settings import Mode, Settings
from tests.unit.cluster import fake_api
from tests.unit.cluster.fake_api import Answer, Seen

SYSTEM = "spotshift-system"
ENFORCING = Settings(mode=Mode.ENFORCE)
OBSERVING = Settings(mode=Mode.OBSERVE)
LABELLED = {keys.under().managed: "true"}
ANSWERS: dict[str, tuple[Settings, str, dict[str, str], Level, str]] = {
    "answers": (ENFORCING, "shop", LABELLED, Level.OK, "answers: a pod in namespace shop would be looked after"),
    "silent": (
        ENFORCING,
        "shop",
        {},
        Level.FAILED,
        "gives no answer: a pod in namespace shop would be created without its label",
    ),
    "observing": (
        OBSERVING,
        "shop",
        {},
        Level.WARNING,
        "cannot be tried: the mode is observe, in which pods are left as they are",
    ),
    "observing, but not heard of it yet": (
        OBSERVING,
        "shop",
        LABELLED,
        Level.OK,
        "answers: a pod in namespace shop would be looked after",
    ),
    "excluded": (
        ENFORCING,
        "kube-system",
        {},
        Level.UNKNOWN,
        "cannot be seen: namespace kube-system is excluded, so pods are left as they are",
    ),
    "its own": (
        ENFORCING,
        SYSTEM,
        {},
        Level.UNKNOWN,
        f"cannot be seen: namespace {SYSTEM} is excluded, so pods are left as they are",
    ),
}


@pytest.mark.parametrize(("settings", "namespace", "labels", "level", "text"), ANSWERS.values(), ids=ANSWERS.keys())
def test_what_a_pod_that_is_tried_tells(
    settings: Settings, namespace: str, labels: dict[str, str], level: Level, text: str
) -> None:
    def script(seen: Seen) -> Answer:
        return Answer(201 if seen.method == "POST" else 200, {"metadata": {"name": "it", "labels": labels}})

    with fake_api.running() as api:
        api.script = script
        client = api.client(rate_limit=None)
        found = admission.check(client, namespace, InForce(settings, "here"), system=SYSTEM)
    assert (found.level, found.text) == (level, text)
    assert (found.advice == "") is (level is Level.OK)
