"""Usage from a real Prometheus that scrapes kubelets of two kinds, and what ResourceOptimization makes of it."""

import os
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from cluster import errors
from cluster.prometheus import Prometheus
from descheduler import plan, scraped
from descheduler.plan import Plan
from descheduler.reasons import Code
from descheduler.usage import Samples
from descheduler.usage_sources import Answer, PrometheusApi
from policy.settings import Settings
from policy.settings_strategies import ResourceOptimization, Strategies, UsageSource
from testbed import extras, ports
from testbed.waiting import eventually
from tests.unit.descheduler import build, scenes

GIB = 1 << 30
MIB = 1 << 20

pytestmark = pytest.mark.timeout(600)
"""Where Prometheus is not found it is fetched first."""


@dataclass(frozen=True)
class Cgroup:
    """What one series of a kubelet is about, in cores and bytes."""

    cpu: float
    memory: int
    id: str = ""
    pod: str = ""
    container: str = ""

    def lines(self, elapsed: float, at: float, *, cadvisor: bool) -> Iterator[str]:
        """With the time of the measurement, as kubelets write it, so that rates are exact."""
        labels = {"container": self.container, "pod": self.pod, "namespace": "default" if self.pod else ""}
        cpu = labels | ({"id": self.id, "cpu": "total"} if cadvisor else {})
        memory = labels | ({"id": self.id} if cadvisor else {})
        yield f"container_cpu_usage_seconds_total{_written(cpu)} {self.cpu * elapsed:.6f} {at * 1000:.0f}"
        yield f"container_memory_working_set_bytes{_written(memory)} {self.memory} {at * 1000:.0f}"


def _written(labels: dict[str, str]) -> str:
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels.items()) + "}"


def _pod(name: str, cpu: float, memory: int) -> tuple[Cgroup, ...]:
    """A pod of two containers, with the series that would count it twice."""
    return (
        Cgroup(cpu, memory, f"/kubepods/{name}", name),
        Cgroup(0.01, MIB, f"/kubepods/{name}/pause", name, "POD"),
        Cgroup(cpu / 2, memory // 2, f"/kubepods/{name}/main", name, "main"),
        Cgroup(cpu / 2, memory // 2, f"/kubepods/{name}/side", name, "side"),
    )


KUBELETS = {
    "n0": (Cgroup(3.6, 6 * GIB, "/"), *_pod("x-00", 2.4, 2 * GIB), *_pod("x-01", 1.0, GIB)),
    "n1": (*_pod("y-00", 0.2, GIB), *_pod("y-01", 0.2, GIB)),
}
"""The second one has no root cgroup, as after the relabelling of kube-prometheus-stack."""


@contextmanager
def kubelets() -> Iterator[str]:
    """Serve `/metrics/cadvisor` and `/metrics/resource` of both below their names."""
    began = time.time() - 60

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            _, node, _, kind = self.path.split("/")
            at, cadvisor = round(time.time(), 3), kind == "cadvisor"
            shown = [it for it in KUBELETS[node] if cadvisor or it.container not in {"", "POD"}]
            lines = [line for it in shown for line in it.lines(at - began, at, cadvisor=cadvisor)]
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write("".join(f"{line}\n" for line in sorted(lines)).encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
            """Stay quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def _scraping(address: str) -> str:
    """Both paths of each kubelet every second, with the label `node` as the operator's monitors write it."""
    jobs = [
        {
            "job_name": f"{node}-{kind}",
            "metrics_path": f"/{node}/metrics/{kind}",
            "static_configs": [{"targets": [address], "labels": {"node": node, "instance": f"{node}:10250"}}],
        }
        for node in KUBELETS
        for kind in ("cadvisor", "resource")
    ]
    return yaml.safe_dump({"global": {"scrape_interval": "1s", "scrape_timeout": "1s"}, "scrape_configs": jobs})


@contextmanager
def prometheus(folder: Path, address: str) -> Iterator[str]:
    """One that scrapes this address, on loopback; its data vanish with the folder."""
    (folder / "prometheus.yaml").write_text(_scraping(address))
    listen = f"127.0.0.1:{ports.free(['prometheus'])['prometheus']}"
    command = [
        str(extras.find("prometheus", os.environ)),
        f"--config.file={folder / 'prometheus.yaml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={listen}",
        "--log.level=warn",
    ]
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "GOMAXPROCS": "1"})
        try:
            yield f"http://{listen}"
        finally:
            process.kill()
            process.wait()


def _planned(answer: Answer, now: datetime) -> Plan:
    settings = Settings(
        enabled_strategies=("ResourceOptimization",),
        strategies=Strategies(
            resource_optimization=ResourceOptimization(source=UsageSource.PROMETHEUS, prometheus_url="http://prom")
        ),
    )
    samples = Samples()
    samples.add_nodes(answer.nodes)
    samples.set_pods(answer.pods)
    world = [
        *scenes.nodes("n0", "n1"),
        *scenes.deployment("x", ["n0"] * 2, cpu="100m", memory="100Mi"),
        *scenes.deployment("y", ["n1"] * 2, cpu="100m", memory="100Mi"),
    ]
    return plan.make(build.state(*world, settings=settings), settings, now, samples)


def _near(cpu: float, memory: int) -> object:
    """Cpu in thousandths, to a few of them; memory as it was written."""
    return (pytest.approx(cpu, abs=5), memory)


def _scraped_twice(asked: Prometheus) -> bool:
    """A rate takes two samples of each series; which job comes first is left to chance."""
    try:
        return len(asked.query(scraped.NODE_CPU)) == 1 and len(asked.query(scraped.POD_CPU)) == 4
    except errors.ApiError:  # it is starting
        return False


def test_a_node_is_relieved_by_what_prometheus_measured(tmp_path: Path) -> None:
    with kubelets() as address, prometheus(tmp_path, address) as url:
        source, asked = PrometheusApi(url), Prometheus(url, timeout=5.0)
        eventually(lambda: _scraped_twice(asked), interval=0.25, what="two scrapes of everything")
        answer, now = source.ask(), datetime.now(UTC)

    samples = Samples()
    samples.add_nodes(answer.nodes)
    samples.set_pods(answer.pods)
    assert samples.node("n0") == _near(3600, 6 * GIB)
    assert samples.node("n1") == _near(400, 2 * GIB)
    assert samples.pod(("default", "x-00")) == _near(2400, 2 * GIB)
    assert samples.pod(("default", "y-01")) == _near(200, GIB)
    assert all((samples.age(name, now) or timedelta.max) < timedelta(seconds=30) for name in KUBELETS)

    assert scenes.moves(_planned(answer, now)) == [("x-00", "n0", "n1")]
    late = _planned(answer, now + timedelta(minutes=5))
    assert scenes.refused(late) == {"x-00": {Code.METRICS_STALE}, "x-01": {Code.METRICS_STALE}}
    with pytest.raises(errors.Unreachable):
        source.ask()
