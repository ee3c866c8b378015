"""Rights of ServiceAccounts: what manifests grant, and what was used of it.   Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from testbed.audit import Request

Right = tuple[str, str]
"""Verb and resource, the resource with its API group and subresource: `("create", "pods/eviction")`."""
Rights = Mapping[str, frozenset[Right]]
"""By name of the ServiceAccount."""


@dataclass(frozen=True, slots=True)
class Role:
    """Rights that come together, and the accounts that have them: one may stand in for another."""

    name: str
    accounts: tuple[str, ...]
    rights: frozenset[Right]


def roles(documents: Sequence[Mapping[str, Any]]) -> list[Role]:
    """What the roles among the manifests grant, and to whom they are bound."""
    bound: dict[tuple[str, str], list[str]] = {}
    for binding in (it for it in documents if "roleRef" in it):
        key = binding["roleRef"]["kind"], binding["roleRef"]["name"]
        bound.setdefault(key, []).extend(it["name"] for it in binding["subjects"])
    return [
        Role(
            f"{it['kind']} {it['metadata']['name']}",
            tuple(sorted(bound.get((it["kind"], it["metadata"]["name"]), ()))),
            frozenset(right for rule in it["rules"] for right in of_rule(rule)),
        )
        for it in documents
        if "rules" in it
    ]


def granted(documents: Sequence[Mapping[str, Any]]) -> Rights:
    """The same by account."""
    found: dict[str, set[Right]] = {
        it["metadata"]["name"]: set() for it in documents if it["kind"] == "ServiceAccount"
    }
    for role in roles(documents):
        for account in role.accounts:
            found.setdefault(account, set()).update(role.rights)
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

    def join(self, other: "Used") -> None:
        """What was used elsewhere too."""
        for table, refused in ((other.counts, False), (other.refused, True)):
            for account, counted in table.items():
                for right, count in counted.items():
                    self.add(account, right, count, refused=refused)

    def rights(self, account: str) -> frozenset[Right]:
        """What was used. A list and a watch are one right in two forms: a server can stream a list as a watch."""
        found = set(self.counts.get(account, {}))
        return frozenset(found | {("list", resource) for verb, resource in found if verb == "watch"})


def unused(given: Sequence[Role], used: Used) -> list[tuple[str, Right]]:
    """Granted, and never asked for by any account that has the role."""
    return [
        (role.name, right)
        for role in given
        for right in sorted(role.rights)
        if not any(right in used.rights(account) for account in role.accounts)
    ]


def exceeded(given: Sequence[Role], used: Used) -> list[tuple[str, Right]]:
    """Asked for and refused, and granted by no role of the account. What is granted is refused for a moment by an API
    server that has just started.
    """
    accounts = {account for role in given for account in role.accounts}
    return [
        (account, right)
        for account in sorted(accounts)
        for right in sorted(used.refused.get(account, {}))
        if not any(right in role.rights for role in given if account in role.accounts)
    ]


def matrix(given: Sequence[Role], used: Used) -> str:
    """A row for each role and resource, and how often each verb was used by all accounts that have the role."""
    never = set(unused(given, used))
    lines = ["| role | of | resource | verbs, and how often each was used |", "|---|---|---|---|"]
    for role in given:
        verbs: dict[str, list[str]] = {}
        for verb, resource in sorted(role.rights):
            count = sum(used.counts.get(it, {}).get((verb, resource), 0) for it in role.accounts)
            told = "**never**" if (role.name, (verb, resource)) in never else f"{count:,}" if count else "as watch"
            verbs.setdefault(resource, []).append(f"{verb} {told}")
        for resource, all_of_it in sorted(verbs.items()):
            lines.append(f"| {role.name} | {', '.join(role.accounts)} | {resource} | {', '.join(all_of_it)} |")
    return "\n".join(lines)
