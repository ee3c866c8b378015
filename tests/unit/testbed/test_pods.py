"""From a Deployment to processes: what is moved, what is kept, and what is refused in words."""

from pathlib import Path
from typing import Any

import pytest

from testbed import pods
from testbed.api import Object
from testbed.pods import Probe, Volume

FOLDER = Path("/bed/pods")


def container(**fields: Any) -> Object:
    return {"name": "main", "image": "app:1", "command": ["serve"], **fields}


def deployment(*containers: Object, replicas: int | None = None, **spec: Any) -> Object:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": list(containers), **spec}}
    return {
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"template": template, **({} if replicas is None else {"replicas": replicas})},
    }


def planned(made: Object) -> list[pods.Pod]:
    names = pods.port_names(made)
    place = pods.Place(
        FOLDER,
        {name: 20000 + index for index, name in enumerate(names)},
        lambda program: f"/bin/{program}" if program != "absent" else None,
        {"PATH": "/bin"},
    )
    return pods.plan(made, place)


def process(**fields: Any) -> pods.Process:
    (pod,) = planned(deployment(container(**fields), volumes=[{"name": "etc", "emptyDir": {}}]))
    return pod.processes[0]


LISTENS = {"ports": [{"name": "https", "containerPort": 8443}]}
MOUNTS = {"volumeMounts": [{"name": "etc", "mountPath": "/etc/app"}]}


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        pytest.param("--listen=:8443", "--listen=127.0.0.1:20000", id="any address"),
        pytest.param(":8443", "127.0.0.1:20000", id="address alone"),
        pytest.param("--listen=0.0.0.0:8443", "--listen=127.0.0.1:20000", id="any IPv4 address"),
        pytest.param("--listen=[::]:8443", "--listen=127.0.0.1:20000", id="any IPv6 address"),
        pytest.param("--port=8443", "--port=20000", id="number"),
        pytest.param("8443", "20000", id="number alone"),
        pytest.param("http://localhost:8443/x", "http://127.0.0.1:20000/x", id="own URL"),
    ],
)
def test_ports_are_moved(said: str, meant: str) -> None:
    assert process(args=[said], **LISTENS).command == ("/bin/serve", meant)
    assert process(env=[{"name": "LISTEN", "value": said}], **LISTENS).env["LISTEN"] == meant


@pytest.mark.parametrize(
    "said",
    [
        pytest.param("--to=example.com:8443", id="port of somebody else"),
        pytest.param("--grace=84430", id="longer number"),
        pytest.param("--grace=18443", id="number that ends like it"),
        pytest.param("--listen=:84430", id="longer port"),
    ],
)
def test_other_numbers_stay(said: str) -> None:
    assert process(args=["--listen=:8443", said], **LISTENS).command[2] == said


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        pytest.param("--file=/etc/app/a.yaml", "--file=/bed/pods/web-0/volumes/etc/a.yaml", id="file in it"),
        pytest.param("/etc/app", "/bed/pods/web-0/volumes/etc", id="the folder"),
        pytest.param(
            "a:/etc/app/x,b:/etc/app/y", "a:/bed/pods/web-0/volumes/etc/x,b:/bed/pods/web-0/volumes/etc/y", id="two"
        ),
        pytest.param("/etc/apple", "/etc/apple", id="another folder that begins like it"),
        pytest.param("/srv/etc/app/a", "/srv/etc/app/a", id="another folder that ends like it"),
        pytest.param(
            "/var/run/secrets/kubernetes.io/serviceaccount/token",
            "/bed/pods/web-0/volumes/kube-api-access/token",
            id="token",
        ),
    ],
)
def test_mount_paths_are_moved(said: str, meant: str) -> None:
    assert process(args=[said], **MOUNTS).command == ("/bin/serve", meant)


def test_the_inner_of_two_mounts_wins() -> None:
    volumes = [{"name": "outer", "emptyDir": {}}, {"name": "inner", "emptyDir": {}}]
    mounts = [{"name": "outer", "mountPath": "/etc/app"}, {"name": "inner", "mountPath": "/etc/app/tls/"}]
    (pod,) = planned(
        deployment(container(args=["/etc/app/tls/a", "/etc/app/b"], volumeMounts=mounts), volumes=volumes)
    )
    assert pod.processes[0].command[1:] == ("/bed/pods/web-0/volumes/inner/a", "/bed/pods/web-0/volumes/outer/b")


