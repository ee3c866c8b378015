"""What processes that were installed say of themselves: their metrics, as a Prometheus would read them."""

import re

import urllib3

from testbed import kubelet
from testbed.bed import ControlPlane

PROBES = "probes"
"""The port whose `/metrics` is asked."""
TIMEOUT_SECONDS = 30
"""The machine may be busy with other things."""


def measured(running: ControlPlane, metric: str, deployment: str) -> dict[str, float]:
    """A number of each process of a Deployment, over all labels; one that does not answer has none."""
    found = {}
    pattern = re.compile(rf"^{re.escape(metric)}(?:{{.*}})? (\S+)$", re.MULTILINE)
    for pod in kubelet.remembered(running):
        for one in pod.processes if pod.deployment == deployment else ():
            try:
                answer = urllib3.request(
                    "GET", f"http://127.0.0.1:{one.ports[PROBES]}/metrics", timeout=TIMEOUT_SECONDS, retries=False
                )
            except urllib3.exceptions.HTTPError:
                continue
            found[one.name] = sum(map(float, pattern.findall(answer.data.decode())))
    return found
