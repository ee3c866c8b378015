"""What `check` asks for is what the manifests grant: no more, no less."""

from pathlib import Path

import pytest
import yaml

from console.health import fences, rights
from console.health.finding import Level
from policy import names
from tests.unit.cluster import fake_api
from tests.unit.cluster.fake_api import Answer, Seen, status

MANIFESTS = Path(__file__).parents[3] / "manifests"
BASE = MANIFESTS / "base"
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


def shipped(kind: str) -> set[str]:
    """Names of all objects of a kind; the chart is made of the same."""
    files = [it for it in MANIFESTS.rglob("*.yaml") if not it.is_relative_to(MANIFESTS / "chart")]
    found = [it for file in files for it in yaml.safe_load_all(file.read_text())]
    return {it["metadata"]["name"] for it in found if it and it.get("kind") == kind}


def test_the_policies_are_those_of_the_manifests() -> None:
    policies = shipped("ValidatingAdmissionPolicy")
    assert {*fences.POLICIES, *fences.OF_CERTS, *fences.OF_COPIES} == policies
    assert shipped("ValidatingAdmissionPolicyBinding") == policies


OF_ALL = {*fences.POLICIES, *fences.OF_CERTS}
COPIES = set(fences.OF_COPIES)
FENCES: dict[str, tuple[bool | None, set[str], set[str], Level, str]] = {
    "without copies": (False, OF_ALL, OF_ALL, Level.OK, "all 6 admission policies are in place and deny"),
    "with copies": (
        True,
        OF_ALL | COPIES,
        OF_ALL | COPIES,
        Level.OK,
        "all 7 admission policies are in place and deny",
    ),
    "nobody tells of rights": (None, OF_ALL, OF_ALL, Level.OK, "all 6 admission policies are in place and deny"),
    "nobody tells of rights, and one is gone": (
        None,
        OF_ALL - {"spotshift-descheduler-fence"},
        OF_ALL,
        Level.FAILED,
        "missing: spotshift-descheduler-fence",
    ),
    "no policy for copies": (True, OF_ALL, OF_ALL, Level.FAILED, "missing: spotshift-descheduler-copies"),
    "no binding for copies": (
        True,
        OF_ALL | COPIES,
        OF_ALL,
        Level.FAILED,
        "without a binding that denies: spotshift-descheduler-copies",
    ),
}


@pytest.mark.parametrize(("may_copy", "there", "bound", "level", "text"), FENCES.values(), ids=FENCES.keys())
def test_copies_are_fenced_where_they_may_be_made(
    may_copy: bool | None, there: set[str], bound: set[str], level: Level, text: str
) -> None:
    listed = {
        "validatingadmissionpolicies": [{"metadata": {"name": it}} for it in there],
        "validatingadmissionpolicybindings": [
            {"metadata": {"name": it}, "spec": {"policyName": it, "validationActions": ["Deny"]}} for it in bound
        ],
    }

    def script(seen: Seen) -> Answer:
        if seen.method == "POST":
            assert seen.body["spec"]["user"] == f"system:serviceaccount:{names.NAMESPACE}:{names.DESCHEDULER}"
            asked = seen.body["spec"]["resourceAttributes"]
            if may_copy is None:
                return status(403, "Forbidden", "not for you")
            return Answer(201, {"status": {"allowed": may_copy and asked == {"verb": "create", "resource": "pods"}}})
        items = listed.get(seen.path.rpartition("/")[2], [])
        return Answer(body={"metadata": {"name": "it", "resourceVersion": "1"}, "items": items})

    with fake_api.running() as api:
        api.script = script
        found = fences.check(api.client(rate_limit=None), names.NAMESPACE)
    assert (found.level, found.text) == (level, text)


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
