"""`python -m descheduler plan` and `explain` on dumps."""

import io
import json
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from bench import pods
from descheduler.__main__ import main

CLUSTER = Path(__file__).parents[2] / "golden" / "descheduler" / "cluster.json"
NOW = ("--now", "2026-11-16T06:00:00Z")
Json = dict[str, Any]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main([*arguments, *NOW])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def planned(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Json]:
    code, out, err = run(capsys, "plan", "-o", "json", *arguments)
    assert err == ""
    found: Json = json.loads(out)
    return code, found


def test_the_keys_of_a_plan(capsys: pytest.CaptureFixture[str]) -> None:
    code, plan = planned(capsys, "-f", str(CLUSTER))
    assert code == 0
    assert list(plan) == ["moves", "refusals", "nodes", "summary"]
    assert {"namespace", "pod", "from", "to", "strategy", "reason"} <= set(plan["moves"][0])
    assert set(plan["refusals"][0]) == {"namespace", "pod", "strategy", "reasons"}
    assert set(plan["nodes"][0]) == {"name", "capacity", "loadBefore", "loadAfter"}
    assert plan["summary"]["moves"] == len(plan["moves"])
    assert plan["summary"]["complete"] is True


def test_what_is_planned(capsys: pytest.CaptureFixture[str]) -> None:
    _, plan = planned(capsys, "-f", str(CLUSTER))
    moves = {it["pod"]: (it["from"], it["to"], it["strategy"]) for it in plan["moves"]}
    assert moves["cart-0"] == ("on-demand-1", "spot-1", "NodeMaintenance")
    assert moves["web-0"] == ("spot-0", "spot-1", "LoadBalancing")
    reasons = {it["pod"]: [why["code"] for why in it["reasons"]] for it in plan["refusals"]}
    assert reasons["alone"] == ["NO_CONTROLLER"]
    assert reasons["search-0"] == ["NO_NODE_FITS"]
    assert reasons["proxy-on-demand-1"] == ["DAEMONSET"]


def test_all_forms_tell_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    _, plan = planned(capsys, "-f", str(CLUSTER))
    assert yaml.safe_load(run(capsys, "plan", "-o", "yaml", "-f", str(CLUSTER))[1]) == plan
    table = run(capsys, "plan", "-f", str(CLUSTER))[1]
    assert all(f"  {it['pod']} " in table for it in plan["moves"])
    verbose = run(capsys, "plan", "-v", "-f", str(CLUSTER))[1]
    assert all(f"  {it['pod']} " in verbose for it in plan["refusals"])


def test_the_same_from_standard_input_and_from_parts(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _, plan = planned(capsys, "-f", str(CLUSTER))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(CLUSTER.read_bytes())))
    assert planned(capsys, "-f", "-") == (0, plan)
    items = json.loads(CLUSTER.read_text())["items"]
    parts = [tmp_path / "one.json", tmp_path / "two.json"]
    parts[0].write_text(json.dumps({"kind": "List", "items": items[::2]}))
    parts[1].write_text("\n".join(map(json.dumps, items[1::2])))
    assert planned(capsys, "-f", str(parts[0]), "-f", str(parts[1])) == (0, plan)


