"""What `check` advises can be typed as it stands, wherever the product is installed."""

import argparse
import io
import json
import re
from typing import Any

import pytest

from console.commands import check
from console.door import Door
from console.ending import Ending
from console.session import Session
from policy import keys
from tests.unit.cluster import fake_api
from tests.unit.cluster.fake_api import Answer, Seen, status
from tests.unit.cluster.surroundings import World

SYSTEM = "elsewhere"
SETTINGS = "apiVersion: spotshift.dev/v1alpha1\nkind: Policy\n"
COMMAND = re.compile(r"kubectl (?!apply )[^;]*")
"""Of a namespace; `kubectl apply -k` brings its own."""


def ailing(settings: str, **annotations: str) -> fake_api.Script:
    """An installation in which next to everything is wrong."""
    meta = {"name": "spotshift-settings", "namespace": SYSTEM, "annotations": annotations}

    def script(seen: Seen) -> Answer:
        if "/deployments/" in seen.path:
            return Answer(body={"metadata": {"name": "it"}, "spec": {"replicas": 2}, "status": {}})
        if "/configmaps/" in seen.path:
            return Answer(body={"metadata": meta, "data": {"settings.yaml": settings}})
        if "/mutatingwebhookconfigurations/" in seen.path:
            return Answer(body={"metadata": {"name": "spotshift-webhook"}, "webhooks": []})
        if seen.method == "POST":
            return Answer(201, {"metadata": {"name": "it"}, "status": {"allowed": False}})
        return status(404, "NotFound")

    return script


def advised(script: fake_api.Script) -> tuple[Ending, dict[str, str]]:
    """Advice by check."""
    out = io.StringIO()
    options = argparse.Namespace(
        output="json", system_namespace=SYSTEM, namespace="shop", settings=None, all_namespaces=False
    )
    with fake_api.running() as api:
        api.script = script
        door = Door(api.client(rate_limit=None), api.url, "default")
        ended = check.run(Session(options, out, io.StringIO(), World().runtime, door))
        assert sum("/customresourcedefinitions/" in it.path for it in api.seen) == 1, "one question, one answer"
    found: list[dict[str, Any]] = json.loads(out.getvalue())["checks"]
    return ended, {it["check"]: it["advice"] for it in found if it["advice"]}


AILING = {
    "wrong settings": ailing(f"{SETTINGS}mode: enfroce\n"),
    "observing": ailing(f"{SETTINGS}mode: observe\n"),
    "stopped": ailing(SETTINGS, **{keys.under().emergency_stop: "true"}),
}
ADVICE = {
    "wrong settings": ("settings", "edit configmap spotshift-settings"),
    "observing": ("mode", "edit configmap spotshift-settings"),
    "stopped": ("mode", f"annotate configmap spotshift-settings {keys.under().emergency_stop}-"),
}


@pytest.mark.parametrize("name", AILING)
def test_every_command_names_the_namespace_of_the_installation(name: str) -> None:
    ended, advice = advised(AILING[name])
    assert ended is Ending.FAILED
    commands = [command for text in advice.values() for command in COMMAND.findall(text)]
    assert [it for it in commands if not it.startswith(f"kubectl -n {SYSTEM} ")] == []
    check_, words = ADVICE[name]
    assert f"kubectl -n {SYSTEM} {words}" in advice[check_]
    assert set(advice) >= {"definition", "processes", "leader", "certificates", "rights"}
