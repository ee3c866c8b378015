"""Rights of ServiceAccounts: what manifests grant, and what was used of it.   Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from testbed.audit import Request

Right = tuple[str, str]
"""Verb and resource, the resource with its API group and subresource: `("create", "pods/eviction")`."""
Rights = Mapping[str, frozenset[Right]]
"""By name of the ServiceAccount."""


def granted(documents: Sequence[Mapping[str, Any]]) -> Rights:
    """What the roles among the manifests give to the accounts that are bound to them."""
    roles = {(it["kind"], it["metadata"]["name"]): it["rules"] for it in documents if "rules" in it}
    found: dict[str, set[Right]] = {
        it["metadata"]["name"]: set() for it in documents if it["kind"] == "ServiceAccount"
    }
    for binding in (it for it in documents if "roleRef" in it):
        rules = roles.get((binding["roleRef"]["kind"], binding["roleRef"]["name"]), ())
        for subject in binding["subjects"]:
            found.setdefault(subject["name"], set()).update(right for rule in rules for right in of_rule(rule))
    return {name: frozenset(rights) for name, rights in found.items()}


def of_rule(rule: Mapping[str, Any]) -> Iterator[Right]:
    """Every verb on every resource of one rule."""
    for group in rule["apiGroups"]:
        for resource in rule["resources"]:
            name, _, part = resource.partition("/")
            full = name + (f".{group}" if group else "") + (f"/{part}" if part else "")
            yield from ((verb, full) for verb in rule["verbs"])


@dataclass(slots=True)
class Used:
    """By account: how often each right was used, and what was refused."""

    counts: dict[str, dict[Right, int]] = field(default_factory=dict)
    refused: dict[str, dict[Right, int]] = field(default_factory=dict)

    def add(self, account: str, right: Right, count: int, *, refused: bool = False) -> None:
        """So many more."""
        known = (self.refused if refused else self.counts).setdefault(account, {})
        known[right] = known.get(right, 0) + count

    def take(self, requests: Iterable[Request]) -> None:
        """Those of ServiceAccounts; the last part of the user is the account, wherever a test put it."""
        for it in requests:
            if it.resource:
                account = it.user.rpartition(":")[2]
                self.add(account, (it.verb, it.resource), 1, refused=it.decision == "forbid")

    def rights(self, account: str) -> frozenset[Right]:
        """What was used. A list and a watch are one right in two forms: a server can stream a list as a watch."""
        found = set(self.counts.get(account, {}))
        return frozenset(found | {("list", resource) for verb, resource in found if verb == "watch"})


def unused(given: Rights, used: Used) -> list[tuple[str, Right]]:
    """Granted, and never asked for."""
    return [(name, right) for name, rights in sorted(given.items()) for right in sorted(rights - used.rights(name))]


def matrix(given: Rights, used: Used) -> str:
    """A row for each account and resource, and how often each verb was used."""
    lines = ["| account | resource | verbs, and how often each was used |", "|---|---|---|"]
    for name, rights in sorted(given.items()):
        resources: dict[str, list[str]] = {}
        for verb, resource in sorted(rights):
            count = used.counts.get(name, {}).get((verb, resource), 0)
            streamed = verb == "list" and not count and ("list", resource) in used.rights(name)
            told = "as watch" if streamed else f"{count:,}" if count else "**never**"
            resources.setdefault(resource, []).append(f"{verb} {told}")
        lines += [f"| {name} | {resource} | {', '.join(verbs)} |" for resource, verbs in sorted(resources.items())]
    return "\n".join(lines)