def test_replicas_differ_in_name_ports_and_home() -> None:
    made = planned(deployment(container(args=["--listen=:8443"], **LISTENS), replicas=2))
    assert [pod.processes[0].name for pod in made] == ["web-0.main", "web-1.main"]
    assert [pod.processes[0].ports for pod in made] == [{"https": 20000}, {"https": 20001}]
    assert [pod.processes[0].env["KUBECONFIG"] for pod in made] == [
        "/bed/pods/web-0/kubeconfig",
        "/bed/pods/web-1/kubeconfig",
    ]
    assert len(planned(deployment(container()))) == 1, "without a number there is one"
    assert planned(deployment(container(), replicas=0)) == []


def test_environment_knows_who_it_is() -> None:
    fields = {"POD": "metadata.name", "NAMESPACE": "metadata.namespace", "IP": "status.podIP"}
    env = [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": field}}} for name, field in fields.items()]
    made = process(env=[*env, {"name": "EMPTY"}]).env
    assert {name: made[name] for name in (*fields, "EMPTY", "PATH", "HOSTNAME")} == {
        "POD": "web-0",
        "NAMESPACE": "shop",
        "IP": "127.0.0.1",
        "EMPTY": "",
        "PATH": "/bin",
        "HOSTNAME": "web-0",
    }


@pytest.mark.parametrize(
    ("probe", "expected"),
    [
        pytest.param({"httpGet": {"path": "/readyz", "port": "https"}}, Probe(20000, "/readyz"), id="named port"),
        pytest.param({"httpGet": {"port": 8443}}, Probe(20000, "/"), id="number"),
        pytest.param({"httpGet": {"port": 8443, "scheme": "HTTPS"}}, Probe(20000, "/", tls=True), id="TLS"),
        pytest.param({"tcpSocket": {"port": 8443}}, Probe(20000), id="connection"),
    ],
)
def test_readiness_probe(probe: Object, expected: Probe) -> None:
    assert process(args=[":8443"], readinessProbe=probe, **LISTENS).probe == expected


@pytest.mark.parametrize(
    ("volume", "expected"),
    [
        pytest.param({"emptyDir": {}}, Volume("v"), id="empty"),
        pytest.param({"configMap": {"name": "a"}}, Volume("v", "configmaps", "a"), id="ConfigMap"),
        pytest.param(
            {"secret": {"secretName": "a", "defaultMode": 0o440, "optional": True}},
            Volume("v", "secrets", "a", optional=True, mode=0o440),
            id="Secret",
        ),
        pytest.param(
            {"configMap": {"name": "a", "items": [{"key": "k", "path": "sub/p"}]}},
            Volume("v", "configmaps", "a", {"k": "sub/p"}),
            id="some keys",
        ),
    ],
)
def test_volumes(volume: Object, expected: Volume) -> None:
    (pod,) = planned(deployment(container(), volumes=[{"name": "v", **volume}]))
    assert pod.volumes == (expected,)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        pytest.param(
            deployment(container(command=[])), r"container main: no such command here: \[\]", id="no command"
        ),
        pytest.param(deployment(container(command=["absent"])), r"\['absent'\]", id="no program"),
        pytest.param(
            deployment(container(**LISTENS)), "port 8443 stands neither in args nor in env", id="fixed port"
        ),
        pytest.param(deployment(container(envFrom=[{}])), "envFrom", id="environment from elsewhere"),
        pytest.param(
            deployment(container(env=[{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}])),
            "env A has no value",
            id="value from elsewhere",
        ),
        pytest.param(deployment(container(), initContainers=[container()]), "initContainers", id="init container"),
        pytest.param(
            deployment(container(volumeMounts=[{"name": "v", "mountPath": "/a", "subPath": "b"}])),
            "/a has a subPath",
            id="part of a volume",
        ),
        pytest.param(
            deployment(container(), volumes=[{"name": "v", "hostPath": {"path": "/"}}]),
            "volume v: hostPath cannot be had here",
            id="other volume",
        ),
        pytest.param(
            deployment(container(readinessProbe={"exec": {"command": ["true"]}})),
            "readinessProbe: use httpGet or tcpSocket",
            id="other probe",
        ),
        pytest.param(
            deployment(container(readinessProbe={"tcpSocket": {"port": "https"}})),
            "with a port of the container",
            id="probe of an unknown port",
        ),
    ],
)
def test_what_a_process_cannot_have_is_refused(made: Object, message: str) -> None:
    with pytest.raises(pods.Unsupported, match=f"Deployment web: .*{message}"):
        planned(made)
