"""Each alert fires when it should and is quiet when it should be: promtool on the rules as they are shipped."""

import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed import extras

RULES = Path(__file__).parents[3] / "manifests" / "components" / "monitoring" / "rules.yaml"
OPEN = 'apiserver_admission_webhook_fail_open_count{name="pods.webhook.spotshift.dev",type="admit"}'
EXPIRY = "spotshift_certificate_expiry_timestamp_seconds"
ENDED = 'spotshift_migrations_total{strategy="LoadBalancing",mode="Evict",outcome="%s",instance="a"}'

pytestmark = pytest.mark.timeout(1800)
"""Where promtool is not found it is built first."""


@dataclass(frozen=True)
class Case:
    """Series from minute 0, one value a minute; at which minute the alert is looked at."""

    alert: str
    series: dict[str, str]
    at: int
    fires: bool = True
    labels: dict[str, str] = field(default_factory=dict)
    severity: str = "warning"


CASES = {
    "no answer": Case("SpotshiftWebhookFailingOpen", {OPEN: "0x10 1+1x30"}, 25),
    "no answer once, long ago": Case("SpotshiftWebhookFailingOpen", {OPEN: "0x5 7x40"}, 25, fires=False),
    "answers with errors": Case(
        "SpotshiftAdmissionErrors", {'spotshift_admissions_total{result="failed"}': "0+2x30"}, 20
    ),
    "answers": Case(
        "SpotshiftAdmissionErrors", {'spotshift_admissions_total{result="patched"}': "0+9x30"}, 20, fires=False
    ),
    "a leaf near its end": Case(
        "SpotshiftCertificateNearExpiry",
        {
            f'{EXPIRY}{{certificate="leaf",instance="a"}}': "605400x60",
            f'{EXPIRY}{{certificate="ca",instance="b"}}': "9e9x60",
        },
        40,
        labels={"certificate": "leaf"},
        severity="critical",
    ),
    "a CA near its end": Case(
        "SpotshiftCertificateNearExpiry",
        {f'{EXPIRY}{{certificate="ca",instance="b"}}': "2592600x60"},
        40,
        labels={"certificate": "ca"},
        severity="critical",
    ),
    "a fresh leaf": Case(
        "SpotshiftCertificateNearExpiry",
        {f'{EXPIRY}{{certificate="leaf",instance="a"}}': "864000x60"},
        40,
        fires=False,
    ),
    "nobody leads": Case(
        "SpotshiftNoLeader",
        {'spotshift_leader{instance="a"}': "1x5 0x30", 'spotshift_leader{instance="b"}': "0x40"},
        20,
        severity="critical",
    ),
    "nobody is there": Case("SpotshiftNoLeader", {"something_else": "1x30"}, 20, severity="critical"),
    "the lead changes hands": Case(
        "SpotshiftNoLeader",
        {'spotshift_leader{instance="a"}': "1x9 0x30", 'spotshift_leader{instance="b"}': "0x9 1x30"},
        20,
        fires=False,
    ),
    "an old plan": Case(
        "SpotshiftPlanStale",
        {
            'spotshift_leader{instance="a"}': "1x60",
            'spotshift_last_good_pass_timestamp_seconds{instance="a"}': "60x60",
            'spotshift_rescheduling_interval_seconds{instance="a"}': "30x60",
            'spotshift_last_good_pass_timestamp_seconds{instance="certs"}': "0+60x60",
            'spotshift_leader{instance="certs"}': "0x60",
            'spotshift_rescheduling_interval_seconds{instance="certs"}': "0x60",
        },
        20,
        labels={"instance": "a"},
    ),
    "an old plan of one that led before": Case(
        "SpotshiftPlanStale",
        {
            'spotshift_leader{instance="a"}': "1x60",
            'spotshift_last_good_pass_timestamp_seconds{instance="a"}': "0+60x60",
            'spotshift_rescheduling_interval_seconds{instance="a"}': "30x60",
            'spotshift_leader{instance="b"}': "0x60",
            'spotshift_last_good_pass_timestamp_seconds{instance="b"}': "60x60",
            'spotshift_rescheduling_interval_seconds{instance="b"}': "0x60",
        },
        20,
        fires=False,
    ),
    "a plan as old as a long interval": Case(
        "SpotshiftPlanStale",
        {
            'spotshift_leader{instance="a"}': "1x60",
            'spotshift_last_good_pass_timestamp_seconds{instance="a"}': "60x60",
            'spotshift_rescheduling_interval_seconds{instance="a"}': "1200x60",
        },
        20,
        fires=False,
    ),
    "a plan older than three long intervals": Case(
        "SpotshiftPlanStale",
        {
            'spotshift_leader{instance="a"}': "1x90",
            'spotshift_last_good_pass_timestamp_seconds{instance="a"}': "60x90",
            'spotshift_rescheduling_interval_seconds{instance="a"}': "1200x90",
        },
        70,
        labels={"instance": "a"},
    ),
    "moves that do not end": Case(
        "SpotshiftMigrationsStuck",
        {'spotshift_migrations_open{phase="InProgress",instance="a"}': "2x120", ENDED % "onTarget": "5x120"},
        70,
    ),
    "moves that end": Case(
        "SpotshiftMigrationsStuck",
        {'spotshift_migrations_open{phase="InProgress",instance="a"}': "2x120", ENDED % "onTarget": "0+1x120"},
        70,
        fires=False,
    ),
    "bounces": Case("SpotshiftBounces", {ENDED % "source": "0 1 2 4 4x60"}, 30),
    "one bounce": Case("SpotshiftBounces", {ENDED % "source": "0 1x60"}, 30, fires=False),
    "many failures": Case("SpotshiftMovesFailing", {ENDED % "failed": "0+1x60", ENDED % "onTarget": "0+1x60"}, 30),
    "few failures": Case(
        "SpotshiftMovesFailing", {ENDED % "failed": "0+1x60", ENDED % "onTarget": "0+20x60"}, 30, fires=False
    ),
    "refused again and again": Case("SpotshiftEvictionsRefused", {"spotshift_evictions_blocked_total": "0+2x90"}, 60),
    "refused for a while": Case(
        "SpotshiftEvictionsRefused", {"spotshift_evictions_blocked_total": "0+2x20 40x70"}, 60, fires=False
    ),
    "a drain that stands still": Case("SpotshiftDrainStuck", {'spotshift_drain_pods{instance="a"}': "3x120"}, 100),
    "a drain that goes on": Case(
        "SpotshiftDrainStuck", {'spotshift_drain_pods{instance="a"}': "120-1x110"}, 100, fires=False
    ),
    "bad settings": Case("SpotshiftSettingsRejected", {'spotshift_settings_rejected{instance="a"}': "1x30"}, 15),
    "settings mended": Case(
        "SpotshiftSettingsRejected", {'spotshift_settings_rejected{instance="a"}': "1x5 0x30"}, 15, fires=False
    ),
    "defects": Case("SpotshiftInternalErrors", {"spotshift_internal_errors_total": "0+1x60"}, 40),
    "an old defect": Case("SpotshiftInternalErrors", {"spotshift_internal_errors_total": "0 1x60"}, 40, fires=False),
}


