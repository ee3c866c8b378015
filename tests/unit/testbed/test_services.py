"""Services on loopback: who is led where, and what the apiserver is told."""

from typing import Any

import pytest

from testbed import services
from testbed.api import Object
from testbed.pods import Pod, Probe, Process
from testbed.services import Route, Target

LISTEN = {"hook.shop:443": 29000}


def pod(name: str, port: int, *, namespace: str = "shop", app: str = "hook") -> Pod:
    process = Process(f"{name}.main", (), {}, {"https": port}, {"8443": port}, Probe(port, "/readyz"))
    return Pod(name, namespace, "hook", "hook", None, {"app": app, "tier": "x"}, (), (process,))


def service(**spec: Any) -> Object:
    ports = [{"name": "https", "port": 443, "targetPort": "https"}]
    return {
        "kind": "Service",
        "metadata": {"name": "hook", "namespace": "shop"},
        "spec": {"selector": {"app": "hook"}, "ports": ports, **spec},
    }


PODS = [pod("hook-0", 20000), pod("hook-1", 20001)]


@pytest.mark.parametrize(
    "port",
    [
        pytest.param({"port": 443, "targetPort": "https"}, id="by name"),
        pytest.param({"port": 443, "targetPort": 8443}, id="by number"),
    ],
)
def test_every_replica_is_a_target(port: Object) -> None:
    made = services.routes([service(ports=[port])], PODS, LISTEN)
    targets = (Target(20000, Probe(20000, "/readyz")), Target(20001, Probe(20001, "/readyz")))
    assert made == [Route("hook.shop:443", 29000, targets)]


def test_target_port_is_the_port_unless_said() -> None:
    made = services.routes([service(ports=[{"port": 8443}])], PODS, {"hook.shop:8443": 29000})
    assert [target.port for target in made[0].targets] == [20000, 20001]


@pytest.mark.parametrize(
    ("made", "behind"),
    [
        pytest.param(service(), [pod("a", 1, namespace="other")], id="other namespace"),
        pytest.param(service(), [pod("a", 1, app="other")], id="other labels"),
        pytest.param(service(selector=None), PODS, id="no selector"),
        pytest.param({"kind": "ConfigMap", "metadata": {"name": "hook"}, "spec": {}}, PODS, id="no Service"),
    ],
)
def test_what_leads_nowhere_is_left_alone(made: Object, behind: list[Pod]) -> None:
    assert services.port_names([made], behind) == []
    assert services.on_loopback([made], behind, {}) == [made]


def test_the_service_means_this_machine() -> None:
    (made,) = services.on_loopback([service(type="ClusterIP", clusterIP="None")], PODS, LISTEN)
    assert made["spec"] == {"type": "ExternalName", "externalName": "localhost", "ports": service()["spec"]["ports"]}
    assert services.port_names([service()], PODS) == list(LISTEN)


def reference(name: str = "hook", **more: Any) -> Object:
    return {"name": name, "namespace": "shop", "path": "/mutate", **more}


@pytest.mark.parametrize("kind", ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"])
def test_webhooks_find_the_port(kind: str) -> None:
    clients = [reference(), reference(port=443), reference(port=8080), reference("other")]
    webhooks = [{"clientConfig": {"service": one}} for one in clients] + [{"clientConfig": {"url": "https://a"}}]
    document: Object = {"kind": kind, "metadata": {"name": "x"}, "webhooks": webhooks}
    _, made = services.on_loopback([service(), document], PODS, LISTEN)
    found = [webhook["clientConfig"].get("service", {}).get("port") for webhook in made["webhooks"]]
    assert found == [29000, 29000, 8080, None, None]
    assert "port" not in document["webhooks"][0]["clientConfig"]["service"], "what was given is not changed"


def test_aggregated_apis_find_the_port() -> None:
    document = {"kind": "APIService", "metadata": {"name": "x"}, "spec": {"service": reference()}}
    made = services.on_loopback([document, service()], PODS, LISTEN)[0]
    assert made["spec"]["service"]["port"] == 29000
