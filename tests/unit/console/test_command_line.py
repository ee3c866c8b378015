"""The command line: every command has its usage, flags stand anywhere, mistakes are told, Tab knows what comes."""

import importlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from console import arguments, commands, completing, options, usage
from console.ending import Ending
from console.program import main

FOLDER = Path(commands.__file__).parent


def test_every_command_has_a_module_and_every_module_is_a_command() -> None:
    modules = {path.stem for path in FOLDER.glob("*.py")} - {"__init__"}
    assert {it.name for it in usage.REGISTRY} == modules
    assert all(callable(importlib.import_module(f"console.commands.{name}").run) for name in modules)


@pytest.mark.parametrize("command", usage.REGISTRY, ids=lambda it: it.name)
def test_help_has_examples_and_exit_codes(command: usage.Usage, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command.name, "--help"])
    told = capsys.readouterr().out
    assert ended.value.code == 0
    assert f"examples:\n{command.examples}\n" in told
    assert all(f"  {code.value}  " in told for code in Ending if code is not Ending.INTERRUPTED)


@pytest.mark.parametrize("command", usage.REGISTRY, ids=lambda it: it.name)
def test_examples_are_accepted(command: usage.Usage) -> None:
    for line in command.examples.splitlines():
        words = line.split("#")[0].replace("<(", " ").replace(")", " ").split()
        if words[:2] == ["kubectl", "spotshift"] or words[0] == "source":
            options.parse(words[2:])
        else:
            assert words[:2] == ["kubectl", "delete"]


def test_flags_stand_before_or_after_the_command() -> None:
    before = options.parse(["-n", "shop", "-o", "json", "--context", "c", "nodes"])
    after = options.parse(["nodes", "-n", "shop", "-o", "json", "--context", "c"])
    assert before == after
    assert (after.namespace, after.output, after.context) == ("shop", "json", "c")


MISTAKES = {
    "no command": ([], "the following arguments are required: COMMAND"),
    "no such command": (["statsu"], "invalid choice: 'statsu'"),
    "no such form": (["nodes", "-o", "xml"], "invalid choice: 'xml'"),
    "no such time": (["migrate", "p", "--timeout", "soon"], "'soon' is not accepted, use a duration such as 30s"),
    "less than no time": (
        ["migrate", "p", "--wait", "--timeout", "-1s"],
        "argument --timeout: '-1s' is not accepted, use a duration such as 30s",
    ),
    "a deadline before now": (
        ["maintenance", "start", "n", "--deadline", "-5m"],
        "argument --deadline: '-5m' is not accepted, use a duration such",
    ),
    "less than no time for an answer": (
        ["--request-timeout", "-1s", "nodes"],
        "argument --request-timeout: '-1s' is not accepted, use a duration such",
    ),
    "less than no time between": (
        ["top", "--interval", "-.5s"],
        "argument --interval: '-.5s' is not accepted, use a",
    ),
    "a value that is missing": (["nodes", "--request-timeout", "-A"], "--request-timeout: expected one argument"),
    "no such deadline": (
        ["maintenance", "start", "n", "--deadline", "x"],
        "'x' is not accepted, use a duration such",
    ),
    "too late a deadline": (
        ["maintenance", "start", "n", "--deadline", "9999-01-01T00:00:00Z"],
        "or 1h30m, a time with its zone from 1970 to 8999 such as 2026-07-01T18:00:00Z, or Unix seconds",
    ),
    "no such count": (["top", "--count", "0"], "'0' is not accepted, use a number from 1 up"),
    "no time at all": (["nodes", "--request-timeout", "1ns"], "--request-timeout: '1ns' is not accepted, use 0 for"),
    "no pause": (["top", "--interval", "0s"], "--interval: '0s' is not accepted, use a duration such as 30s"),
    "no system": (["nodes", "--system-namespace", ""], "--system-namespace: '' is not accepted, use the name of a"),
    "no settings": (["nodes", "--settings", ""], "argument --settings: '' is not accepted, use the name of a file"),
    "a path": (["nodes", "-n", "a/b"], "--namespace: 'a/b' is not accepted, use the name of a namespace"),
    "an empty pod": (["migrate", ""], "argument POD: '' is not accepted, use the name of a pod"),
    "a kind of pod": (["migrate", "pod/"], "argument POD: 'pod/' is not accepted, use the name of a pod"),
    "an empty target": (["migrate", "p", "--to", ""], "argument --to: '' is not accepted, use the name of a node"),
    "an empty node": (["maintenance", "status", ""], "argument NODE: '' is not accepted, use the name of a node"),
    "no pod": (["migrate"], "the following arguments are required: POD"),
    "no node to empty": (["maintenance", "start"], "maintenance: error: the following arguments are required: NODE"),
    "no node to give back": (["maintenance", "stop", "--wait"], "the following arguments are required: NODE"),
    "nothing to explain": (["explain", "pod"], "explain: error: the following arguments are required: NAME"),
    "no such thing": (["explain", "deployment", "web"], "use pod NAME, node NAME, pod/NAME or node/NAME"),
    "no such thing, joined": (["explain", "deployment/web"], "use pod NAME, node NAME, pod/NAME or node/NAME"),
    "two things": (["explain", "pod/a", "b"], "one at a time, not pod/a and b"),
    "another kind": (["explain", "pod", "node/a"], "node/a is no pod"),
    "a wait for nothing": (
        ["migrate", "p", "--dry-run", "--wait"],
        "--wait has no effect with --dry-run, which creates",
    ),
    "a limit without a wait": (["migrate", "p", "--timeout", "5s"], "--timeout has no effect without --wait"),
    "a limit of a drain without a wait": (["maintenance", "start", "n", "--timeout", "5s"], "effect without --wait"),
    "a limit without a watch": (["migrations", "--timeout", "5s"], "--timeout has no effect without -w"),
    "a look that waits": (
        ["maintenance", "status", "--wait"],
        "--wait has no effect with status, use it with start or",
    ),
    "a look with a deadline": (["maintenance", "status", "--deadline", "1h"], "--deadline has no effect with status"),
    "a deadline to give back": (
        ["maintenance", "stop", "n", "--deadline", "1h"],
        "maintenance: error: --deadline has no effect with stop, use it with start",
    ),
    "another thing": (["explain", "pod", "job/a"], "'job/a' is not accepted, use pod NAME"),
}


