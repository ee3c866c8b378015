"""The client against a real API server: every verb, what it refuses, and how tokens come and go."""

from __future__ import annotations

import base64
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils

from cluster import auth, errors, resources
from cluster.client import Client
from cluster.objects import (
    Deployment,
    Lease,
    Node,
    PartialObjectMetadata,
    Pod,
    PodDisruptionBudget,
    micro_time,
)
from cluster.resources import CONFIGMAPS, DEPLOYMENTS, LEASES, NODES, PDBS, PODS, SERVICEACCOUNTS
from testbed import objects as build
from testbed import pki
from testbed.bed import ControlPlane
from testbed.pytest_plugin import Nodes
from testbed.waiting import eventually

Object = dict[str, Any]


@pytest.fixture
def client(cluster: ControlPlane) -> Client:
    return Client(auth.connect(cluster.kubeconfig))


def config_map(name: str, **data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def ready_pods(client: Client, namespace: str, app: str, count: int) -> tuple[Pod, ...]:
    def probe() -> tuple[Pod, ...]:
        found = client.list(PODS, type=Pod, namespace=namespace, label_selector=f"app={app}").items
        return tuple(pod for pod in found if pod.ready and not pod.metadata.deletion_timestamp)

    return eventually(probe, until=lambda pods: len(pods) == count, timeout=60, what=f"{count} ready pods of {app}")


# ---- objects


def test_create_get_delete(client: Client, namespace: str) -> None:
    made = client.create(CONFIGMAPS, config_map("one", a="b"), namespace=namespace)
    assert client.get(CONFIGMAPS, "one", namespace=namespace)["data"] == {"a": "b"}
    with pytest.raises(errors.AlreadyExists):
        client.create(CONFIGMAPS, config_map("one"), namespace=namespace)
    client.delete(CONFIGMAPS, "one", namespace=namespace, uid=made["metadata"]["uid"])
    with pytest.raises(errors.NotFound):
        client.get(CONFIGMAPS, "one", namespace=namespace)


def test_dry_run_changes_nothing(client: Client, namespace: str) -> None:
    client.create(CONFIGMAPS, config_map("one"), namespace=namespace, dry_run=True)
    with pytest.raises(errors.NotFound):
        client.get(CONFIGMAPS, "one", namespace=namespace)
    client.create(CONFIGMAPS, config_map("one", a="b"), namespace=namespace)
    client.merge_patch(CONFIGMAPS, "one", {"data": {"a": "c"}}, namespace=namespace, dry_run=True)
    client.delete(CONFIGMAPS, "one", namespace=namespace, dry_run=True)
    assert client.get(CONFIGMAPS, "one", namespace=namespace)["data"] == {"a": "b"}


def test_delete_spares_a_namesake(client: Client, namespace: str) -> None:
    client.create(CONFIGMAPS, config_map("one"), namespace=namespace)
    with pytest.raises(errors.Conflict):
        client.delete(CONFIGMAPS, "one", namespace=namespace, uid="00000000-0000-4000-8000-000000000000")
    with pytest.raises(errors.Conflict):
        client.delete(CONFIGMAPS, "one", namespace=namespace, resource_version="1")
    client.get(CONFIGMAPS, "one", namespace=namespace)


def test_patches(client: Client, namespace: str) -> None:
    made = client.create(CONFIGMAPS, config_map("one", a="1", b="2"), namespace=namespace)
    merged = client.merge_patch(CONFIGMAPS, "one", {"data": {"a": None, "c": "3"}}, namespace=namespace)
    assert merged["data"] == {"b": "2", "c": "3"}
    operations = [{"op": "test", "path": "/data/b", "value": "2"}, {"op": "replace", "path": "/data/b", "value": "4"}]
    assert client.json_patch(CONFIGMAPS, "one", operations, namespace=namespace)["data"]["b"] == "4"
    with pytest.raises(errors.Invalid):
        client.json_patch(CONFIGMAPS, "one", operations, namespace=namespace)
    stale = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}, "data": {"a": "5"}}
    with pytest.raises(errors.Conflict):
        client.merge_patch(CONFIGMAPS, "one", stale, namespace=namespace)


def test_apply_owns_fields(client: Client, namespace: str) -> None:
    client.apply(CONFIGMAPS, "one", config_map("one", a="1"), namespace=namespace, field_manager="first")
    with pytest.raises(errors.Conflict):
        client.apply(CONFIGMAPS, "one", config_map("one", a="2"), namespace=namespace, field_manager="second")
    forced = client.apply(
        CONFIGMAPS, "one", config_map("one", a="2"), namespace=namespace, field_manager="second", force=True
    )
    assert forced["data"] == {"a": "2"}


