"""Whether the API server gets an answer from the webhook: a pod is created that is never there (server dry run).

The webhook fails open, so a webhook that is down shows in nothing but pods without its label. The dry run asks for
exactly that: it has no side effect, and ours gives the same answer as for a real pod.
"""

from __future__ import annotations

from typing import Any, Final

from cluster import errors
from cluster.client import Client
from cluster.meta import ObjectMeta, Part
from cluster.objects import PartialObjectMetadata
from cluster.resources import MUTATINGWEBHOOKCONFIGURATIONS, NAMESPACES, PODS
from console.health.finding import Finding, Level
from console.installation import InForce
from policy import keys, names
from policy.settings import Mode
from policy.values import Rescheduling

CHECK: Final = "webhook"


class _Webhook(Part, frozen=True):
    name: str = ""
    failure_policy: str = ""


class _Configuration(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    webhooks: tuple[_Webhook, ...] = ()


def check(client: Client, namespace: str, in_force: InForce, *, system: str) -> Finding:
    """Is it asked, and does it answer? `namespace` is where a pod is tried."""
    try:
        found = client.get(MUTATINGWEBHOOKCONFIGURATIONS, names.WEBHOOK, type=_Configuration)
    except errors.NotFound:
        return Finding(
            CHECK, Level.FAILED, f"there is no MutatingWebhookConfiguration {names.WEBHOOK}", _advice(system)
        )
    except errors.Forbidden:
        found = _Configuration()
    closed = [it.name for it in found.webhooks if it.failure_policy == "Fail"]
    if closed:
        text = f"{', '.join(closed)} has failurePolicy Fail: no pod is created while it is down"
        return Finding(CHECK, Level.WARNING, text, "failurePolicy: Ignore is what the manifests have")
    return _tried(client, namespace, in_force, system)


def _advice(system: str) -> str:
    return (
        f"kubectl -n {system} logs deployment/{names.WEBHOOK}; check its certificates; settings that were changed "
        "within the last minute may not be in force yet, and another labelPrefix takes a restart"
    )


def _tried(client: Client, namespace: str, in_force: InForce, system: str) -> Finding:
    try:
        made = client.create(PODS, _pod(), namespace=namespace, type=PartialObjectMetadata, dry_run=True)
    except (errors.Forbidden, errors.Invalid, errors.NotFound) as refused:
        text = f"a pod could not be tried in namespace {namespace}: {refused.message}"
        return Finding(CHECK, Level.UNKNOWN, text, "use -n with a namespace in which you may create pods")
    settings = in_force.settings
    if keys.under(settings.label_prefix).managed in made.metadata.labels:
        return Finding(CHECK, Level.OK, f"answers: a pod in namespace {namespace} would be looked after")
    if settings.mode is Mode.OBSERVE:
        text = "cannot be tried: the mode is observe, in which pods are left as they are"
        return Finding(CHECK, Level.WARNING, text, "in the mode enforce, ask again")
    return _left_alone(client, namespace, in_force, system)


def _left_alone(client: Client, namespace: str, in_force: InForce, system: str) -> Finding:
    """Why a pod has no label in the mode enforce."""
    settings = in_force.settings
    if namespace in settings.excluded_namespaces or namespace == system:
        text = f"cannot be seen: namespace {namespace} is excluded, so pods are left as they are"
        return Finding(CHECK, Level.UNKNOWN, text, "use -n with a namespace that is not excluded")
    said = _opted(client, namespace, settings.label_prefix)
    if said not in {"", Rescheduling.ENABLED.value}:
        text = f"cannot be seen: namespace {namespace} says rescheduling={said}, so pods are left as they are"
        return Finding(CHECK, Level.UNKNOWN, text, "use -n with a namespace that says nothing of the kind")
    if in_force.guessed:
        text = (
            f"cannot be seen: a pod in namespace {namespace} gets no label, but the settings in force are not known"
        )
        return Finding(CHECK, Level.UNKNOWN, text, "mend the settings, then ask again")
    text = f"gives no answer: a pod in namespace {namespace} would be created without its label"
    return Finding(CHECK, Level.FAILED, text, _advice(system))


def _opted(client: Client, namespace: str, prefix: str) -> str:
    """What the namespace says of moving; empty if nothing, or if nobody may look."""
    try:
        found = client.get(NAMESPACES, namespace, type=PartialObjectMetadata).metadata
    except errors.ApiError:
        return ""
    key = keys.under(prefix).rescheduling
    return found.annotations.get(key) or found.labels.get(key, "")


def _pod() -> dict[str, Any]:
    """A pod that the strictest security standard lets through."""
    fenced = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    small = {"cpu": "1m", "memory": "1Mi"}
    container = {
        "name": "check",
        "image": "spotshift-check",
        "securityContext": fenced,
        "resources": {"requests": small, "limits": {"cpu": "10m", "memory": "10Mi"}},
    }
    secure = {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "spotshift-check-"},
        "spec": {"containers": [container], "securityContext": secure, "automountServiceAccountToken": False},
    }
