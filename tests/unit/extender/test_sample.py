"""The shipped sample of a scheduler's configuration: what makes the extender harmless must be in it."""

from pathlib import Path

import yaml

from testbed import scheduling

SAMPLE = Path(__file__).parents[3] / "manifests" / "examples" / "scheduler-extender.yaml"


def test_it_can_be_used_and_holds_nobody_up() -> None:
    given = yaml.safe_load(SAMPLE.read_text())
    (made,) = scheduling.configured({}, given, {"spotshift-extender.spotshift-system:8080": 29000})["extenders"]
    assert made["urlPrefix"] == "http://127.0.0.1:29000"
    assert (made["weight"], made["ignorable"], made["nodeCacheCapable"]) == (1, True, True)
    assert made["httpTimeout"] == "200ms"
    assert {"bindVerb", "preemptVerb"}.isdisjoint(made)