def test_replace_of_a_lease_is_guarded(client: Client, namespace: str) -> None:
    spec = {"holderIdentity": "me", "leaseDurationSeconds": 15}
    body: Object = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": spec}
    made = client.create(LEASES, body, namespace=namespace, type=Lease)
    assert made.metadata.creation_timestamp is not None
    renewed = made.metadata.creation_timestamp
    body["spec"]["renewTime"] = micro_time(renewed)
    body["metadata"]["resourceVersion"] = made.metadata.resource_version
    assert client.replace(LEASES, "l", body, namespace=namespace, type=Lease).spec.renew_time == renewed
    with pytest.raises(errors.Conflict):
        client.replace(LEASES, "l", body, namespace=namespace)


def test_invalid_objects_are_told(client: Client, namespace: str) -> None:
    with pytest.raises(errors.Invalid) as caught:
        client.create(CONFIGMAPS, config_map("Not A Name"), namespace=namespace)
    assert "Not A Name" in caught.value.message


@pytest.mark.parametrize("name", ["..", ".", "a/b", "%2e%2e"])
def test_a_name_leads_nowhere_else(client: Client, namespace: str, name: str) -> None:
    with pytest.raises((errors.NotFound, errors.Invalid)):
        client.get(CONFIGMAPS, name, namespace=namespace)


# ---- collections


def test_paged_list(client: Client, namespace: str) -> None:
    for number in range(7):
        client.create(CONFIGMAPS, config_map(f"m{number}"), namespace=namespace)
    pages = list(client.pages(CONFIGMAPS, type=PartialObjectMetadata, namespace=namespace, page_size=3))
    assert [len(page.items) for page in pages] == [3, 3, 2]  # the root CA is there as well
    assert [page.first for page in pages] == [True, False, False]
    assert len({page.resource_version for page in pages}) == 1
    whole = client.list(CONFIGMAPS, namespace=namespace, page_size=500)
    assert [item["metadata"]["name"] for item in whole.items] == [one.metadata.name for p in pages for one in p.items]


def test_list_of_metadata_only(client: Client, namespace: str) -> None:
    client.create(CONFIGMAPS, config_map("one", secret="x" * 1000), namespace=namespace)
    found = client.list(CONFIGMAPS, namespace=namespace, metadata_only=True, field_selector="metadata.name=one")
    (item,) = found.items
    assert item["kind"] == "PartialObjectMetadata"
    assert "data" not in item


def test_watch_tells_what_happens_and_close_ends_it(client: Client, namespace: str) -> None:
    start = client.list(CONFIGMAPS, namespace=namespace)
    decoder = client.decoder(PartialObjectMetadata)
    seen: list[tuple[str, str]] = []
    three = threading.Event()
    with client.watch(CONFIGMAPS, resource_version=start.resource_version, namespace=namespace) as stream:

        def read() -> None:
            for line in stream:
                kind, found = decoder.decode_event(line)
                assert isinstance(found, PartialObjectMetadata)
                seen.append((kind, found.metadata.name))
                if len(seen) == 3:
                    three.set()

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        client.create(CONFIGMAPS, config_map("one"), namespace=namespace)
        client.merge_patch(CONFIGMAPS, "one", {"data": {"a": "b"}}, namespace=namespace)
        client.delete(CONFIGMAPS, "one", namespace=namespace)
        assert three.wait(20)
        stream.close()
        reader.join(10)
        assert not reader.is_alive(), "TLS or not, close unblocks the reader"
    assert seen == [("ADDED", "one"), ("MODIFIED", "one"), ("DELETED", "one")]


def test_watch_with_initial_events_ends_them_with_a_bookmark(client: Client, namespace: str) -> None:
    client.create(CONFIGMAPS, config_map("one"), namespace=namespace)
    decoder = client.decoder(PartialObjectMetadata)
    with client.watch(
        CONFIGMAPS, resource_version="", namespace=namespace, send_initial_events=True, read_timeout=20
    ) as stream:
        for line in stream:
            kind, found = decoder.decode_event(line)
            assert isinstance(found, PartialObjectMetadata)
            if kind == "BOOKMARK" and "k8s.io/initial-events-end" in found.metadata.annotations:
                break
            assert kind == "ADDED"


# ---- workloads


