"""Installation, repair and rights on the real apiserver."""

import base64
import json
import os
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest
import yaml

from testbed import api
from testbed.api import ApiError
from testbed.waiting import eventually, patient
from tests.integration.certs.installation import ACCOUNT, CA, LEAF, ROOT, Installation, shipped_rights

pytestmark = pytest.mark.apart


def versions(installed: Installation) -> list[str]:
    found = (installed.secret(CA), installed.secret(LEAF), installed.configuration())
    return [item["metadata"]["resourceVersion"] for item in found]


def test_first_installation_then_nothing_changes(installed: Installation) -> None:
    foreign = installed.webhook("foreign.example.com", service="other")
    installed.configure(installed.webhook("ours.example.com"), foreign, installed.webhook("second.example.com"))
    before = installed.configuration()
    assert installed.call("check").returncode == 1
    assert installed.ensure().endswith("stable\n")
    assert installed.healthy()
    assert installed.secret(LEAF)["type"] == "kubernetes.io/tls"
    after = installed.configuration()
    for index, webhook in enumerate(after["webhooks"]):
        assert ("caBundle" in webhook["clientConfig"]) is (index != 1)
        webhook["clientConfig"].pop("caBundle", None)
    assert after["webhooks"] == before["webhooks"], "nothing but our caBundle is touched"
    seen = versions(installed)
    assert installed.ensure() == "stable\n"
    assert versions(installed) == seen
    checked = installed.call("check")
    assert (checked.returncode, checked.stderr) == (0, "")
    assert "BEGIN" not in checked.stdout


def test_installation_before_the_configuration_exists(installed: Installation) -> None:
    installed.ensure()
    assert "CONFIGURATION_MISSING" in installed.call("check").stdout
    installed.configure()
    assert "publish the bundle" in installed.ensure()
    assert installed.healthy()


def test_applying_the_configuration_again_changes_nothing(installed: Installation) -> None:
    configuration = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": installed.namespace},
        "webhooks": [installed.webhook("ours.example.com")],
    }
    text = json.dumps(configuration)
    installed.bed.kubectl("apply", "-f", "-", stdin=text)
    installed.ensure()
    published = installed.bundle()
    assert installed.bed.kubectl("apply", "-f", "-", stdin=text).strip().endswith("unchanged")
    assert installed.bundle() == published
    assert published


def encoded(value: bytes) -> str:
    return base64.b64encode(value).decode()


def spoil(installed: Installation, name: str, **data: bytes) -> None:
    patch = {"data": {key.replace("_", "."): encoded(value) for key, value in data.items()}}
    installed.kube.patch("secrets", name, patch, installed.namespace)


def retype(installed: Installation) -> None:
    secret = installed.secret(LEAF)
    installed.kube.delete("secrets", LEAF, installed.namespace)
    body = {"metadata": {"name": LEAF}, "type": "Opaque", "data": secret["data"]}
    installed.kube.create("secrets", body, installed.namespace)


def freeze(installed: Installation, name: str) -> None:
    installed.kube.patch("secrets", name, {"immutable": True}, installed.namespace)


DAMAGE: dict[str, Callable[[Installation], object]] = {
    "bundle wiped": lambda i: i.wipe(),
    "leaf deleted": lambda i: i.kube.delete("secrets", LEAF, i.namespace),
    "leaf half written": lambda i: spoil(i, LEAF, tls_key=b"-----BEGIN PRIVATE KEY-----\nMIG"),
    "leaf of another type": retype,
    "leaf immutable": lambda i: freeze(i, LEAF),
    "CA deleted": lambda i: i.kube.delete("secrets", CA, i.namespace),
    "CA garbage": lambda i: spoil(i, CA, ca_crt=b"?", ca_key=b"\xff\x00"),
    "CA immutable": lambda i: freeze(i, CA),
}


