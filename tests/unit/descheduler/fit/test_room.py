"""Resources, pod slots and host ports, before and after moves are booked."""

from typing import Any

import pytest

from descheduler.fit import FitCode, Fitter
from descheduler.picture import Picture
from tests.unit.descheduler import build

GPU = "example.com/gpu"


def asking(**requests: str) -> dict[str, Any]:
    named = {name.replace("_", "-").replace("gpu", GPU): amount for name, amount in requests.items()}
    return {"containers": [{"name": "main", "resources": {"requests": named}}]}


@pytest.mark.parametrize(
    ("spec", "short"),
    [
        pytest.param(asking(), [], id="asks-nothing"),
        pytest.param(asking(cpu="1"), [], id="cpu-exactly-what-is-left"),
        pytest.param(asking(cpu="1001m"), ["cpu"], id="cpu-one-milli-too-much"),
        pytest.param(asking(memory="2Gi"), [], id="memory-exactly"),
        pytest.param(asking(memory=str(2 * 2**30 + 1)), ["memory"], id="memory-one-byte-too-much"),
        pytest.param(asking(ephemeral_storage="100Gi"), [], id="storage-exactly"),
        pytest.param(asking(ephemeral_storage="101Gi"), ["ephemeral-storage"], id="storage"),
        pytest.param(asking(gpu="1"), [], id="extended-exactly"),
        pytest.param(asking(gpu="2"), [GPU], id="extended"),
        pytest.param(
            {"containers": [{"resources": {"requests": {"example.com/x": "1"}}}]}, ["example.com/x"], id="unknown"
        ),
        pytest.param(asking(cpu="9", memory="9Gi", gpu="9"), ["cpu", "memory", GPU], id="every-shortage-is-told"),
    ],
)
def test_resources(spec: dict[str, Any], short: list[str]) -> None:
    node = build.node("a", cpu="4", memory="8Gi", extended={GPU: "2"})
    there = build.pod("y", on="a", spec=asking(cpu="3", memory="6Gi", gpu="1"))
    pod = build.pod("x", spec=spec)
    fitter = Fitter(Picture(build.state(node, there, pod)))
    found = fitter.misfits(pod, "a")
    assert {it.code for it in found} <= {FitCode.RESOURCES}
    assert [it.text.split(":")[0] for it in found] == short
    assert fitter.fits(pod, "a") is (not short)


def test_a_full_node_refuses_even_a_pod_that_asks_nothing() -> None:
    pod = build.pod("x")
    fitter = Fitter(Picture(build.state(build.node("a", pods="1"), build.pod("y", on="a"), pod)))
    assert [str(it) for it in fitter.misfits(pod, "a")] == ["RESOURCES: pods: 1 wanted, 0 left"]
    assert not fitter.fits(pod, "a")


def test_an_overfull_node_still_takes_what_asks_for_nothing_of_it() -> None:
    pod = build.pod("x", memory="1Gi")
    fitter = Fitter(Picture(build.state(build.node("a", cpu="1"), build.pod("y", on="a", cpu="2"), pod)))
    assert fitter.fits(pod, "a")
    assert fitter.misfits(pod, "a") == ()


def test_room_follows_the_picture() -> None:
    one, two = build.pod("one", on="a", cpu="3"), build.pod("two", on="b", cpu="3")
    picture = Picture(build.state(build.node("a"), build.node("b"), one, two))
    fitter = Fitter(picture)
    assert not fitter.fits(one, "b")
    picture.take(two)
    assert fitter.fits(one, "b")
    picture.put(one, "b")
    assert not fitter.fits(two, "b")
    picture.unput(one, "b")
    picture.untake(two)
    assert not fitter.fits(one, "b")


def port(number: int, protocol: str = "TCP", ip: str = "") -> dict[str, Any]:
    return {"hostPort": number, "containerPort": number, "protocol": protocol, "hostIP": ip}


def serving(*ports: Any, init: bool = False, sidecar: bool = False) -> dict[str, Any]:
    container = {"name": "main", "ports": list(ports)}
    if sidecar:
        return {"initContainers": [{**container, "restartPolicy": "Always"}]}
    return {"initContainers": [container]} if init else {"containers": [container]}


@pytest.mark.parametrize(
    ("held", "wanted", "fits"),
    [
        pytest.param(serving(port(80)), serving(port(80)), False, id="same"),
        pytest.param(serving(port(80)), serving(port(81)), True, id="other-port"),
        pytest.param(serving(port(80)), serving(port(80, "UDP")), True, id="other-protocol"),
        pytest.param(serving(port(80, ip="10.0.0.1")), serving(port(80, ip="10.0.0.2")), True, id="other-address"),
        pytest.param(serving(port(80, ip="10.0.0.1")), serving(port(80, ip="10.0.0.1")), False, id="same-address"),
        pytest.param(serving(port(80)), serving(port(80, ip="10.0.0.1")), False, id="held-on-every-address"),
        pytest.param(serving(port(80, ip="10.0.0.1")), serving(port(80)), False, id="wanted-on-every-address"),
        pytest.param(serving(port(80, ip="0.0.0.0")), serving(port(80)), False, id="every-address-spelled-out"),  # noqa: S104
        pytest.param(serving(port(80), sidecar=True), serving(port(80)), False, id="held-by-a-sidecar"),
        pytest.param(serving(port(80)), serving(port(80), sidecar=True), False, id="wanted-by-a-sidecar"),
        pytest.param(serving(port(80)), serving(port(80), init=True), True, id="init-containers-do-not-count"),
        pytest.param(serving(), serving(port(80)), True, id="nothing-held"),
        pytest.param(serving(port(80)), serving({"containerPort": 80}), True, id="no-host-port-wanted"),
    ],
)
def test_host_ports(held: dict[str, Any], wanted: dict[str, Any], fits: bool) -> None:
    pod = build.pod("x", spec=wanted)
    fitter = Fitter(Picture(build.state(build.node("a"), build.pod("y", on="a", spec=held), pod)))
    assert {it.code for it in fitter.misfits(pod, "a")} == (set() if fits else {FitCode.HOST_PORTS})
    assert fitter.fits(pod, "a") is fits
