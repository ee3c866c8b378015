"""By which settings a command goes, and under which prefix it finds and writes our keys."""

import dataclasses
from typing import Any

import msgspec
import pytest

from console import installation
from console.installation import InForce, Leader
from policy import keys, names
from policy.settings import API_VERSION, KIND
from tests.unit.cluster import fake_api
from tests.unit.cluster.fake_api import Answer, status
from tests.unit.console import looks

SYSTEM = "spotshift-system"
ENVELOPE = f"apiVersion: {API_VERSION}\nkind: {KIND}\n"
OURS, ASKED = "in-force.example/", "asked-for.example/"
LED = dataclasses.replace(looks.leader(), last_pass=msgspec.structs.replace(looks.PASS, label_prefix=OURS))
SILENT = dataclasses.replace(LED, renewed=None)
ELDER = looks.leader()
"""Of a version that did not say its prefix."""


def in_force(answer: Answer, leader: Leader | str) -> InForce:
    with fake_api.running() as api:
        api.script = lambda _: answer
        return installation.settings(api.client(rate_limit=None), SYSTEM, leader=leader, now=looks.NOW)


def stored(text: str, **annotations: str) -> Answer:
    named = {key.replace("_", "-"): value for key, value in annotations.items()}
    body: dict[str, Any] = {"metadata": {"name": "spotshift-settings"}, "data": {names.SETTINGS_KEY: text}}
    for prefix in (OURS, ASKED):
        mine = {f"{prefix}{key}": f"{value} under {prefix}" for key, value in named.items()}
        body["metadata"].setdefault("annotations", {}).update(mine)
    return Answer(body=body)


@pytest.mark.parametrize(
    ("leader", "prefix", "mistakes"),
    [
        (
            LED,
            OURS,
            ("labelPrefix: 'asked-for.example/' takes a restart of all programs; in force is 'in-force.example/'",),
        ),
        (SILENT, ASKED, ()),
        (ELDER, ASKED, ()),
        ("there is no Lease", ASKED, ()),
    ],
    ids=["leads", "leads no more", "does not say", "never led"],
)
def test_our_keys_are_those_of_who_leads(leader: Leader | str, prefix: str, mistakes: tuple[str, ...]) -> None:
    found = in_force(stored(f"{ENVELOPE}labelPrefix: {ASKED}\n"), leader)
    assert found.settings.label_prefix == prefix
    assert found.mistakes == mistakes
    assert found.stop_key == keys.under(prefix).emergency_stop


def test_the_emergency_stop_is_the_one_that_the_leader_looks_at() -> None:
    found = in_force(stored(f"{ENVELOPE}labelPrefix: {ASKED}\n", emergency_stop="stopped"), LED)
    assert "stopped under in-force.example/" in found.stopped


UNREADABLE = {
    "a mistake beside it": stored(f"{ENVELOPE}labelPrefix: {ASKED}\nmode: sideways\n"),
    "a prefix that cannot be read": stored("{ labelPrefix"),
    "no ConfigMap": status(404, "NotFound"),
    "no right": status(403, "Forbidden"),
}


@pytest.mark.parametrize("answer", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_who_leads_tells_our_keys_where_the_settings_do_not(answer: Answer) -> None:
    found = in_force(answer, LED)
    assert (found.settings.label_prefix, found.unsure) == (OURS, "")
    assert found.guessed
    assert not any(it.startswith("labelPrefix") for it in found.mistakes), "it is not what is wrong with them"


def test_without_a_leader_a_prefix_that_cannot_be_read_is_not_guessed() -> None:
    assert in_force(stored("{ labelPrefix"), SILENT).unsure


def test_what_the_leader_goes_by_is_no_mistake() -> None:
    found = in_force(stored(f"{ENVELOPE}labelPrefix: {OURS}\n"), LED)
    assert (found.settings.label_prefix, found.mistakes, found.guessed) == (OURS, (), False)