def test_every_damage_is_repaired_while_it_runs(installed: Installation) -> None:
    installed.configure()
    with installed.running() as running:
        eventually(lambda: running.get("/readyz")[0] == 200, what="readiness")
        for name, damage in DAMAGE.items():
            before = versions(installed)
            damage(installed)
            eventually(
                lambda: installed.healthy() and installed.settled(),
                timeout=30,
                what=f"the repair after: {name}",
            )
            assert versions(installed) != before
        text = running.get("/metrics")[1]
        assert 'spotshift_certificate_expiry_timestamp_seconds{certificate="leaf"}' in text
        assert running.stop() == 0
        log = running.log.read_text()
    lines = [json.loads(line) for line in log.splitlines()]
    events = [line["event"] for line in lines]
    assert (events[0], *events[-2:]) == ("STARTING", "STOPPING", "STOPPED")
    asked, stopped = (datetime.fromisoformat(line["time"]) for line in lines[-2:])
    assert stopped - asked < timedelta(seconds=patient(2))
    assert not {"INTERNAL_ERROR", "LOG_REFUSED", "REFLECTOR_DENIED", "PASS_FAILED"} & set(events), log
    assert "PRIVATE" not in log
    assert installed.secret(LEAF)["data"]["tls.key"][:60] not in log


def test_readiness_fails_while_the_bundle_does_not_verify(installed: Installation) -> None:
    installed.configure()
    with installed.running("--external") as running:
        eventually(lambda: running.get("/readyz")[1], until=lambda text: "no such Secret" in text)
        installed.ensure()
        eventually(lambda: running.get("/readyz")[0] == 200, what="readiness")
        installed.wipe()
        eventually(lambda: running.get("/readyz")[1], until=lambda text: "does not verify" in text)
        assert installed.bundle() == (), "an observer does not repair"


