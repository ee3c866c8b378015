"""The command line and its settings: what is accepted, what is told, and the state in words."""

from datetime import timedelta
from typing import Any

import pytest

from certs import findings, keys, objects, options, plan
from certs.settings import InvalidSettings, Settings
from tests.unit.certs.simulated import OVERLAP, SETTINGS, Cluster, configuration, installed, settle


def test_defaults_are_those_of_the_settings() -> None:
    chosen, settings = options.parse(["run"])
    assert settings == Settings()
    assert chosen.listen == ("", 8080)
    assert settings.names == (
        "spotshift-webhook",
        "spotshift-webhook.spotshift-system",
        "spotshift-webhook.spotshift-system.svc",
        "spotshift-webhook.spotshift-system.svc.cluster.local",
    )


def test_everything_can_be_set() -> None:
    text = """run --namespace n --service s --configuration c --ca-secret a --leaf-secret l --cluster-domain d.e
        --extra-name 127.0.0.1 --extra-name h.example.com --ca-life 100h --leaf-life 10h --overlap 5s
        --interval 10s --now --external --listen [::1]:9 --log-format console"""
    _, settings = options.parse(text.split())
    assert settings.names == ("s", "s.n", "s.n.svc", "s.n.svc.d.e", "127.0.0.1", "h.example.com")
    assert (settings.ca_life, settings.leaf_life) == (timedelta(hours=100), timedelta(hours=10))
    assert (settings.overlap, settings.interval) == (timedelta(seconds=5), timedelta(seconds=10))
    assert settings.at_once
    assert settings.external
    assert set(settings.flat()) >= {"namespace", "names", "overlap", "now"}


REFUSED = {
    "no command": ([], "required"),
    "unknown command": (["rotate"], "invalid choice"),
    "not a duration": (["check", "--overlap", "2 minutes"], "use a duration such as"),
    "negative duration": (["check", "--overlap=-2m"], "not accepted"),
    "unknown kind": (["ensure", "--rotate", "all"], "invalid choice"),
    "not an address": (["run", "--listen", "here"], "use host:port"),
    "not a name": (["check", "--service", "Web_Hook"], "use a DNS name"),
    "not a host": (["check", "--extra-name", "*"], "use a DNS name or an address"),
    "one Secret for both": (["check", "--ca-secret", "x", "--leaf-secret", "x"], "use two Secrets"),
    "CA shorter than leaves": (["check", "--ca-life", "24h"], "three times leaf-life, 2160h"),
    "leaf shorter than the overlap": (["check", "--leaf-life", "1m"], "twelve times the overlap, 24m"),
}


@pytest.mark.parametrize(("arguments", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_refused_with_the_accepted_format(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        options.parse(arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(InvalidSettings) as refused:
        Settings(service="", namespace="-", ca_life=timedelta(0), interval=timedelta(0))
    assert len(str(refused.value).splitlines()) == 4


def told(cluster: Cluster, settings: Settings = SETTINGS) -> tuple[list[str], list[str]]:
    world = objects.observe(cluster, ca_secret=settings.ca_secret, leaf_secret=settings.leaf_secret)
    decision = plan.decide(world, settings, cluster.clock())
    codes = [finding.code for finding in findings.findings(world, decision, settings)]
    return list(findings.report(world, decision, settings)), codes


def test_a_healthy_state_in_words() -> None:
    lines, codes = told(installed())
    assert codes == []
    assert [line.split()[0] for line in lines] == ["ca", "leaf", "bundle"]
    assert "until 2027-11-16T03:00:00Z (364 d)" in lines[0]


def test_a_rotation_in_words() -> None:
    cluster = installed()
    cluster.annotate(SETTINGS.ca_secret, keys.ROTATE, "ca")
    lines, _ = told(cluster)
    assert lines[-1] == "next      make a new CA: somebody asked for it by annotation"
    settle(cluster)
    lines, codes = told(cluster)
    assert codes == [], "a rotation is not a problem"
    assert "a rotation is under way, its next step is due at 2026-11-16T03:06:00Z" in lines[-1]
    cluster.clock.advance(OVERLAP)
    settle(cluster)
    assert "old ca" in "\n".join(told(cluster)[0])


def empty(cluster: Cluster) -> None:
    for name in (SETTINGS.ca_secret, SETTINGS.leaf_secret):
        cluster.change(name, data={})


PROBLEMS: dict[str, tuple[Any, list[str]]] = {
    "all empty": (empty, ["UNREADABLE", "UNREADABLE", "DIFFERS"]),
    "wiped": (lambda c: c.wipe(), ["DIFFERS", "REJECTS_LEAF"]),
    "no configuration": (lambda c: c.configure(None), ["CONFIGURATION_MISSING"]),
    "no webhook of ours": (lambda c: c.configure(configuration("other")), ["NO_WEBHOOK"]),
    "CA lost": (lambda c: c.drop(SETTINGS.ca_secret), ["MISSING", "UNTRUSTED", "DIFFERS"]),
    "wish on the wrong Secret": (lambda c: c.annotate(SETTINGS.leaf_secret, keys.ROTATE, "ca"), ["UNKNOWN_WISH"]),
}


@pytest.mark.parametrize(("damage", "expected"), PROBLEMS.values(), ids=PROBLEMS.keys())
def test_every_problem_is_told(damage: Any, expected: list[str]) -> None:
    cluster = installed()
    damage(cluster)
    lines, codes = told(cluster)
    assert codes == expected
    assert sum(line.startswith("problem") for line in lines) == len(expected)


def test_external_certificates_are_judged_by_the_bundle_alone() -> None:
    cluster = installed()
    cluster.drop(SETTINGS.ca_secret)
    assert told(cluster, Settings(external=True))[1] == []
    cluster.wipe()
    assert told(cluster, Settings(external=True))[1] == ["REJECTS_LEAF"]
