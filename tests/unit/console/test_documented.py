"""The page about the plugin names every command, every common flag, and every key that programs may rely on."""

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from cluster.objects import PodMigration
from console import foresight, options, usage
from console.ending import Ending
from console.health import finding
from console.health.finding import Finding, Level
from console.views import drains, move_list, node_list, node_story, overview
from policy import keys
from tests.unit.console import looks
from tests.unit.descheduler import build

PAGE = (Path(__file__).parents[3] / "docs" / "kubectl-plugin.md").read_text()
LABEL = {keys.under().maintenance: "true"}
COMMANDS = ("status", "nodes", "migrations", "migrate --dry-run", "maintenance", "check", "explain node")


def row(command: str) -> list[str]:
    """The keys that stand beside a command."""
    table = PAGE.partition("| command | keys |")[2].partition("\n\n")[0]
    (line,) = re.findall(rf"^\| `{command}` \| (.*) \|$", table, re.MULTILINE)
    return re.findall(r"`(\w+)(?:\[\])?`", line)


def shown() -> dict[str, Iterable[str]]:
    look = looks.golden()
    seen = node_list.see(look)
    drain = drains.read(build.node("n", labels=LABEL), keys.under())
    assert drain is not None
    story = node_story.of(seen[0], look)
    check = finding.of([Finding("a", Level.OK, "b")])
    return {
        "status": overview.of(look),
        "nodes": ["nodes", *node_list.of(seen, look)["nodes"][0]],
        "migrations": ["migrations", *move_list.plain(PodMigration())],
        "migrate --dry-run": [*foresight.nothing(PodMigration())],
        "maintenance": ["maintenance", *drains.of([drain])["maintenance"][0]],
        "check": [*check, *check["checks"][0]],
        "explain node": ["nodes", *(key for key in story if key not in node_list.plain(seen[0], look))],
    }


@pytest.mark.parametrize("command", COMMANDS)
def test_the_keys_for_programs(command: str) -> None:
    assert row(command) == list(shown()[command])


def test_every_command_and_every_code() -> None:
    commands = PAGE.partition("## Commands")[2].partition("| flag of all commands")[0]
    assert all(re.search(rf"^\| `{it.name}\b", commands, re.MULTILINE) for it in usage.REGISTRY)
    assert all(f"| {code.value} | " in PAGE for code in Ending)


def test_every_flag_of_all_commands() -> None:
    flags = PAGE.partition("| flag of all commands")[2].partition("| exit code")[0]
    shared = options._shared()._actions
    missing = [it.option_strings for it in shared if not any(f"`{flag}" in flags for flag in it.option_strings)]
    assert missing == []