def test_pods_share_their_template(client: Client, namespace: str, nodes: Nodes) -> None:
    nodes.make(on_demand=1)
    client.create(DEPLOYMENTS, build.deployment("web", replicas=3), namespace=namespace)
    pods = ready_pods(client, namespace, "web", 3)
    assert len({id(pod.spec) for pod in pods}) == 1
    assert len({id(pod.metadata.labels) for pod in pods}) == 1
    assert len({pod.metadata.uid for pod in pods}) == 3
    (node,) = (client.get(NODES, pods[0].node_name, type=Node),)
    assert int(node.status.allocatable["pods"]) > 0
    owner = pods[0].metadata.controller
    assert owner is not None
    assert owner.kind == "ReplicaSet"


def test_eviction(client: Client, namespace: str, nodes: Nodes) -> None:
    nodes.make(on_demand=1)
    client.create(DEPLOYMENTS, build.deployment("web", replicas=2), namespace=namespace)
    one, two = ready_pods(client, namespace, "web", 2)
    with pytest.raises(errors.Conflict):
        client.evict(namespace, one.metadata.name, uid=two.metadata.uid)
    client.evict(namespace, one.metadata.name, uid=one.metadata.uid, dry_run=True)
    assert not client.get(PODS, one.metadata.name, namespace=namespace, type=Pod).metadata.deletion_timestamp
    client.evict(namespace, one.metadata.name, uid=one.metadata.uid)
    with pytest.raises(errors.NotFound):
        client.evict(namespace, "nobody", uid=None)

    client.create(PDBS, build.budget("web-budget", app="web", minAvailable=2), namespace=namespace)
    ready_pods(client, namespace, "web", 2)
    eventually(
        lambda: client.get(PDBS, "web-budget", namespace=namespace, type=PodDisruptionBudget),
        until=lambda budget: (
            budget.status.observed_generation == budget.metadata.generation and budget.status.current_healthy == 2
        ),
        what="the counted budget",
    )
    with pytest.raises(errors.DisruptionBlocked) as blocked:
        client.evict(namespace, two.metadata.name, uid=two.metadata.uid)
    assert blocked.value.budget == "web-budget"
    assert blocked.value.retryable

    client.create(PDBS, build.budget("another", app="web", minAvailable=1), namespace=namespace)

    def refusal() -> errors.ApiError | None:
        try:
            client.evict(namespace, two.metadata.name, uid=two.metadata.uid, dry_run=True)
        except errors.ApiError as refused:
            return refused
        return None

    multiple = eventually(refusal, until=lambda found: isinstance(found, errors.MultipleBudgets), what="two budgets")
    assert multiple is not None
    assert not multiple.retryable


def test_scale_records_who_owns_the_number(client: Client, namespace: str) -> None:
    made = client.create(DEPLOYMENTS, build.deployment("web", replicas=1), namespace=namespace, type=Deployment)
    assert client.get_scale(DEPLOYMENTS, "web", namespace).spec.replicas == 1
    scaled = client.patch_scale(DEPLOYMENTS, "web", namespace, 2, field_manager="spotshift-test")
    assert scaled.spec.replicas == 2
    fields = client.get(DEPLOYMENTS, "web", namespace=namespace)["metadata"]["managedFields"]
    owners = [entry["manager"] for entry in fields if "f:replicas" in entry["fieldsV1"].get("f:spec", {})]
    assert owners == ["spotshift-test"]
    with pytest.raises(errors.Conflict):
        client.patch_scale(
            DEPLOYMENTS,
            "web",
            namespace,
            3,
            field_manager="spotshift-test",
            resource_version=made.metadata.resource_version,
        )


def test_status_is_a_subresource(client: Client, namespace: str) -> None:
    client.create(DEPLOYMENTS, build.deployment("web", replicas=0), namespace=namespace)
    client.merge_patch(
        DEPLOYMENTS, "web", {"status": {"collisionCount": 3}}, namespace=namespace, subresource="status"
    )
    found = client.get(DEPLOYMENTS, "web", namespace=namespace, subresource="status")
    assert found["status"]["collisionCount"] == 3


def test_warnings_of_the_server_are_told(cluster: ControlPlane, namespace: str) -> None:
    told: list[str] = []
    client = Client(auth.connect(cluster.kubeconfig), on_warning=told.append)
    bad = build.pod("p", nodeSelector={"beta.kubernetes.io/os": "linux"})
    client.create(PODS, bad, namespace=namespace, dry_run=True)
    assert any("beta.kubernetes.io/os" in text for text in told)


# ---- credentials


def service_account_token(client: Client, namespace: str) -> str:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}
    answer = client.create(SERVICEACCOUNTS, body, namespace=namespace, name="default", subresource="token")
    return str(answer["status"]["token"])


