"""What `check` asks for is what the manifests grant: no more, no less."""

from pathlib import Path

import pytest
import yaml

from console.health import fences, rights
from console.health.finding import Level
from policy import names
from tests.unit.cluster import fake_api
from tests.unit.cluster.fake_api import Answer, Seen

BASE = Path(__file__).parents[3] / "manifests" / "base"
FILES = {names.DESCHEDULER: BASE / "descheduler" / "rbac.yaml", names.WEBHOOK: BASE / "webhook" / "rbac.yaml"}


def granted(account: str) -> set[rights.Right]:
    """By the ClusterRole, less what is granted by name."""
    (role,) = (it for it in yaml.safe_load_all(FILES[account].read_text()) if it["kind"] == "ClusterRole")
    assert role["metadata"]["name"] == account
    return {
        rights.Right(verb, group, resource)
        for rule in role["rules"]
        if "resourceNames" not in rule
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


@pytest.mark.parametrize("account", rights.ACCOUNTS)
def test_the_tables_are_those_of_the_manifests(account: str) -> None:
    assert set(rights.rights(rights.ACCOUNTS[account])) == granted(account)


def test_the_policies_are_those_of_the_manifests() -> None:
    files = (BASE / "migrations" / "policies.yaml", BASE / "certs" / "policy.yaml")
    found = [it for file in files for it in yaml.safe_load_all(file.read_text())]
    assert {*fences.POLICIES, *fences.OF_CERTS} == {
        it["metadata"]["name"] for it in found if it["kind"] == "ValidatingAdmissionPolicy"
    }


def bound_in_shop(seen: Seen) -> Answer:
    """May see everything, and make moves in one namespace only."""
    asked = seen.body["spec"]["resourceAttributes"]
    here = asked["resource"] == "podmigrations" or (asked["resource"], asked["verb"]) == ("pods", "get")
    return Answer(
        201, {"status": {"allowed": asked.get("namespace") == "shop" if here else asked["verb"] != "patch"}}
    )


NODES = "maintenance: you may not patch nodes"
MOVES = "migrations{0}: you may not list {1}; migrate{0}: you may not get pods, create {1}; "
PEOPLE = {
    "where they may": ("shop", NODES),
    "where they may not": ("other", MOVES.format(" in namespace other", "podmigrations.spotshift.dev") + NODES),
    "everywhere": (None, MOVES.format("", "podmigrations.spotshift.dev") + NODES),
}


@pytest.mark.parametrize(("namespace", "text"), PEOPLE.values(), ids=PEOPLE.keys())
def test_a_right_in_one_namespace_is_enough_for_moves_there(namespace: str | None, text: str) -> None:
    with fake_api.running() as api:
        api.script = bound_in_shop
        found = rights.of_person(api.client(rate_limit=None), namespace)
    assert (found.level, found.text) == (Level.WARNING, text)
