"""What pods ask and hold, counted as the scheduler does."""

import gc
import weakref
from typing import Any

import pytest

from cluster.objects import Pod
from descheduler import demand
from tests.unit.descheduler import build

MI = 2**20


def container(name: str = "main", *, always: bool = False, **requests: str) -> dict[str, Any]:
    named = {key.replace("_", "-"): amount for key, amount in requests.items()}
    return {"name": name, "resources": {"requests": named}, **({"restartPolicy": "Always"} if always else {})}


def spec(*containers: Any, init: Any = (), whole: Any = None, overhead: Any = None) -> dict[str, Any]:
    return {
        "containers": list(containers),
        "initContainers": list(init),
        **({"resources": {"requests": whole}} if whole else {}),
        **({"overhead": overhead} if overhead else {}),
    }


@pytest.mark.parametrize(
    ("made", "cpu", "memory"),
    [
        pytest.param(spec(container()), 0, 0, id="nothing"),
        pytest.param(
            spec(container(cpu="1", memory="1Mi"), container("b", cpu="500m")), 1500, MI, id="containers-add-up"
        ),
        pytest.param(spec(container(cpu="1"), init=[container("i", cpu="3")]), 3000, 0, id="larger-init"),
        pytest.param(spec(container(cpu="4"), init=[container("i", cpu="3")]), 4000, 0, id="smaller-init"),
        pytest.param(
            spec(container(cpu="1"), init=[container("i", cpu="2"), container("j", cpu="2")]),
            2000,
            0,
            id="inits-in-turn",
        ),
        pytest.param(
            spec(container(cpu="1"), init=[container("s", always=True, cpu="2")]), 3000, 0, id="sidecar-runs-beside"
        ),
        pytest.param(
            spec(container(cpu="1"), init=[container("s", always=True, cpu="2"), container("i", cpu="3")]),
            5000,
            0,
            id="init-after-a-sidecar",
        ),
        pytest.param(
            spec(container(cpu="1"), init=[container("i", cpu="3"), container("s", always=True, cpu="1")]),
            3000,
            0,
            id="init-before-a-sidecar",
        ),
        pytest.param(
            spec(container(cpu="1"), overhead={"cpu": "250m", "memory": "8Mi"}), 1250, 8 * MI, id="overhead"
        ),
        pytest.param(spec(container(cpu="1"), whole={"cpu": "3"}), 3000, 0, id="whole-pod-counts-instead"),
        pytest.param(spec(container(cpu="3"), whole={"cpu": "1"}), 1000, 0, id="whole-pod-even-if-smaller"),
        pytest.param(
            spec(container(memory="2Mi"), whole={"cpu": "1"}), 1000, 2 * MI, id="whole-pod-for-one-resource"
        ),
        pytest.param(
            spec(container(cpu="1"), whole={"cpu": "3"}, overhead={"cpu": "1"}), 4000, 0, id="whole-pod-and-overhead"
        ),
        pytest.param(spec(container(cpu="1.5", memory="1.5Mi")), 1500, 3 * MI // 2, id="fractions"),
    ],
)
def test_asked(made: dict[str, Any], cpu: int, memory: int) -> None:
    found = demand.of(build.pod("x", spec=made).spec)
    assert (found.cpu, found.memory) == (cpu, memory)


def test_everything_else_is_counted_by_name() -> None:
    asked = {"hugepages-2Mi": "4Mi", "example.com/gpu": "2", "ephemeral-storage": "1Mi", "example.com/none": "0"}
    whole = {"hugepages-2Mi": "8Mi", "example.com/gpu": "9"}
    made = spec({"name": "main", "resources": {"requests": asked}}, whole=whole)
    found = demand.of(build.pod("x", spec=made).spec)
    assert found.storage == MI
    assert found.extended == {"hugepages-2Mi": 8 * MI, "example.com/gpu": 2}


@pytest.mark.parametrize(
    ("made", "cpu", "memory"),
    [
        pytest.param(spec(container(), container("b")), 200, 400 * MI, id="each-container-that-asks-nothing"),
        pytest.param(spec(container(cpu="1")), 1000, 200 * MI, id="only-what-is-missing"),
        pytest.param(spec(container(cpu="0", memory="0")), 0, 0, id="zero-is-an-answer"),
        pytest.param(spec(container(), whole={"cpu": "1"}), 1000, 200 * MI, id="whole-pod-says-cpu"),
        pytest.param(
            spec(container(), container("b", memory="1Mi"), whole={"cpu": "1"}),
            1000,
            MI,
            id="whole-pod-and-one-container",
        ),
        pytest.param(spec(container(), init=[container("s", always=True)]), 200, 400 * MI, id="sidecar-too"),
    ],
)
def test_nominal(made: dict[str, Any], cpu: int, memory: int) -> None:
    found = demand.of(build.pod("x", spec=made).spec)
    assert (found.nominal_cpu, found.nominal_memory) == (cpu, memory)


def reported(name: str = "main", *, has: str | None = None, allocated: str | None = None) -> dict[str, Any]:
    return {
        "name": name,
        **({"resources": {"requests": {"cpu": has}}} if has else {}),
        **({"allocatedResources": {"cpu": allocated}} if allocated else {}),
    }


INFEASIBLE = [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]
DEFERRED = [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}]
ONE = spec(container(cpu="1"))