def test_rights_are_those_that_are_used(installed: Installation) -> None:
    installed.configure()
    with installed.running() as running:
        eventually(lambda: running.get("/readyz")[0] == 200, what="readiness")
        installed.wipe()
        retype(installed)
        eventually(installed.healthy, what="the repair")
        running.stop()
    granted = {
        (resource, verb)
        for document in shipped_rights()
        for rule in document.get("rules", ())
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert installed.verbs_used() == granted


FORBIDDEN: dict[str, Callable[[api.Api, str], object]] = {
    "another Secret": lambda c, ns: c.get("secrets", "other", ns),
    "all Secrets": lambda c, ns: c.list("secrets", ns),
    "Secrets elsewhere": lambda c, _: c.get("secrets", CA, "kube-system"),
    "another configuration": lambda c, _: c.patch("mutatingwebhookconfigurations", "other", {}),
    "all configurations": lambda c, _: c.list("mutatingwebhookconfigurations"),
    "removing the configuration": lambda c, ns: c.delete("mutatingwebhookconfigurations", ns),
    "pods": lambda c, ns: c.list("pods", ns),
}


@pytest.mark.parametrize("attempt", FORBIDDEN.values(), ids=FORBIDDEN.keys())
def test_the_account_may_not(installed: Installation, attempt: Callable[[api.Api, str], object]) -> None:
    client = api.connect(installed.kubeconfig)
    with pytest.raises(ApiError) as refused:
        attempt(client, installed.namespace)
    assert refused.value.status == 403


OF_ACCOUNT = {"kubernetes.io/service-account.name": "default"}
TOKEN, TLS = "kubernetes.io/service-account-token", "kubernetes.io/tls"
PAIR = {"tls.crt": "", "tls.key": ""}
CREATED: dict[str, tuple[api.Object, str]] = {
    "another name": ({"metadata": {"name": "other"}}, "the Secrets of the CA"),
    "a name of the API server's": ({"metadata": {"generateName": "x-"}}, "the Secrets of the CA"),
    "a token": ({"metadata": {"name": CA, "annotations": OF_ACCOUNT}, "type": TOKEN}, "not " + TOKEN),
    "another type": ({"metadata": {"name": CA}, "type": "example.com/x"}, "not example.com/x"),
    "an account's": ({"metadata": {"name": CA, "annotations": OF_ACCOUNT}}, "names a ServiceAccount"),
    "the CA": ({"metadata": {"name": CA}}, ""),
    "the leaf": ({"metadata": {"name": LEAF}, "type": TLS, "data": PAIR}, ""),
}


def test_the_account_creates_its_own_secrets_only(installed: Installation) -> None:
    """Else it could have the API server write the token of another account into a Secret that it may read."""
    client = api.connect(installed.kubeconfig)

    def refusal(body: api.Object) -> str:
        try:
            client.create("secrets", body, installed.namespace)
        except ApiError as refused:
            return str(refused)
        client.delete("secrets", body["metadata"].get("name", ""), installed.namespace)
        return ""

    token = CREATED["a token"][0]
    eventually(lambda: _is_refused(client, installed, token))
    for name, (body, told) in CREATED.items():
        found = refusal(body)
        assert (told in found) if told else not found, (name, found)


def test_the_account_does_not_make_its_secrets_an_accounts(installed: Installation) -> None:
    installed.configure()
    installed.ensure()
    client = api.connect(installed.kubeconfig)
    eventually(lambda: _is_refused(client, installed, CREATED["another name"][0]))
    for name in (CA, LEAF):
        with pytest.raises(ApiError, match="names a ServiceAccount"):
            client.patch("secrets", name, {"metadata": {"annotations": OF_ACCOUNT}}, installed.namespace)
        client.patch("secrets", name, {"metadata": {"annotations": {"a": "b"}}}, installed.namespace)


def _is_refused(client: api.Api, installed: Installation, body: api.Object) -> bool:
    """A policy is in force some time after it was accepted; until then nothing is kept."""
    try:
        client.create("secrets", body, installed.namespace, dry_run=True)
    except ApiError as refused:
        return refused.status == 403
    return False


def test_the_pod_is_admitted_under_the_restricted_profile(installed: Installation) -> None:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    installed.kube.patch("namespaces", installed.namespace, {"metadata": {"labels": labels}})
    deployment = yaml.safe_load((ROOT / "manifests" / "base" / "certs" / "deployment.yaml").read_text())
    template = deployment["spec"]["template"]
    pod = {"metadata": {**template["metadata"], "name": "certs"}, "spec": template["spec"]}
    loose = {**pod, "spec": {**pod["spec"], "hostNetwork": True}}

    def is_in_force() -> bool:
        try:
            installed.kube.create("pods", loose, installed.namespace, dry_run=True)
        except ApiError as refused:
            return "violates PodSecurity" in str(refused)
        return False

    eventually(is_in_force, what="the profile")
    made = installed.kube.create("pods", pod, installed.namespace, dry_run=True)
    assert made["spec"]["serviceAccountName"] == ACCOUNT


def test_cert_manager_takes_the_rights_to_write_away(installed: Installation) -> None:
    manifests = ROOT / "manifests"
    folder = installed.folder / "overlay"
    folder.mkdir()
    rendered = {}
    for name, components in (("own", list[Path]()), ("cert-manager", [manifests / "components" / "cert-manager"])):
        paths = {"resources": [manifests / "base" / "certs"], "components": components}
        body = {kind: [os.path.relpath(path, folder) for path in found] for kind, found in paths.items()}
        (folder / "kustomization.yaml").write_text(yaml.safe_dump(body))
        text = installed.bed.kubectl("kustomize", str(folder))
        rendered[name] = list(yaml.safe_load_all(text))
    verbs = {
        name: {verb for document in documents for rule in document.get("rules", ()) for verb in rule["verbs"]}
        for name, documents in rendered.items()
    }
    assert verbs["cert-manager"] == {"get", "list", "watch"}
    assert verbs["own"] == {"get", "list", "watch", "patch", "delete", "create"}
    deployment = next(found for found in rendered["cert-manager"] if found["kind"] == "Deployment")
    assert "--external" in deployment["spec"]["template"]["spec"]["containers"][0]["args"]