def test_a_dump_without_budgets_is_planned_and_marked(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    document = json.loads(CLUSTER.read_text())
    document["items"] = [it for it in document["items"] if it["kind"] != "PodDisruptionBudget"]
    path = tmp_path / "partial.json"
    path.write_text(json.dumps(document))
    code, plan = planned(capsys, "-f", str(path))
    assert code == 3
    assert plan["summary"]["complete"] is False
    assert plan["summary"]["assumed"] == ["poddisruptionbudgets: there are none; assumed: no budget limits evictions"]
    assert plan["moves"]
    code, out, _ = run(capsys, "plan", "-f", str(path))
    assert code == 3
    assert out.startswith("Not everything is known")
    assert planned(capsys, "-f", str(path), "--none", "poddisruptionbudgets")[0] == 0


def test_settings_are_those_of_the_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text("apiVersion: spotshift.dev/v1alpha1\nkind: Policy\nenabledStrategies: [NodeMaintenance]\n")
    _, plan = planned(capsys, "-f", str(CLUSTER), "--settings", str(path))
    assert {it["strategy"] for it in plan["moves"]} == {"NodeMaintenance"}


def test_explain_a_pod(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "explain", "alone", "-n", "shop", "-o", "json", "-f", str(CLUSTER))
    told = json.loads(out)
    assert code == 0
    assert told["plan"]["decision"] == "refuse"
    assert [it["code"] for it in told["guards"] if it["objection"]] == ["NO_CONTROLLER"]
    assert [it["strategy"] for it in told["strategies"] if it["proposes"]] == ["NodeMaintenance"]
    assert {it["node"] for it in told["nodes"]} == {"on-demand-0", "on-demand-1", "spot-0", "spot-1"}
    assert all(it["misfits"] == [] for it in told["nodes"])


def test_explain_tells_values_that_mean_nothing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    document = json.loads(CLUSTER.read_text())
    space = next(
        it["metadata"] for it in document["items"] if it["kind"] == "Namespace" and it["metadata"]["name"] == "shop"
    )
    space["annotations"] = {"scheduler.alpha.kubernetes.io/spot": "maybe"}
    path = tmp_path / "mistaken.json"
    path.write_text(json.dumps(document))
    said = "scheduler.alpha.kubernetes.io/spot: 'maybe' is not accepted, use 'prefer', 'require', 'avoid' or 'ignore'"
    told = json.loads(run(capsys, "explain", "alone", "-n", "shop", "-o", "json", "-f", str(path))[1])
    assert told["mistakes"] == [{"on": "Namespace shop", "text": said}]
    assert said in run(capsys, "explain", "alone", "-n", "shop", "-f", str(path))[1]


def test_explain_tells_every_misfit(capsys: pytest.CaptureFixture[str]) -> None:
    told = json.loads(run(capsys, "explain", "shop/search-0", "-o", "json", "-f", str(CLUSTER))[1])
    codes = {it["node"]: [why["code"] for why in it["misfits"]] for it in told["nodes"]}
    assert codes == {
        "on-demand-0": ["NODE_SELECTOR"],
        "on-demand-1": [],
        "spot-0": ["RESOURCES", "NODE_SELECTOR"],
        "spot-1": ["NODE_SELECTOR"],
    }


def test_explain_agrees_with_the_plan(capsys: pytest.CaptureFixture[str]) -> None:
    _, plan = planned(capsys, "-f", str(CLUSTER))
    for wanted, decision in ((plan["moves"], "move"), (plan["refusals"], "refuse")):
        for it in wanted:
            name = f"{it['namespace']}/{it['pod']}"
            told = json.loads(run(capsys, "explain", name, "-o", "json", "-f", str(CLUSTER))[1])
            assert told["plan"]["decision"] == decision, name


FAILURES = {
    "no such file": (["plan", "-f", "nowhere.json"], "error: nowhere.json: No such file or directory\n"),
    "not a dump": (["plan", "-f", __file__], f"error: {__file__}: line 1, column "),
    "no such pod": (
        ["explain", "web-00", "-n", "shop", "-f", str(CLUSTER)],
        "error: there is no running or waiting pod shop/web-00 (did you mean 'web-0'?)\n",
    ),
    "another namespace": (
        ["explain", "web-0", "-f", str(CLUSTER)],
        "error: there is no running or waiting pod default/web-0 (it is in namespace shop, use -n)\n",
    ),
    "no such settings": (["plan", "-f", str(CLUSTER), "--settings", "no.yaml"], "error: no.yaml: No such file"),
    "wrong settings": (
        ["plan", "-f", str(CLUSTER), "--settings", str(CLUSTER)],
        f"error: {CLUSTER}: apiVersion: 'v1' is not accepted, use 'spotshift.dev/v1alpha1'",
    ),
    "no such kubeconfig": (
        ["plan", "--kubeconfig", "no.config"],
        "error: there is no kubeconfig at no.config; use",
    ),
}


@pytest.mark.parametrize(("arguments", "told"), FAILURES.values(), ids=FAILURES.keys())
def test_failures(capsys: pytest.CaptureFixture[str], arguments: list[str], told: str) -> None:
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (1, "")
    assert err.startswith(told)


USAGE = {
    "no command": ([], "the following arguments are required: COMMAND"),
    "an unknown form": (["plan", "-o", "xml"], "invalid choice: 'xml' (choose from"),
    "an unknown kind": (["plan", "--none", "pdb"], "'pdb' is not accepted, use any of nodes, pods, "),
    "a wrong time": (["plan", "--now", "soon"], "'soon' is not accepted, use a time such as 2026-11-16T06:00:00Z"),
}


@pytest.mark.parametrize(("arguments", "told"), USAGE.values(), ids=USAGE.keys())
def test_wrong_usage(capsys: pytest.CaptureFixture[str], arguments: list[str], told: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert told in capsys.readouterr().err


def test_an_unreachable_cluster_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "config"
    named = {"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    users = [{"name": "u", "user": {"token": "t"}}]
    path.write_text(json.dumps({"clusters": [named], "contexts": [context], "users": users, "current-context": "c"}))
    code, out, err = run(capsys, "plan", "--kubeconfig", str(path))
    assert (code, out) == (1, "")
    assert err.startswith("error: the cluster at http://127.0.0.1:1 does not answer: ")


RATIO = 3.0
SIZE = 500
"""Pods. The ratio does not depend on the size; thirty thousand are measured by `bench.plan`."""


def test_planning_takes_about_as_long_as_reading(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    cluster = json.loads(CLUSTER.read_text())
    more = json.loads(pods.body(SIZE, templates=SIZE // 50))["items"]
    for number, pod in enumerate(more):
        pod["spec"]["nodeName"] = f"node-{number % 60}"
    nodes = [{**cluster["items"][0], "metadata": {"name": f"node-{number}"}} for number in range(60)]
    path = tmp_path / "large.json"
    path.write_text(json.dumps({"kind": "List", "items": [*cluster["items"], *nodes, *more]}, indent=4))
    ratios = []
    for _ in range(3):
        began = time.process_time()
        with path.open() as file:
            json.load(file)
        read = time.process_time()
        assert planned(capsys, "-f", str(path))[1]["summary"]["pods"] == SIZE + 15
        ratios.append((time.process_time() - read) / (read - began))
    assert min(ratios) < RATIO, ratios
