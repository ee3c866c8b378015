"""Manifests become processes: their ServiceAccount, their volumes, and Services in front of them."""

import os
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
import urllib3

from testbed import bed, install, kubelet, process, sources
from testbed.binaries import Binaries
from testbed.proxy import FaultProxy
from testbed.waiting import eventually, patient


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory, control_plane_binaries: Binaries) -> Iterator[bed.ControlPlane]:
    home = tmp_path_factory.mktemp("install") / "bed"
    yield bed.up(home, control_plane_binaries, owner=os.getpid())
    bed.down(home)


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


def installed(own: bed.ControlPlane, folder: Path, text: str) -> list[str]:
    """What `install` tells about a kustomize folder with this text in it."""
    (folder / "kustomization.yaml").write_text(textwrap.dedent(KUSTOMIZATION))
    (folder / "all.yaml").write_text(textwrap.dedent(text))
    told: list[str] = []
    install.install(own, folder, tell=told.append)
    return told


def test_process_has_the_rights_of_its_service_account(own: bed.ControlPlane, tmp_path: Path) -> None:
    told = installed(own, tmp_path, RUNS_AS_ITSELF)
    assert [line for line in told if line.startswith("pod/")] == [
        "pod/reader-0 started as default/reader",
        "pod/reader-1 started as default/reader",
    ]
    eventually(lambda: own.tail("reader-1.main"), until=lambda text: text == "configmaps 1\nsecrets 403\n")
    before = {found.pid for name, found in process.running(own.home) if name.startswith("reader")}
    installed(own, tmp_path, RUNS_AS_ITSELF)
    after = {found.pid for name, found in process.running(own.home) if name.startswith("reader")}
    assert len(before) == len(after) == 2
    assert not before & after, "a second install replaces the processes"
    installed(own, tmp_path, RUNS_AS_ITSELF.replace("replicas: 2", "replicas: 1"))
    assert [name for name in install.status(own) if name.startswith("reader")] == ["reader-0.main"], "a smaller one"


def test_a_process_ends_with_what_wanted_it(own: bed.ControlPlane, tmp_path: Path) -> None:
    """Scaled down and deleted, as pods are."""
    installed(own, tmp_path, RUNS_AS_ITSELF)

    def left() -> set[str]:
        return {name for name in process.mains(own.home) if name.startswith("reader")}

    assert left() == {"reader-0.main", "reader-1.main"}
    own.kubectl("scale", "deployment", "reader", "--replicas=1")
    eventually(left, until=lambda names: names == {"reader-0.main"}, what="one less")
    own.kubectl("delete", "deployment", "reader")
    eventually(left, until=lambda names: not names, what="none")
    eventually(
        lambda: [name for name in install.status(own) if name.startswith("reader")],
        until=lambda names: not names,
        what="nobody who is missed",
    )


def test_a_pod_can_be_led_through_a_proxy(own: bed.ControlPlane, tmp_path: Path) -> None:
    with FaultProxy(own) as proxy:
        kubelet.lead(own, "reader-1", proxy.server)
        installed(own, tmp_path, RUNS_AS_ITSELF)
        eventually(lambda: len(proxy.requests), until=lambda count: count == 2, what="the requests of one of the two")
        assert {it.resource for it in proxy.requests} == {"configmaps", "secrets"}
    own.kubectl("delete", "deployment", "reader")
    eventually(lambda: "reader-1.main" not in install.status(own), what="its end")


FOLLOWS = """\
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: page}
    data: {index.html: first}
    ---
    apiVersion: v1
    kind: Service
    metadata: {name: pages}
    spec: {selector: {app: pages}, ports: [{port: 80, targetPort: http}]}
    ---
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: pages}
    spec:
      replicas: 2
      selector: {matchLabels: {app: pages}}
      template:
        metadata: {labels: {app: pages}}
        spec:
          containers:
          - name: main
            image: pages:1
            command: [python, -m, http.server]
            args: ["8000", --bind=127.0.0.1, --directory=/srv/pages]
            ports: [{name: http, containerPort: 8000}]
            readinessProbe: {httpGet: {path: /index.html, port: http}}
            volumeMounts: [{name: page, mountPath: /srv/pages}]
          volumes:
          - name: page
            configMap: {name: page}
    """


