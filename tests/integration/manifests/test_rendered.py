"""Overlays, components and the chart: they render, they agree with each other, and a real API server takes them."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from policy import settings_load
from policy.settings import Mode
from testbed import chart, extras, pins, sources
from testbed.api import Object
from testbed.bed import ControlPlane
from testbed.binaries import Binaries
from testbed.chart import Identity, Switch

MANIFESTS = Path(__file__).parents[3] / "manifests"
CHART = MANIFESTS / "chart"
OVERLAYS = sorted(path.parent.name for path in (MANIFESTS / "overlays").glob("*/kustomization.yaml"))
SWITCHES = chart.switches(MANIFESTS)
HOOK = "helm.sh/hook"
FOREIGN_KINDS = {"Certificate", "Issuer", "PrometheusRule", "ServiceMonitor"}
"""Of cert-manager and the Prometheus operator, which are not here."""

pytestmark = pytest.mark.timeout(1800)
"""Where helm is not found it is built first."""


@pytest.fixture(scope="module")
def kubectl(control_plane_binaries: Binaries) -> Path:
    return control_plane_binaries["kubectl"]


@pytest.fixture(scope="module")
def helm() -> Path:
    return extras.find("helm", os.environ)


def by_identity(documents: Sequence[Object]) -> dict[Identity, Object]:
    found = {chart.identity(it): it for it in documents}
    assert len(found) == len(documents), "no object twice"
    return found


def overlaid(kubectl: Path, overlay: str, components: Sequence[Path] = ()) -> dict[Identity, Object]:
    return by_identity(sources.kustomized(kubectl, [MANIFESTS / "overlays" / overlay], components))


def templated(helm: Path, **values: Any) -> list[Object]:
    where = ("--namespace", sources.NAMESPACE, *sources.for_kubernetes())
    command = [str(helm), "template", sources.RELEASE, str(CHART), *where, "-f", "-"]
    done = subprocess.run(command, input=yaml.safe_dump(values), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return sources.loaded(done.stdout)


def is_hook(document: Object) -> bool:
    return HOOK in document["metadata"].get("annotations", {})


COMBINATIONS: dict[str, tuple[Switch, ...]] = {
    "none": (),
    **{switch.value: (switch,) for switch in SWITCHES},
    **{f"all but {switch.value}": tuple(it for it in SWITCHES if it != switch) for switch in SWITCHES},
    "all": tuple(SWITCHES),
}


def test_helm_and_kustomize_render_alike(kubectl: Path, helm: Path) -> None:
    for name, chosen in COMBINATIONS.items():
        wanted = overlaid(kubectl, chart.OVERLAY, [switch.folder for switch in chosen])
        components = {switch.value: switch in chosen for switch in SWITCHES}
        found = by_identity([it for it in templated(helm, components=components) if not is_hook(it)])
        left = {key: it for key, it in wanted.items() if key[0] not in chart.OMITTED}
        assert set(found) == set(left), name
        for key, document in left.items():
            assert found[key] == document, f"{name}: {key}"


def test_observe_is_a_setting_of_the_chart(kubectl: Path, helm: Path) -> None:
    wanted = overlaid(kubectl, "observe")
    found = by_identity([it for it in templated(helm, settings={"mode": "observe"}) if not is_hook(it)])
    key = ("ConfigMap", sources.NAMESPACE, "spotshift-settings")
    texts = [documents[key]["data"]["settings.yaml"] for documents in (wanted, found)]
    assert [settings_load.load(text) for text in texts] == [settings_load.load(texts[0])] * 2
    assert settings_load.load(texts[0]).mode is Mode.OBSERVE
    assert {**found, key: None} == {
        it: doc for it, doc in {**wanted, key: None}.items() if it[0] not in chart.OMITTED
    }


def test_hooks_are_the_cleanup(kubectl: Path, helm: Path) -> None:
    hooks = [it for it in templated(helm) if is_hook(it)]
    wanted = by_identity(sources.kustomized(kubectl, [MANIFESTS / chart.CLEANUP]))
    assert {it["metadata"]["annotations"][HOOK] for it in hooks} == {"pre-delete"}
    for hook in hooks:
        weight = int(hook["metadata"]["annotations"]["helm.sh/hook-weight"])
        assert (weight == 0) == (hook["kind"] == "Job"), "rights come before the Job"
        del hook["metadata"]["annotations"]
    assert by_identity(hooks) == wanted
    assert not any(map(is_hook, templated(helm, cleanup={"enabled": False})))


def test_values_get_into_the_objects(helm: Path) -> None:
    image = {"repository": "mirror/spotshift", "tag": "9", "digest": "sha256:00", "pullPolicy": "Always"}
    resources = {"requests": {"cpu": "7m"}}
    made = by_identity(
        templated(
            helm,
            image=image,
            imagePullSecrets=[{"name": "pull"}],
            priorityClassName="",
            webhook={"replicas": 5, "resources": resources},
        )
    )
    webhook = made["Deployment", sources.NAMESPACE, "spotshift-webhook"]
    assert webhook["spec"]["replicas"] == 5
    for key in (it for it in made if it[0] in ("Deployment", "Job")):
        pod = made[key]["spec"]["template"]["spec"]
        assert pod["containers"][0]["image"] == "mirror/spotshift:9@sha256:00"
        assert pod["containers"][0]["imagePullPolicy"] == "Always"
        assert pod["imagePullSecrets"] == [{"name": "pull"}]
        assert "priorityClassName" not in pod
    assert webhook["spec"]["template"]["spec"]["containers"][0]["resources"] == {
        "limits": {"memory": "512Mi"},
        **resources,
        "requests": {"cpu": "7m", "memory": "128Mi"},
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["-n", "elsewhere"], "use -n spotshift-system", id="another namespace"),
        pytest.param(
            ["-n", "spotshift-system", "--set", "components.certmanager=true"], "certmanager", id="misspelt"
        ),
        pytest.param(["-n", "spotshift-system", "--set", "webhook.replicas=many"], "replicas", id="not a number"),
    ],
)
def test_mistakes_are_refused(helm: Path, arguments: list[str], message: str) -> None:
    command = [str(helm), "template", sources.RELEASE, str(CHART), *sources.for_kubernetes(), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert message in done.stderr


def test_the_chart_is_what_the_manifests_say(kubectl: Path) -> None:
    """`make chart` writes it anew."""

    def render(resources: Sequence[Path], components: Sequence[Path]) -> list[Object]:
        return sources.kustomized(kubectl, resources, components)

    written = chart.files(MANIFESTS, pins.product(), render)
    there = {path.relative_to(CHART).as_posix(): path.read_text() for path in CHART.rglob("*") if path.is_file()}
    assert {path: text for path, text in there.items() if path not in chart.BY_HAND} == written


def test_helm_has_nothing_to_say_against_the_chart(helm: Path) -> None:
    done = subprocess.run(
        [helm, "lint", "--strict", CHART, "-n", sources.NAMESPACE], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_settings_of_an_overlay_are_accepted(kubectl: Path, overlay: str) -> None:
    made = overlaid(kubectl, overlay)
    text = made["ConfigMap", sources.NAMESPACE, "spotshift-settings"]["data"]["settings.yaml"]
    assert (settings_load.load(text).mode is Mode.OBSERVE) == (overlay == "observe")


def test_overlays_hold_what_their_comments_say(kubectl: Path) -> None:
    rendered = {overlay: overlaid(kubectl, overlay) for overlay in OVERLAYS}
    assert set(OVERLAYS) >= {"minimal", "observe", "production", "testbed"}
    kinds = {overlay: {key[0] for key in found} for overlay, found in rendered.items()}
    assert not kinds["minimal"] & {"PodDisruptionBudget", "NetworkPolicy"}
    assert {"PodDisruptionBudget", "NetworkPolicy"} <= kinds["production"]
    replicas = {
        overlay: {key[2]: it["spec"]["replicas"] for key, it in found.items() if key[0] == "Deployment"}
        for overlay, found in rendered.items()
    }
    assert replicas["minimal"] == dict.fromkeys(("spotshift-certs", "spotshift-descheduler", "spotshift-webhook"), 1)
    assert replicas["production"] == replicas["observe"]
    assert replicas["production"]["spotshift-webhook"] == replicas["production"]["spotshift-descheduler"] == 2
    for key, it in rendered["production"].items():
        if key[0] == "Deployment":
            assert it["spec"]["template"]["spec"]["priorityClassName"] == "system-cluster-critical"
    assert ("ClusterRole", "", "spotshift-descheduler-recreate") in rendered["testbed"]


def test_one_file_can_be_applied(cluster: ControlPlane, kubectl: Path, tmp_path: Path) -> None:
    """What `make manifests` writes, with every component, tried on a real API server that keeps none of it."""
    chart.combine(tmp_path, [MANIFESTS / "overlays" / "production"], [switch.folder for switch in SWITCHES])
    text = sources.rendered(kubectl, tmp_path)
    known = [it for it in sources.loaded(text) if it["kind"] not in FOREIGN_KINDS]
    alone = [it for it in known if "namespace" not in it["metadata"]]
    told = cluster.kubectl("apply", "--dry-run=server", "-f", "-", stdin=yaml.safe_dump_all(alone))
    assert told.count("(server dry run)") == len(alone)
