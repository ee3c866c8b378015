"""The shipped account of the extender and its rights, in a namespace of the test's."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import yaml

from bench.extender.stage import MANIFESTS
from testbed import access
from testbed.api import Api
from testbed.bed import ControlPlane

ACCOUNT = "spotshift-extender"


@contextlib.contextmanager
def rights(kube: Api, namespace: str) -> Iterator[None]:
    """Given while the block lasts."""
    account, role, binding = yaml.safe_load_all((MANIFESTS / "components" / "extender" / "rbac.yaml").read_text())
    account["metadata"]["namespace"] = binding["subjects"][0]["namespace"] = namespace
    name = f"{ACCOUNT}-{namespace}"
    role["metadata"]["name"] = binding["metadata"]["name"] = binding["roleRef"]["name"] = name
    kube.create("serviceaccounts", account, namespace)
    kube.create("clusterroles", role)
    kube.create("clusterrolebindings", binding)
    yield
    kube.delete("clusterrolebindings", name)
    kube.delete("clusterroles", name)


def kubeconfig(bed: ControlPlane, namespace: str) -> Path:
    """A login as that account."""
    return access.kubeconfig(bed, ACCOUNT, namespace)
