"""What the pytest plugin promises, shown by a run of its own."""

import re
import subprocess
import sys
import textwrap
from pathlib import Path

from testbed import process

ROOT = Path(__file__).parents[3]

RUN = """\
    import os
    from pathlib import Path

    import pytest
    from testbed.waiting import eventually

    SEEN = Path(__file__).parent

    @pytest.mark.parametrize("worker", range(4))
    def test_shares_one_control_plane(cluster, worker):
        (SEEN / f"apiserver-{worker}").write_text(str(cluster.status()["kube-apiserver"]))

    @pytest.fixture
    def afterwards(kube):
        "Set up before the others, so it is torn down after them."
        mine = []
        yield mine
        left = lambda: [found["metadata"]["name"] for kind in ("nodes", "namespaces") for found in kube.list(kind)]
        ended = lambda names: not [name for name in names if name.startswith(mine[0])]
        eventually(left, until=ended, timeout=60, what="the end of nodes and namespace")

    def test_leaves_something(afterwards, kube, namespace, nodes):
        afterwards.append(namespace)
        nodes.make(on_demand=1)
        pod = {"metadata": {"name": "stuck", "finalizers": ["example.com/x"]}}
        pod["spec"] = {"containers": [{"name": "a", "image": "a"}]}
        kube.create("pods", pod, namespace)

    def test_fails(cluster):
        assert False, "on purpose"
    """


def test_one_cluster_clean_up_and_log_tails(tmp_path: Path) -> None:
    (tmp_path / "test_run.py").write_text(textwrap.dedent(RUN))
    options = ("-p", "testbed.pytest_plugin", "-c", "/dev/null", "--rootdir", str(tmp_path), "-n", "2")
    runner = subprocess.Popen(
        [sys.executable, "-m", "pytest", *options, str(tmp_path / "test_run.py")],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    printed, _ = runner.communicate(timeout=240)
    assert runner.returncode == 1
    assert "1 failed, 5 passed in" in printed, printed
    for part in ("etcd", "kube-apiserver", "kube-scheduler", "kwok"):
        assert re.search(rf"-+ log of {part} -+\n.+", printed), f"no log of {part}"
    pids = {path.read_text() for path in tmp_path.glob("apiserver-*")}
    assert len(pids) == 1, "all workers saw the same apiserver"
    homes = list((ROOT / ".testbed").glob(f"tests-{runner.pid}-*"))
    assert homes == []
    assert not [name for name, _ in process.running(ROOT / ".testbed" / f"tests-{runner.pid}")]