def page(port: int) -> str:
    return urllib3.request("GET", f"http://127.0.0.1:{port}/index.html", retries=False, timeout=5).data.decode()


@pytest.fixture
def pages(own: bed.ControlPlane, tmp_path: Path) -> int:
    """The port of a Service in front of two processes that show a ConfigMap."""
    told = installed(own, tmp_path, FOLLOWS)
    return int(told[-1].removeprefix("service pages.default:80 is 127.0.0.1:"))


def test_mounted_files_follow_the_object(own: bed.ControlPlane, pages: int) -> None:
    assert page(pages) == "first"
    own.api().patch("configmaps", "page", {"data": {"index.html": "second"}}, "default")
    eventually(lambda: {page(pages), page(pages)}, until=lambda seen: seen == {"second"}, what="both replicas")


def test_mounted_files_follow_after_the_apiserver_was_away(own: bed.ControlPlane, pages: int) -> None:
    own.restart("kube-apiserver", grace_seconds=0)
    own.api().patch("configmaps", "page", {"data": {"index.html": "later"}}, "default")
    eventually(lambda: {page(pages), page(pages)}, until=lambda seen: seen == {"later"}, what="both replicas")


def test_a_service_passes_over_what_does_not_run(own: bed.ControlPlane, pages: int, tmp_path: Path) -> None:
    own.stop("pages-0.main", grace_seconds=0)
    assert [page(pages) for _ in range(4)] == ["first"] * 4
    assert {name: bool(pid) for name, pid in install.status(own).items() if name.startswith("pages")} == {
        "pages-0.main": False,
        "pages-1.main": True,
    }
    assert installed(own, tmp_path, FOLLOWS)[-1].endswith(f":{pages}"), "a second install keeps the ports"


def test_a_pod_waits_for_its_secret(own: bed.ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a kubelet has it; the error names what is missing."""
    monkeypatch.setattr(install, "READY_TIMEOUT_SECONDS", 0.5)
    with pytest.raises(install.NotInstalled, match=r"pages-0: volume page: configmaps 'absent' not found"):
        installed(own, tmp_path, FOLLOWS.replace("configMap: {name: page}", "configMap: {name: absent}"))
    assert not [name for name in process.mains(own.home) if name.startswith("pages")], "nothing is left running"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(("/index.html", "/absent"), r"(?s)not ready after .*pages-0.main:.*GET /absent", id="not ready"),
        pytest.param(("--bind", "--no-such-flag"), r"(?s)pages-[01].main ended:.*no-such-flag", id="ends"),
    ],
)
def test_what_does_not_work_is_told_with_its_last_words(
    own: bed.ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: tuple[str, str], message: str
) -> None:
    monkeypatch.setattr(install, "READY_TIMEOUT_SECONDS", patient(5))
    with pytest.raises(install.NotInstalled, match=message):
        installed(own, tmp_path, FOLLOWS.replace(*change))
    assert not [name for name in process.mains(own.home) if name.startswith("pages")], "nothing is left running"


def test_tokens_are_renewed(own: bed.ControlPlane, pages: int) -> None:
    pod = next(pod for pod in kubelet.remembered(own) if pod.name == "pages-0")
    token = kubelet.folder(own) / pod.name / "volumes" / "kube-api-access" / "token"
    first, made = token.read_text(), token.stat().st_mtime
    almost = made + kubelet.TOKEN_SECONDS * kubelet.RENEW_AT
    kubelet.sync(own, own.api(), pod, now=almost - 1)
    assert token.read_text() == first
    own.stop("kubelet", grace_seconds=0)
    assert kubelet.sync(own, own.api(), pod, now=almost + 1) == ["kube-api-access"]
    assert token.read_text() != first


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
    with pytest.raises(sources.NotApplied, match=message):
        install.install(own, tmp_path, tell=print)
