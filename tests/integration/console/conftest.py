"""One control plane with the whole product for the tests of this folder, and what the plugin said before it came."""

import os
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pytest

from testbed import bed, install, objects
from testbed.bed import ControlPlane
from testbed.binaries import Binaries
from testbed.waiting import eventually
from tests.e2e import draining
from tests.e2e.draining import Scene
from tests.integration.console.terminal import Done, Plugin

SETTINGS = {**draining.POLICY, "reschedulingInterval": "2s"}
"""Only drains move pods by themselves, and a pass is never far."""
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "status": ("status",),
    "nodes": ("nodes",),
    "plan": ("plan",),
    "explain": ("explain", "node", "on-demand-0"),
    "migrations": ("migrations", "-A"),
    "migrate": ("migrate", "bare"),
    "maintenance": ("maintenance", "status"),
    "top": ("top",),
    "check": ("check",),
}
"""Every command that asks the cluster, in its plainest form."""


@dataclass(frozen=True, slots=True)
class Installed:
    """The product, and what was said before it came."""

    bed: ControlPlane
    before: Mapping[str, Done]


@pytest.fixture(scope="package")
def installed(tmp_path_factory: pytest.TempPathFactory, control_plane_binaries: Binaries) -> Iterator[Installed]:
    home = tmp_path_factory.mktemp("console") / "bed"
    running = bed.up(home, control_plane_binaries, nodes=3, spot=2, owner=os.getpid())
    try:
        kube = running.api()
        kube.create("pods", objects.pod("bare"), "default")
        before = {name: Plugin(running.kubeconfig)(*words) for name, words in COMMANDS.items()}
        kube.delete("pods", "bare", "default")
        install.install(running, tell=lambda _line: None)
        draining.configure(kube, SETTINGS)
        eventually(lambda: draining.leaders(running), until=lambda it: len(it) == 1, timeout=60, what="a leader")
        yield Installed(running, before)
    finally:
        bed.down(home)


@pytest.fixture
def running(installed: Installed) -> ControlPlane:
    return installed.bed


@pytest.fixture
def plugin(running: ControlPlane) -> Plugin:
    """As cluster administrator."""
    return Plugin(running.kubeconfig)


@pytest.fixture
def scene(running: ControlPlane) -> Iterator[Scene]:
    with draining.scene(running, f"t-{secrets.token_hex(4)}") as made:
        yield made
        made.quiet()
