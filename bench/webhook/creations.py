"""The same webhooks behind a real API server: what each adds to the creation of a pod.

Every webhook has a namespace of its own, and one namespace has none. Pods are created (as a dry run, so that nothing
is stored) in these namespaces in turn, so whatever else the machine does meets all of them alike.
"""

import base64
import contextlib
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from bench.webhook import load, review
from bench.webhook.contenders import Contender
from bench.webhook.load import Turns
from testbed import api
from testbed.bed import ControlPlane
from testbed.pytest_plugin import make_namespace

NONE = "no webhook"
LABEL = "scheduler.alpha.kubernetes.io/managed"


@contextlib.contextmanager
def registered(bed: ControlPlane, contenders: Sequence[Contender]) -> Iterator[dict[str, str]]:
    """The namespace of each, with its configuration; removed afterwards."""
    kube = bed.api()
    run = secrets.token_hex(3)  # a namespace of the last run may still be on its way out
    names = {NONE: f"bench-{run}-none"}
    names |= {each.name: f"bench-{run}-{number}" for number, each in enumerate(contenders)}
    for namespace in names.values():
        make_namespace(kube, namespace)
    for each in contenders:
        kube.create("mutatingwebhookconfigurations", _configuration(bed, each, names[each.name]))
    try:
        yield names
    finally:
        for each in contenders:
            kube.delete("mutatingwebhookconfigurations", names[each.name])
        for namespace in names.values():
            kube.delete("namespaces", namespace)


def is_called(bed: ControlPlane, namespace: str) -> bool:
    """Whether a pod that is created there comes out changed."""
    made = bed.api().create("pods", review.pod("0"), namespace, dry_run=True)
    return LABEL in made["metadata"]["labels"]


def measure(
    bed: ControlPlane,
    namespaces: dict[str, str],
    program: Path,
    folder: Path,
    *,
    seconds: float,
    core: int,
    clients: int = 2,
) -> dict[str, Turns]:
    """Creations, as many at a time as there are clients."""
    body = folder / "pod.json"
    body.write_bytes(msgspec.json.encode(review.pod("0")))
    client = bed.layout.ca.client("bench", user="bench", groups=["system:masters"])
    to = {name: f"{bed.server}{api.path('pods', None, where)}?dryRun=All" for name, where in namespaces.items()}
    options = (f"-connections={clients}", f"-seconds={seconds:g}", f"-cert={client.cert}", f"-key={client.key}")
    return load.turns(program, to, body, *options, core=core)


def _configuration(bed: ControlPlane, contender: Contender, namespace: str) -> api.Object:
    bundle = base64.b64encode(bed.layout.ca.bundle()).decode()
    own = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [namespace]}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": namespace},
        "webhooks": [
            {
                "name": f"{namespace}.bench.spotshift.dev",
                "admissionReviewVersions": ["v1"],
                "clientConfig": {"url": contender.url, "caBundle": bundle},
                "failurePolicy": "Fail",
                "timeoutSeconds": 10,
                "sideEffects": "None",
                "namespaceSelector": {"matchExpressions": [own]},
                "rules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
                ],
            }
        ],
    }
