"""`check`: an installation that is well, and one thing after the other that is not."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from console import installation
from policy import keys
from testbed import bed, install, kubelet, objects, process
from testbed.api import Api
from testbed.bed import ControlPlane
from testbed.waiting import eventually
from tests.e2e import draining
from tests.e2e.draining import PREFIX, SYSTEM
from tests.integration.console.conftest import SETTINGS
from tests.integration.console.terminal import Plugin

CHECKS = {
    *("definition", "policies", "processes", "settings", "mode", "leader", "last pass"),
    *("certificates", "webhook", "rights", "your rights"),
}


READ_SETTINGS = (
    ("plan",),
    ("explain", "node/on-demand-0"),
    ("nodes",),
    ("status",),
    ("top",),
    ("maintenance", "status"),
)


def results(plugin: Plugin, *words: str) -> tuple[int, dict[str, set[str]], list[str]]:
    done = plugin("check", "-o", "json", *words)
    told: dict[str, Any] = json.loads(done.stdout)
    found: dict[str, set[str]] = {}
    for it in told["checks"]:
        found.setdefault(it["check"], set()).add(it["result"])
    return done.returncode, found, [it["text"] for it in told["checks"] if it["result"] != "ok"]


def well(plugin: Plugin) -> None:
    eventually(
        lambda: results(plugin)[2], until=lambda wrong: not wrong, timeout=90, what="an installation that is well"
    )


def test_an_installation_that_is_well(plugin: Plugin) -> None:
    well(plugin)
    code, found, _ = results(plugin)
    assert code == 0
    assert found == {name: {"ok"} for name in CHECKS}
    table = plugin("check").stdout
    assert table.splitlines()[0].split() == ["CHECK", "RESULT", "WHAT"]
    assert "What to do" not in table
    assert "valid and trusted: ca for " in table
    assert "a pod in namespace default would be looked after" in table


@pytest.fixture
def kube(running: ControlPlane, plugin: Plugin) -> Iterator[Api]:
    """Changes the installation; it must be well again afterwards."""
    yield running.api()
    well(plugin)


def test_wrong_settings(plugin: Plugin, kube: Api) -> None:
    draining.configure(kube, {**SETTINGS, "mode": "enfroce", "maxReschedulePods": -1})
    try:
        code, found, wrong = results(plugin)
        assert (code, found["settings"]) == (1, {"failed"})
        assert any("mode: 'enfroce' is not accepted" in text for text in wrong)
        assert any("maxReschedulePods" in text for text in wrong)
        assert "wrong, the last good ones or the defaults hold" in plugin("status").stdout
        for words in READ_SETTINGS:
            done = plugin(*words)
            assert (done.returncode, bool(done.stdout)) == (3, True), words
            first, *_, last = done.stderr.splitlines()
            assert first.startswith(
                f"warning: ConfigMap {SYSTEM}/spotshift-settings: mode: 'enfroce' is not accepted, "
            )
            assert last == f"warning: {installation.STANDING_IN}"
        summary = json.loads(plugin("plan", "-o", "json").stdout)["summary"]
        assert (summary["complete"], len(summary["assumed"])) == (False, 2)
    finally:
        draining.configure(kube, SETTINGS)


def test_another_prefix_is_not_gone_by_while_somebody_leads_under_the_old_one(plugin: Plugin, kube: Api) -> None:
    """It takes a restart. Until then a node marked under the new one would wait for ever."""
    draining.configure(kube, {**SETTINGS, "labelPrefix": "another.example/"})
    spare = objects.pool("spare-", on_demand=1, spot=0)
    node = spare[0]["metadata"]["name"]
    bed.add_nodes(kube, spare)
    try:
        code, found, wrong = results(plugin)
        assert (code, found["settings"]) == (1, {"failed"})
        said = f"labelPrefix: 'another.example/' takes a restart of all programs; in force is '{PREFIX}'"
        assert said in wrong
        marked = plugin("maintenance", "start", node)
        assert (marked.returncode, said in marked.stderr) == (0, True)
        labels = kube.get("nodes", node)["metadata"]["labels"]
        assert (labels[f"{PREFIX}maintenance"], "another.example/maintenance" in labels) == ("true", False)
    finally:
        kube.delete("nodes", node)
        draining.configure(kube, SETTINGS)


def test_a_policy_that_only_warns_is_no_fence(plugin: Plugin, kube: Api) -> None:
    binding = ("validatingadmissionpolicybindings", "spotshift-descheduler-scale")
    kube.patch(*binding, {"spec": {"validationActions": ["Warn"]}})
    try:
        code, found, wrong = results(plugin)
        assert (code, found["policies"]) == (1, {"failed"})
        assert "without a binding that denies: spotshift-descheduler-scale" in wrong
    finally:
        kube.patch(*binding, {"spec": {"validationActions": ["Deny"]}})


def test_observing_is_no_failure(plugin: Plugin, kube: Api) -> None:
    draining.configure(kube, {**SETTINGS, "mode": "observe"})
    try:
        # Until a replica of the webhook has taken the settings up, it answers as before, and is well.
        code, found, _ = eventually(
            lambda: results(plugin), until=lambda it: it[1]["webhook"] != {"ok"}, what="a webhook that only observes"
        )
        assert (code, found["mode"], found["webhook"]) == (0, {"warning"}, {"warning"})
    finally:
        draining.configure(kube, SETTINGS)


def test_an_emergency_stop_is_no_failure(plugin: Plugin, kube: Api) -> None:
    where = ("configmaps", "spotshift-settings")
    kube.patch(*where, {"metadata": {"annotations": {f"{PREFIX}emergency-stop": "true"}}}, SYSTEM)
    try:
        # Each replica of the webhook takes settings up in its own time, also those of the test before.
        _, found, told = eventually(lambda: results(plugin), until=lambda it: it[0] == 0, what="nothing that failed")
        assert found["mode"] == {"warning"}, told
    finally:
        kube.patch(*where, {"metadata": {"annotations": {f"{PREFIX}emergency-stop": None}}}, SYSTEM)


def test_a_right_that_was_taken_away(plugin: Plugin, kube: Api) -> None:
    role = kube.get("clusterroles", "spotshift-descheduler")
    less = [rule for rule in role["rules"] if "pods/eviction" not in rule["resources"]]
    kube.patch("clusterroles", "spotshift-descheduler", {"rules": less})
    try:
        text = eventually(
            lambda: next((it for it in results(plugin)[2] if "may not" in it), ""), what="the right that is missing"
        )
        assert text == "spotshift-descheduler may not: create pods/eviction"
    finally:
        kube.patch("clusterroles", "spotshift-descheduler", {"rules": role["rules"]})


def test_a_webhook_that_gives_no_answer(plugin: Plugin, running: ControlPlane, kube: Api) -> None:
    """It fails open, so pods go on being created: only their label is missing."""
    pods = [pod for pod in kubelet.remembered(running) if pod.deployment == "spotshift-webhook"]
    names = {planned.name for pod in pods for planned in pod.processes}
    process.stop([child for name, child in process.running(running.home) if name in names], grace_seconds=0)
    try:
        code, found, wrong = results(plugin)
        assert (code, found["webhook"]) == (1, {"failed"})
        assert "gives no answer: a pod in namespace default would be created without its label" in wrong
    finally:
        for pod in pods:
            install.start(running, pod)


def test_a_namespace_that_opted_out_says_nothing_of_the_webhook(plugin: Plugin, kube: Api) -> None:
    key = keys.under().rescheduling
    kube.patch("namespaces", "default", {"metadata": {"annotations": {key: "disabled"}}})
    try:
        seen = "cannot be seen: namespace default says rescheduling=disabled, so pods are left as they are"
        found = eventually(lambda: results(plugin), until=lambda it: seen in it[2], what="the namespace named")
        assert found[1]["webhook"] == {"unknown"}
    finally:
        kube.patch("namespaces", "default", {"metadata": {"annotations": {key: None}}})


def test_a_bundle_that_does_not_fit(plugin: Plugin, kube: Api) -> None:
    """certs mends it within seconds; until then it is named."""
    name = "spotshift-webhook"
    found = kube.get("mutatingwebhookconfigurations", name)
    found["webhooks"][0]["clientConfig"].pop("caBundle")
    seen: set[str] = set()

    def named() -> bool:
        kube.patch("mutatingwebhookconfigurations", name, {"webhooks": found["webhooks"]})
        _, levels, wrong = results(plugin)
        seen.update(text for text in wrong if text.startswith("bundle: "))
        return bool(seen) and levels["certificates"] == {"failed"}

    eventually(named, interval=0, what="the bundle to be named")
    assert any("REJECTS_LEAF" in text or "DIFFERS" in text for text in seen)


def test_an_excluded_namespace_cannot_show_the_webhook(plugin: Plugin, kube: Api) -> None:
    code, found, _ = results(plugin, "-n", "kube-system")
    assert (code, found["webhook"]) == (3, {"unknown"})
