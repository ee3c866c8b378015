"""A Job on a machine without containers: the command of its pod runs as a process, and the Job hears how it went."""

import os
import subprocess
import sys
import time
from pathlib import Path

from testbed import install, kubelet, pods
from testbed.api import Object
from testbed.bed import ControlPlane
from testbed.waiting import eventually

UNTIL_TOLD = {"testbed.spotshift.dev/complete-after": "86400s"}
"""Annotation for the pod of such a Job: its simulated kubelet leaves the end to us."""


def run(running: ControlPlane, name: str, namespace: str) -> subprocess.CompletedProcess[str]:
    """Wait for the Job and its pod, run the command as its ServiceAccount, and tell the Job the outcome."""
    client = running.api()
    found: list[Object] = eventually(
        lambda: client.list("pods", namespace, labels=f"job-name={name}"),
        until=lambda seen: any(it.get("status", {}).get("phase") == "Running" for it in seen),
        timeout=60,
        what=f"a pod of Job {name}",
    )
    done = _executed(running, client.get("jobs", name, namespace))
    phase = "Succeeded" if done.returncode == 0 else "Failed"
    for pod in found:
        client.patch("pods", pod["metadata"]["name"], {"status": {"phase": phase}}, namespace, subresource="status")
    return done


def _executed(running: ControlPlane, job: Object) -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.environ.get("PATH", ""), "PYTHONPATH": str(install.ROOT)}
    place = pods.Place(kubelet.folder(running), {}, lambda _: sys.executable, env)
    (pod,) = pods.plan({**job, "spec": {"replicas": 1, "template": job["spec"]["template"]}}, place)
    (planned,) = pod.processes
    (kubelet.folder(running) / pod.name).mkdir(parents=True)
    try:
        kubelet.sync(running, running.api(), pod, now=time.time())
        return subprocess.run(
            planned.command, env=dict(planned.env), cwd=Path("/"), capture_output=True, text=True, check=False
        )
    finally:
        kubelet.forget(running, pod)
