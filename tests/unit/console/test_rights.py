"""What `check` asks for is what the manifests grant: no more, no less."""

from pathlib import Path

import pytest
import yaml

from console.health import parts, rights
from policy import names

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
    found = yaml.safe_load_all((BASE / "migrations" / "policies.yaml").read_text())
    assert set(parts.POLICIES) == {
        it["metadata"]["name"] for it in found if it["kind"] == "ValidatingAdmissionPolicy"
    }
