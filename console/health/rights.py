"""Whether the processes may do what they have to, and what the person who asks may do with this plugin.

The API server itself is asked (SubjectAccessReview), not the roles: there are other ways to grant a right. The tables
are those of the manifests; a test compares them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple

from cluster import errors
from cluster.client import Client
from cluster.meta import Part
from cluster.resources import SELFSUBJECTACCESSREVIEWS, SUBJECTACCESSREVIEWS
from console.health.finding import APPLY, Finding, Level
from policy import names

AT_ONCE: Final = 8
"""Reviews that are asked for at the same time: a far cluster takes a moment for each of some eighty."""


class Right(NamedTuple):
    """One verb on one resource."""

    verb: str
    group: str
    resource: str
    """With its subresource: `pods/eviction`."""

    def __str__(self) -> str:
        """As people see it."""
        return f"{self.verb} {self.resource}.{self.group}" if self.group else f"{self.verb} {self.resource}"


Table = Mapping[tuple[str, str], str]
"""Verbs by group and resource."""

DESCHEDULER: Final[Table] = {
    ("", "pods"): "list watch get patch",
    ("", "nodes"): "list watch patch",
    ("", "namespaces"): "list watch",
    ("", "persistentvolumeclaims"): "list watch",
    ("", "persistentvolumes"): "list watch",
    ("", "pods/eviction"): "create",
    ("apps", "deployments"): "list watch get patch",
    ("apps", "replicasets"): "list watch get patch",
    ("apps", "statefulsets"): "list watch patch",
    ("apps", "daemonsets"): "list watch",
    ("apps", "deployments/scale"): "patch",
    ("apps", "replicasets/scale"): "patch",
    ("batch", "jobs"): "list watch",
    ("policy", "poddisruptionbudgets"): "list watch create patch delete",
    ("autoscaling", "horizontalpodautoscalers"): "list watch",
    ("storage.k8s.io", "storageclasses"): "list watch",
    ("storage.k8s.io", "csinodes"): "list watch",
    ("scheduling.k8s.io", "priorityclasses"): "list watch",
    ("metrics.k8s.io", "nodes"): "list",
    ("metrics.k8s.io", "pods"): "list",
    ("spotshift.dev", "podmigrations"): "list watch create patch delete",
    ("spotshift.dev", "podmigrations/status"): "patch",
    ("events.k8s.io", "events"): "create patch",
}
WEBHOOK: Final[Table] = {
    ("", "namespaces"): "list watch",
    ("", "nodes"): "list watch",
    ("", "pods"): "list watch",
    ("apps", "deployments"): "list watch",
    ("apps", "replicasets"): "list watch",
    ("apps", "statefulsets"): "list watch",
    ("batch", "jobs"): "list watch",
    ("batch", "cronjobs"): "list watch",
    ("scheduling.k8s.io", "priorityclasses"): "list watch",
    ("spotshift.dev", "podmigrations"): "list watch",
}
ACCOUNTS: Final = {names.DESCHEDULER: DESCHEDULER, names.WEBHOOK: WEBHOOK}

PERSON: Final[Mapping[str, tuple[Right, ...]]] = {
    "status, nodes, plan, explain, top": (Right("list", "", "nodes"), Right("list", "", "pods")),
    "migrations": (Right("list", "spotshift.dev", "podmigrations"),),
    "migrate": (Right("get", "", "pods"), Right("create", "spotshift.dev", "podmigrations")),
    "maintenance": (Right("get", "", "nodes"), Right("patch", "", "nodes")),
}
"""What commands need, at least."""
IN_NAMESPACE: Final = frozenset({"migrations", "migrate"})
"""Commands for which a RoleBinding in the namespace is enough."""


class _Answer(Part, frozen=True):
    allowed: bool = False


class _Review(Part, frozen=True):
    status: _Answer = _Answer()


def of_processes(client: Client, namespace: str) -> Iterator[Finding]:
    """One finding for each ServiceAccount."""
    for account, table in ACCOUNTS.items():
        wanted = rights(table)
        try:
            missing = [
                right
                for right, may in zip(wanted, _asked(client, wanted, _account(account, namespace)), strict=True)
                if not may
            ]
        except errors.Forbidden as denied:
            yield Finding("rights", Level.UNKNOWN, f"{account}: {denied.message}")
            continue
        if missing:
            text = f"{account} may not: {', '.join(map(str, missing))}"
            yield Finding("rights", Level.FAILED, text, f"{APPLY}: that brings its roles")
        else:
            yield Finding("rights", Level.OK, f"{account} may do all {len(wanted)} things it has to")


def of_person(client: Client, namespace: str | None) -> Finding:
    """What the person who asks may not do with this plugin, in one namespace or, with None, in all."""
    wanted = [(command, right) for command, needed in PERSON.items() for right in needed]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = pool.map(lambda it: _may(client, it[1], _where(it[0], namespace)), wanted)
    missing: dict[str, list[str]] = {}
    for (command, right), may in zip(wanted, answers, strict=True):
        if not may:
            missing.setdefault(command, []).append(str(right))
    if not missing:
        return Finding("your rights", Level.OK, "you may use every command")
    text = "; ".join(
        f"{command}{_place(command, namespace)}: you may not {', '.join(needed)}"
        for command, needed in missing.items()
    )
    return Finding("your rights", Level.WARNING, text, "docs/kubectl-plugin.md has what each command needs")


def makes_copies(client: Client, namespace: str) -> bool:
    """Whether the descheduler may create pods, which the component recreate lets it. Raises Forbidden."""
    return _may(client, Right("create", "", "pods"), "", _account(names.DESCHEDULER, namespace))


def rights(table: Table) -> list[Right]:
    """Each verb by itself."""
    return [Right(verb, group, resource) for (group, resource), verbs in table.items() for verb in verbs.split()]


def _where(command: str, namespace: str | None) -> str:
    """The namespace to ask for; none is all of them."""
    return namespace or "" if command in IN_NAMESPACE else ""


def _place(command: str, namespace: str | None) -> str:
    where = _where(command, namespace)
    return f" in namespace {where}" if where else ""


def _account(name: str, namespace: str) -> dict[str, Any]:
    """A ServiceAccount, as a review names it."""
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
    return {"user": f"system:serviceaccount:{namespace}:{name}", "groups": groups}


def _asked(client: Client, wanted: Sequence[Right], account: Mapping[str, Any]) -> list[bool]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda right: _may(client, right, "", account), wanted))


def _may(client: Client, right: Right, where: str, account: Mapping[str, Any] | None = None) -> bool:
    """Of a ServiceAccount, or of oneself where none is named."""
    resource, _, subresource = right.resource.partition("/")
    attributes = {
        "namespace": where,
        "verb": right.verb,
        "group": right.group,
        "resource": resource,
        "subresource": subresource,
    }
    spec = {"resourceAttributes": {key: value for key, value in attributes.items() if value}, **(account or {})}
    review = SUBJECTACCESSREVIEWS if account else SELFSUBJECTACCESSREVIEWS
    body = {"apiVersion": review.api_version, "kind": review.kind, "spec": spec}
    return client.create(review, body, type=_Review).status.allowed