@pytest.fixture(scope="module")
def promtool() -> Path:
    return extras.find("promtool", os.environ)


def groups() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load(RULES.read_text())["spec"]["groups"]
    return found


def run(program: Path, *arguments: str | Path) -> str:
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_rules_are_accepted(promtool: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(yaml.safe_dump({"groups": groups()}))
    count = sum(len(group["rules"]) for group in groups())
    assert f"SUCCESS: {count} rules found" in run(promtool, "check", "rules", rules)


def expected(case: Case) -> dict[str, Any]:
    fired = [{"exp_labels": {"severity": case.severity, **case.labels}}] if case.fires else []
    return {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in case.series.items()],
        "alert_rule_test": [{"eval_time": f"{case.at}m", "alertname": case.alert, "exp_alerts": fired}],
    }


def test_every_alert_fires_and_is_quiet(promtool: Path, tmp_path: Path) -> None:
    """One run for all of them: starting promtool takes longer than a case. Annotations are left out."""
    bare = [
        {**group, "rules": [{key: it for key, it in rule.items() if key != "annotations"} for rule in group["rules"]]}
        for group in groups()
    ]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": bare}))
    cases = [{"name": name, **expected(case)} for name, case in CASES.items()]
    tests = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": cases}
    (tmp_path / "tests.yaml").write_text(yaml.safe_dump(tests))
    run(promtool, "test", "rules", tmp_path / "tests.yaml")
    alerts = {rule["alert"] for group in groups() for rule in group["rules"]}
    assert {case.alert for case in CASES.values() if case.fires} == alerts
    assert {case.alert for case in CASES.values() if not case.fires} == alerts


def test_a_wrong_expectation_is_noticed(promtool: Path, tmp_path: Path) -> None:
    """promtool really evaluates: the same case with the opposite expectation fails."""
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": groups()}))
    wrong = expected(CASES["moves that end"])
    wrong["alert_rule_test"][0]["exp_alerts"] = [{"exp_labels": {"severity": "warning"}}]
    (tmp_path / "tests.yaml").write_text(yaml.safe_dump({"rule_files": ["rules.yaml"], "tests": [wrong]}))
    done = subprocess.run([promtool, "test", "rules", tmp_path / "tests.yaml"], capture_output=True, check=False)
    assert done.returncode != 0