@pytest.mark.parametrize(("given", "told"), MISTAKES.values(), ids=MISTAKES.keys())
def test_wrong_usage_is_told(given: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(given)
    assert ended.value.code == Ending.USAGE
    said = capsys.readouterr().err
    assert said.startswith("usage: ")
    assert told in said


PATIENCE = {
    "0": arguments.NO_LIMIT,
    "0s": arguments.NO_LIMIT,
    "999999h": arguments.NO_LIMIT,
    "1500ms": timedelta(seconds=1.5),
}


@pytest.mark.parametrize(("text", "wanted"), PATIENCE.items())
def test_the_longest_wait_for_an_answer(text: str, wanted: timedelta) -> None:
    """More than a socket can wait for is no limit either."""
    assert options.parse(["nodes", "--request-timeout", text]).request_timeout == wanted


EXPLAINED = {
    "two words": (["pod", "web-0"], ("pod", "web-0")),
    "one word": (["pod/web-0"], ("pod", "web-0")),
    "as kubectl lists them": (["nodes/spot-0"], ("node", "spot-0")),
    "short": (["no", "spot-0"], ("node", "spot-0")),
    "said twice": (["pod", "pods/web-0"], ("pod", "web-0")),
}


@pytest.mark.parametrize(("words", "wanted"), EXPLAINED.values(), ids=EXPLAINED.keys())
def test_what_is_explained(words: list[str], wanted: tuple[str, str]) -> None:
    found = options.parse(["explain", *words])
    assert (found.kind, found.name) == wanted


def test_no_kubeconfig_is_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    missing = tmp_path / "none"
    assert main(["nodes", "--kubeconfig", str(missing)]) == Ending.FAILED
    told = f"error: there is no kubeconfig at {missing}; use --kubeconfig and --context, or KUBECONFIG\n"
    assert capsys.readouterr() == ("", told)


def test_no_name_of_a_kubeconfig_is_that_without_the_flag() -> None:
    assert options.parse(["nodes", "--kubeconfig", ""]).kubeconfig is None
    assert options.parse(["nodes", "--kubeconfig", "a"]).kubeconfig == Path("a")


def test_a_deadline_is_a_length_or_a_time() -> None:
    assert arguments.deadline("2h") == timedelta(hours=2)
    assert arguments.deadline("2026-07-01T20:00:00+02:00") == datetime(2026, 7, 1, 18, tzinfo=UTC)


def names(kind: str, flags: Mapping[str, str]) -> Iterable[str]:
    known = {"pods": {"": ["web-0", "web-1"], "shop": ["cart-0"]}, "nodes": {"": ["spot-0", "spot-1"]}}
    return known.get(kind, {"": ["default", "shop"]}).get(flags.get("namespace", ""), ()) or known["nodes"][""]


COMPLETIONS: dict[str, tuple[list[str], list[str]]] = {
    "a command": (["mig"], ["migrations", "migrate"]),
    "a command after a flag": (["-n", "shop", "no"], ["nodes"]),
    "everything": ([""], [it.name for it in usage.REGISTRY]),
    "a flag": (["nodes", "--st"], ["--state"]),
    "a choice": (["nodes", "-o", "j"], ["json"]),
    "what to do": (["maintenance", "sto"], ["stop"]),
    "a node": (["maintenance", "start", "spot"], ["spot-0", "spot-1"]),
    "one more node": (["maintenance", "start", "spot-0", ""], ["spot-1"]),
    "a pod": (["migrate", "web"], ["web-0", "web-1"]),
    "a pod of a namespace": (["-n", "shop", "migrate", ""], ["cart-0"]),
    "a pod of a namespace, joined": (["migrate", "--namespace=shop", ""], ["cart-0"]),
    "a target": (["migrate", "web-0", "--to", "spot-1"], ["spot-1"]),
    "a namespace": (["nodes", "-n", "s"], ["shop"]),
    "what to explain": (["explain", ""], ["pod", "node"]),
    "a pod to explain": (["explain", "pod", ""], ["web-0", "web-1"]),
    "a node to explain": (["explain", "node", ""], ["spot-0", "spot-1"]),
    "a pod in one word": (["explain", "pod/web"], ["pod/web-0", "pod/web-1"]),
    "a node in one word": (["explain", "node/"], ["node/spot-0", "node/spot-1"]),
    "after one word": (["explain", "node/spot-0", ""], []),
    "nothing more": (["explain", "node", "spot-0", ""], []),
    "a time": (["migrate", "web-0", "--timeout", ""], []),
    "a shell": (["completion", ""], ["bash", "zsh"]),
}


@pytest.mark.parametrize(("words", "wanted"), COMPLETIONS.values(), ids=COMPLETIONS.keys())
def test_what_may_come_next(words: list[str], wanted: list[str]) -> None:
    *found, last = completing.lines(words, options.parser(), names)
    assert [line.partition("\t")[0] for line in found] == wanted
    assert last == ":4"


def test_files_may_come_where_a_file_is_wanted() -> None:
    assert completing.lines(["nodes", "--settings", ""], options.parser(), names) == [":0"]
