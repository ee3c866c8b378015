"""Whether the admission policies hold that users and our own programs are held to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cluster import errors
from cluster.client import Client
from cluster.meta import ObjectMeta, Part
from cluster.objects import PartialObjectMetadata
from cluster.resources import VALIDATINGADMISSIONPOLICIES, VALIDATINGADMISSIONPOLICYBINDINGS
from console.health import parts, rights
from console.health.finding import APPLY, Finding, Level
from policy import names

POLICIES: Final = (
    "spotshift-podmigrations",
    "spotshift-podmigrations-status",
    "spotshift-descheduler-fence",
    "spotshift-descheduler-budgets",
    "spotshift-descheduler-scale",
)
OF_CERTS: Final = ("spotshift-certs-secrets",)
"""With cert-manager in the place of certs, nobody has the rights that it limits."""
OF_COPIES: Final = ("spotshift-descheduler-copies",)
"""Shipped by the component recreate, together with the right that it limits."""
DENY: Final = "Deny"


class _Binds(Part, frozen=True):
    policy_name: str = ""
    validation_actions: tuple[str, ...] = ()


class _Binding(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: _Binds = _Binds()


def check(client: Client, namespace: str) -> Finding:
    """A policy does nothing until a binding makes it deny."""
    try:
        listed = client.list(VALIDATINGADMISSIONPOLICIES, type=PartialObjectMetadata, metadata_only=True)
        bindings = client.list(VALIDATINGADMISSIONPOLICYBINDINGS, type=_Binding).items
        wanted = (
            POLICIES
            + (OF_CERTS if parts.is_there(client, names.CERTS, namespace) else ())
            + (OF_COPIES if _makes_copies(client, namespace) else ())
        )
    except errors.Forbidden as denied:
        return Finding("policies", Level.UNKNOWN, denied.message)
    except errors.NotFound:
        return Finding("policies", Level.WARNING, "this server has no ValidatingAdmissionPolicies: nothing is fenced")
    there = {it.metadata.name for it in listed.items}
    denies = {it.spec.policy_name for it in bindings if DENY in it.spec.validation_actions}
    lacking = "; ".join(_lacking(wanted, there, denies))
    if lacking:
        return Finding("policies", Level.FAILED, lacking, APPLY)
    return Finding("policies", Level.OK, f"all {len(wanted)} admission policies are in place and deny")


def _makes_copies(client: Client, namespace: str) -> bool:
    """Who may not ask for the rights of others is told so by that check, and learns of the other policies here."""
    try:
        return rights.makes_copies(client, namespace)
    except errors.Forbidden:
        return False


def _lacking(wanted: tuple[str, ...], there: set[str], denies: set[str]) -> Iterator[str]:
    missing = [name for name in wanted if name not in there]
    if missing:
        yield f"missing: {', '.join(missing)}"
    idle = [name for name in wanted if name in there - denies]
    if idle:
        yield f"without a binding that denies: {', '.join(idle)}"
