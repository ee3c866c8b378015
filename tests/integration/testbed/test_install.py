"""The product's manifests go in as they are; processes run with the rights of their ServiceAccount."""

import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed import bed, install, process
from testbed.binaries import Binaries
from testbed.waiting import eventually


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory, control_plane_binaries: Binaries) -> Iterator[bed.ControlPlane]:
    home = tmp_path_factory.mktemp("install") / "bed"
    yield bed.up(home, control_plane_binaries)
    bed.down(home)


def test_product_manifests_are_accepted(own: bed.ControlPlane) -> None:
    printed = list(install.install(own))
    assert "namespace/spotshift-system created" in printed
    assert own.api().get("priorityclasses", "high-priority")["value"] == 1000
    assert all(line.endswith("unchanged") for line in install.install(own)), "a second install changes nothing"


KUSTOMIZATION = """\
    apiVersion: kustomize.config.k8s.io/v1beta1
    kind: Kustomization
    namespace: default
    resources: [all.yaml]
    """

RUNS_AS_ITSELF = """\
    apiVersion: v1
    kind: ServiceAccount
    metadata: {name: reader}
    ---
    apiVersion: rbac.authorization.k8s.io/v1
    kind: Role
    metadata: {name: reader}
    rules: [{apiGroups: [""], resources: [configmaps], verbs: [list]}]
    ---
    apiVersion: rbac.authorization.k8s.io/v1
    kind: RoleBinding
    metadata: {name: reader}
    roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
    subjects: [{kind: ServiceAccount, name: reader}]
    ---
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: reader}
    spec:
      replicas: 2
      selector: {matchLabels: {app: reader}}
      template:
        metadata: {labels: {app: reader}}
        spec:
          serviceAccountName: reader
          containers:
          - name: main
            image: reader:1
            command: [python, -c]
            env: [{name: RESOURCES, value: "configmaps secrets"}]
            args:
            - |
              import os, signal
              from pathlib import Path
              from testbed import api
              client = api.connect(Path(os.environ["KUBECONFIG"]))
              for resource in os.environ["RESOURCES"].split():
                  try:
                      print(resource, len(client.list(resource, "default")), flush=True)
                  except api.ApiError as refusal:
                      print(resource, refusal.status, flush=True)
              signal.pause()
    """


def test_process_has_the_rights_of_its_service_account(own: bed.ControlPlane, tmp_path: Path) -> None:
    (tmp_path / "kustomization.yaml").write_text(textwrap.dedent(KUSTOMIZATION))
    (tmp_path / "all.yaml").write_text(textwrap.dedent(RUNS_AS_ITSELF))
    printed = list(install.install(own, tmp_path))
    assert sum(line.startswith("process/reader/main-") for line in printed) == 2
    eventually(lambda: own.tail("reader-main-1"), until=lambda text: text == "configmaps 1\nsecrets 403\n")
    before = {found.pid for name, found in process.running(own.home) if name.startswith("reader")}
    list(install.install(own, tmp_path))
    after = {found.pid for name, found in process.running(own.home) if name.startswith("reader")}
    assert len(before) == len(after) == 2
    assert not before & after, "a second install replaces the processes"
    (tmp_path / "all.yaml").write_text(textwrap.dedent(RUNS_AS_ITSELF).replace("replicas: 2", "replicas: 1"))
    list(install.install(own, tmp_path))
    assert sum(name.startswith("reader") for name, _ in process.running(own.home)) == 1, "so does a smaller one"


def only_container(container: str) -> dict[str, str]:
    deployment = f"""\
        apiVersion: apps/v1
        kind: Deployment
        metadata: {{name: odd}}
        spec:
          selector: {{matchLabels: {{app: odd}}}}
          template:
            metadata: {{labels: {{app: odd}}}}
            spec: {{containers: [{container.replace("{name: main", "{name: main, image: odd")}]}}
        """
    return {"kustomization.yaml": textwrap.dedent(KUSTOMIZATION), "all.yaml": textwrap.dedent(deployment)}


@pytest.mark.parametrize(
    ("files", "message"),
    [
        pytest.param({}, "has no kustomization.yaml", id="not a kustomize folder"),
        pytest.param({"kustomization.yaml": "resources: [absent.yaml]"}, "absent.yaml", id="missing file"),
        pytest.param(only_container("{name: main}"), "container main: no such command here", id="no command"),
        pytest.param(only_container("{name: main, command: [no-such-program]}"), "no-such-program", id="no program"),
        pytest.param(
            only_container(
                "{name: main, command: [sleep], env: [{name: A, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]}"
            ),
            "env A has no value",
            id="computed environment",
        ),
    ],
)
def test_bad_manifests_are_refused(
    own: bed.ControlPlane, tmp_path: Path, files: dict[str, str], message: str
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(install.NotInstalled, match=message):
        list(install.install(own, tmp_path))