@pytest.mark.parametrize(
    ("made", "status", "cpu"),
    [
        pytest.param(ONE, {}, 1000, id="nothing-reported"),
        pytest.param(ONE, {"containerStatuses": [reported(has="1", allocated="1")]}, 1000, id="as-asked"),
        pytest.param(ONE, {"containerStatuses": [reported(has="2", allocated="1")]}, 2000, id="not-yet-shrunk"),
        pytest.param(
            ONE, {"containerStatuses": [reported(has="500m", allocated="2")]}, 2000, id="allocated-is-larger"
        ),
        pytest.param(ONE, {"containerStatuses": [reported(has="500m")]}, 1000, id="not-yet-grown"),
        pytest.param(
            ONE, {"containerStatuses": [reported(allocated="2")]}, 1000, id="allocated-alone-does-not-count"
        ),
        pytest.param(
            ONE,
            {"conditions": INFEASIBLE, "containerStatuses": [reported(has="500m", allocated="500m")]},
            500,
            id="infeasible-growth-is-not-held",
        ),
        pytest.param(
            ONE,
            {"conditions": DEFERRED, "containerStatuses": [reported(has="500m", allocated="500m")]},
            1000,
            id="deferred-growth-is-held",
        ),
        pytest.param(ONE, {"containerStatuses": [reported("other", has="2")]}, 1000, id="another-container"),
        pytest.param(
            spec(container(cpu="1"), init=[container("s", always=True, cpu="1")]),
            {"initContainerStatuses": [reported("s", has="2")]},
            3000,
            id="sidecars-are-resized",
        ),
        pytest.param(
            spec(container(cpu="1"), init=[container("i", cpu="1")]),
            {"initContainerStatuses": [reported("i", has="5")]},
            1000,
            id="init-containers-are-not",
        ),
        pytest.param(
            spec(container(cpu="1"), whole={"cpu": "2"}),
            {"resources": {"requests": {"cpu": "3"}}},
            3000,
            id="whole-pod",
        ),
        pytest.param(
            spec(container(cpu="1"), whole={"cpu": "2"}),
            {"resources": {"requests": {"cpu": "1"}}, "allocatedResources": {"cpu": "4"}},
            4000,
            id="whole-pod-allocated",
        ),
        pytest.param(
            spec(container(cpu="1"), whole={"cpu": "2"}),
            {"conditions": INFEASIBLE, "resources": {"requests": {"cpu": "1"}}},
            1000,
            id="whole-pod-infeasible",
        ),
    ],
)
def test_held(made: dict[str, Any], status: dict[str, Any], cpu: int) -> None:
    pod = build.pod("x", on="a", spec=made, status=status)
    assert demand.held(pod).cpu == cpu


def test_a_pod_that_holds_what_it_asks_costs_no_second_value() -> None:
    status = {"containerStatuses": [reported(has="1", allocated="1")]}
    pod = build.pod("x", on="a", spec=ONE, status=status)
    assert demand.held(pod) is demand.of(pod.spec)


def daemon(node: str) -> Pod:
    """Tied to its node by its spec, as its controller makes them; all of them have the same status."""
    status = {"containerStatuses": [reported(has="2", allocated="2")]}
    return build.pod(f"agent-{node}", on=node, spec={**ONE, "nodeSelector": {"name": node}}, status=status)


def test_what_a_pod_held_goes_with_its_spec_though_others_have_its_status() -> None:
    stays, goes = daemon("stays"), daemon("goes")
    assert stays.status is goes.status
    assert [demand.held(it).cpu for it in (stays, goes)] == [2000, 2000]
    spec_of_it = weakref.ref(goes.spec)
    del goes
    gc.collect()
    assert spec_of_it() is None


def test_what_was_held_does_not_keep_the_status() -> None:
    pod = daemon("goes")
    demand.held(pod)
    status_of_it = weakref.ref(pod.status)
    del pod
    gc.collect()
    assert status_of_it() is None