def expired(token: str, key: Path) -> str:
    """The same token, signed by the same key, but ended a minute after the epoch."""
    header, payload, _ = token.split(".")
    claims = json.loads(base64.urlsafe_b64decode(payload + "=="))
    claims |= {"iat": 0, "nbf": 0, "exp": 60}
    claims["kubernetes.io"].pop("warnafter", None)
    signed = f"{header}.{_segment(json.dumps(claims).encode())}"
    signer = serialization.load_pem_private_key(key.read_bytes(), password=None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    r, s = utils.decode_dss_signature(signer.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
    return f"{signed}.{_segment(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"


def _segment(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def login(cluster: ControlPlane, folder: Path, token: str) -> Client:
    """A client whose kubeconfig names a token file."""
    (folder / "token").write_text(token)
    ca = cluster.layout.ca.bundle()
    path = pki.kubeconfig(folder / "config", server=cluster.server, ca=ca, user={"tokenFile": "token"})
    return Client(auth.connect(path))


def who(client: Client) -> str:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    review = resources.Resource("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", False)
    return str(client.create(review, body)["status"]["userInfo"]["username"])


def test_a_rotated_token_is_used_at_once(
    cluster: ControlPlane, client: Client, namespace: str, tmp_path: Path
) -> None:
    account = login(cluster, tmp_path, service_account_token(client, namespace))
    assert who(account) == f"system:serviceaccount:{namespace}:default"
    (tmp_path / "token").write_text(service_account_token(client, "default"))
    assert who(account) == "system:serviceaccount:default:default"


def test_an_expired_token_is_told_and_its_replacement_heals(
    cluster: ControlPlane, client: Client, namespace: str, tmp_path: Path
) -> None:
    good = service_account_token(client, namespace)
    old = expired(good, cluster.layout.certificates / "service-accounts.key")
    account = login(cluster, tmp_path, old)
    with pytest.raises(errors.Unauthorized) as caught:
        who(account)
    told = str(caught.value)
    assert f"the token in {tmp_path / 'token'} expired at 1970-01-01T00:01:00Z" in told
    assert cluster.server in told
    assert old not in told
    (tmp_path / "token").write_text(good)
    assert who(account) == f"system:serviceaccount:{namespace}:default"


def test_a_rotated_client_certificate_is_used_at_once(cluster: ControlPlane, tmp_path: Path) -> None:
    """The connection to the server stays open between the two requests, and with it the old certificate."""
    user = {"client-certificate": str(tmp_path / "client.crt"), "client-key": str(tmp_path / "client.key")}

    def issue(name: str) -> None:
        made = cluster.layout.ca.client("rotated", user=name, groups=("system:masters",))
        (tmp_path / "client.crt").write_bytes(made.cert.read_bytes())
        (tmp_path / "client.key").write_bytes(made.key.read_bytes())

    issue("first-user")
    path = pki.kubeconfig(tmp_path / "config", server=cluster.server, ca=cluster.layout.ca.bundle(), user=user)
    shown = Client(auth.connect(path))
    assert [who(shown), who(shown)] == ["first-user", "first-user"]
    issue("second-user")
    assert who(shown) == "second-user"


def test_a_client_certificate_in_the_kubeconfig_itself(cluster: ControlPlane, tmp_path: Path) -> None:
    """As kind and kubeadm write it."""
    made = cluster.layout.ca.client("inline", user="inline-user", groups=("system:masters",))
    parts = {"client-certificate-data": made.cert, "client-key-data": made.key}
    user = {key: base64.b64encode(it.read_bytes()).decode() for key, it in parts.items()}
    path = pki.kubeconfig(tmp_path / "config", server=cluster.server, ca=cluster.layout.ca.bundle(), user=user)
    assert who(Client(auth.connect(path))) == "inline-user"


def test_in_cluster_login(cluster: ControlPlane, client: Client, namespace: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(service_account_token(client, namespace))
    (tmp_path / "ca.crt").write_bytes(cluster.layout.ca.bundle())
    port = str(cluster.ports["kube-apiserver"])
    inside = auth.InCluster("127.0.0.1", port, tmp_path / "token", tmp_path / "ca.crt")
    account = Client(auth.connect(in_cluster=inside))
    assert who(account) == f"system:serviceaccount:{namespace}:default"
    with pytest.raises(errors.Forbidden):
        account.list(NODES)


def test_a_server_nobody_vouches_for_is_unreachable(cluster: ControlPlane, tmp_path: Path) -> None:
    other = pki.authority(tmp_path / "pki", "other").bundle()
    path = pki.kubeconfig(tmp_path / "config", server=cluster.server, ca=other, user={"token": "x"})
    with pytest.raises(errors.Unreachable, match=r"(?i)certificate"):
        Client(auth.connect(path)).list(NODES)
