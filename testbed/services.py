"""Services without a network of their own: what is applied instead, and which way their connections go.

Pure. Nothing routes a cluster address on loopback. A Service whose pods run as processes here is therefore applied
as an ExternalName that means this machine; webhooks and aggregated APIs keep naming it, with a free port; and behind
that port a balancer takes turns between the processes. The apiserver verifies `NAME.NAMESPACE.svc`, as anywhere.
"""

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from testbed.api import Object
from testbed.pods import Pod, Probe

DEFAULT_PORT = 443
"""Of a Service in a webhook's clientConfig."""


@dataclass(frozen=True, slots=True)
class Target:
    """One process behind a Service; it gets connections while its probe says so."""

    port: int
    probe: Probe | None


@dataclass(frozen=True, slots=True)
class Route:
    """One port of a Service."""

    name: str
    listen: int
    targets: Sequence[Target]


def port_names(documents: Sequence[Object], pods: Sequence[Pod]) -> list[str]:
    """A name for every port that a Service in front of these pods listens on."""
    return [_key(service, port["port"]) for service, _ in _services(documents, pods) for port in _ports(service)]


def routes(documents: Sequence[Object], pods: Sequence[Pod], listen: Mapping[str, int]) -> list[Route]:
    """Where the connections to each port of each Service go."""
    return [
        Route(_key(service, port["port"]), listen[_key(service, port["port"])], tuple(_targets(port, behind)))
        for service, behind in _services(documents, pods)
        for port in _ports(service)
    ]


def on_loopback(documents: Sequence[Object], pods: Sequence[Pod], listen: Mapping[str, int]) -> list[Object]:
    """The documents as they are applied here."""
    adapted = copy.deepcopy(list(documents))
    for service, _ in _services(adapted, pods):
        service["spec"] = {"type": "ExternalName", "externalName": "localhost", "ports": list(_ports(service))}
    for reference in (found for document in adapted for found in _references(document)):
        key = f"{reference['name']}.{reference['namespace']}:{reference.get('port', DEFAULT_PORT)}"
        if key in listen:
            reference["port"] = listen[key]
    return adapted


def _services(documents: Sequence[Object], pods: Sequence[Pod]) -> Iterator[tuple[Object, list[Pod]]]:
    for document in documents:
        selector = document["spec"].get("selector") if document["kind"] == "Service" else None
        namespace = document["metadata"].get("namespace", "default")
        behind = [
            pod for pod in pods if selector and pod.namespace == namespace and selector.items() <= pod.labels.items()
        ]
        if behind:
            yield document, behind


def _references(document: Object) -> Iterator[dict[str, Any]]:
    """Every place from which an apiserver calls a Service."""
    if document["kind"] in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        clients = [webhook["clientConfig"] for webhook in document.get("webhooks", ())]
    elif document["kind"] == "APIService":
        clients = [document["spec"]]
    else:
        clients = []
    yield from (client["service"] for client in clients if client.get("service"))


def _targets(port: Mapping[str, Any], behind: Sequence[Pod]) -> Iterator[Target]:
    wanted = str(port.get("targetPort", port["port"]))
    for process in (process for pod in behind for process in pod.processes):
        chosen = process.ports.get(wanted) or process.numbers.get(wanted)
        if chosen is not None:
            yield Target(chosen, process.probe)


def _ports(service: Object) -> Sequence[Mapping[str, Any]]:
    ports: Sequence[Mapping[str, Any]] = service["spec"].get("ports", ())
    return ports


def _key(service: Object, port: int) -> str:
    return f"{service['metadata']['name']}.{service['metadata'].get('namespace', 'default')}:{port}"
