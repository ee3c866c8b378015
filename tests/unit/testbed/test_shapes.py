"""Deployments that are not what they have to be, from manifests that somebody is still writing."""

from pathlib import Path
from typing import Any

import pytest

from testbed import pods
from testbed.api import Object


def deployment() -> Object:
    main = {"name": "main", "command": ["serve", "--listen=:80"], "ports": [{"containerPort": 80}]}
    template = {"spec": {"containers": [main], "volumes": [{"name": "etc", "emptyDir": {}}]}}
    return {"kind": "Deployment", "metadata": {"name": "web"}, "spec": {"template": template}}


def planned(made: Object) -> list[pods.Pod]:
    ports = {"web-0.main:80": 20000}
    return pods.plan(made, pods.Place(Path("/bed/pods"), ports, lambda program: f"/bin/{program}", {}))


def without(field: str) -> Object:
    """A Deployment in which one field is missing."""
    made = deployment()
    *path, last = (int(it) if it.isdigit() else it for it in field.split("."))
    found: Any = made
    for step in path:
        found = found[step]
    del found[last]
    return made


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("spec", "spec"),
        ("spec.template", "spec.template"),
        ("spec.template.spec", "spec.template.spec"),
        ("spec.template.spec.containers", "spec.template.spec.containers"),
        ("spec.template.spec.containers.0.name", "spec.template.spec.containers[0].name"),
        ("spec.template.spec.containers.0.ports.0.containerPort", "spec.template.spec.containers[0].ports[0].c"),
        ("spec.template.spec.volumes.0.name", "spec.template.spec.volumes[0].name"),
    ],
)
def test_a_field_that_is_missing_is_named(field: str, said: str) -> None:
    made = without(field)
    for ask in (pods.port_names, planned):
        with pytest.raises(pods.Unsupported) as refused:
            ask(made)
        assert str(refused.value).startswith(f"Deployment web: {said}")
        assert str(refused.value).endswith(" is missing")


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"replicas": "two"}, "spec.replicas: 'two' is not accepted, use a whole number"),
        ({"template": 5}, "spec.template: 5 is not accepted, use a mapping"),
        ({"template": {"spec": {"containers": {}}}}, "spec.template.spec.containers: {} is not accepted, use a list"),
    ],
)
def test_a_field_that_is_something_else_is_named(spec: Object, said: str) -> None:
    made = deployment()
    with pytest.raises(pods.Unsupported) as refused:
        planned({**made, "spec": {**made["spec"], **spec}})
    assert str(refused.value) == f"Deployment web: {said}"


def test_null_is_the_same_as_no_field() -> None:
    made = deployment()
    (main,) = made["spec"]["template"]["spec"]["containers"]
    main |= dict.fromkeys(["env", "volumeMounts", "readinessProbe", "args"])
    made["spec"]["template"]["spec"]["volumes"][0]["emptyDir"] = None
    assert planned(made) == planned(deployment())
