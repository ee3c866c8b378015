"""A strategy from a package of its own: installed, listed, asked; and what is said when one of these is missing."""

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from descheduler import strategies
from descheduler.__main__ import main
from descheduler.strategies import third_party
from policy.settings import Settings
from policy.settings_strategies import NodeMaintenance, Strategies, ThirdParty
from tests.unit.descheduler import build, scenes
from tests.unit.descheduler.scenes import deployment, nodes

EXAMPLE = Path(__file__).parents[4] / "examples" / "strategy"
DUMP = Path(__file__).parents[3] / "golden" / "descheduler" / "cluster.json"
NAME = "LeaveNoisyNodes"
WAITING = deployment("y", [""], cpu="99")


@pytest.fixture(autouse=True)
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A place on the path to install packages into."""
    monkeypatch.syspath_prepend(str(tmp_path))
    third_party.load.cache_clear()
    before = set(sys.modules)
    yield tmp_path
    third_party.load.cache_clear()
    for name in set(sys.modules) - before:
        del sys.modules[name]


def install(site: Path, points: dict[str, str]) -> None:
    """What an installer leaves behind: the modules, and the metadata with the entry points."""
    info = site / "example-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: example\nVersion: 0.1.0\n")
    lines = [f"[{third_party.GROUP}]", *(f"{name} = {value}" for name, value in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines))


def install_the_example(site: Path) -> None:
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())
    for module in project["tool"]["setuptools"]["py-modules"]:
        (site / f"{module}.py").write_text((EXAMPLE / f"{module}.py").read_text())
    install(site, project["project"]["entry-points"][third_party.GROUP])


def listed(name: str = NAME, **args: object) -> Settings:
    return Settings(
        enabled_strategies=(name,), strategies=Strategies(third_party={name: ThirdParty(weight=55, args=args)})
    )


def test_the_example_is_asked_like_one_of_ours(site: Path) -> None:
    install_the_example(site)
    objects = [build.node("n0", labels={"loud": "true"}), *nodes("n1"), *deployment("x", ["n0"])]
    assert scenes.made(objects, listed()).moves == ()
    (move,) = scenes.made(objects, listed(label="loud")).moves
    assert (move.strategy, move.weight, move.source, move.target) == (NAME, 55, "n0", "n1")
    assert move.why == "node n0 is labelled loud"


def test_installed_but_not_listed_is_not_asked(site: Path) -> None:
    install_the_example(site)
    assert NAME not in [it.name for it in strategies.active(Settings())]


@pytest.mark.parametrize(
    ("points", "source", "complaint"),
    [
        pytest.param({}, "", "'LeaveNoisyNodes', which no installed package offers; offered: none", id="missing"),
        pytest.param({"Other": "it"}, "", "offered: Other", id="another is installed"),
        pytest.param({NAME: "it"}, "NAME = 'x'", "lacks WEIGHT, Args, propose", id="not a strategy"),
        pytest.param({NAME: "it"}, "import that_is_not_there", "No module named 'that_is_not_there'", id="import"),
        pytest.param({NAME: "it"}, "1 / 0", "ZeroDivisionError at it.py:1", id="fails when it is imported"),
        pytest.param({NAME: "it"}, "NAME, WEIGHT, Args, propose = 'x', 1, int, print", "calls itself 'x'", id="name"),
    ],
)
def test_what_is_wrong_is_said(site: Path, points: dict[str, str], source: str, complaint: str) -> None:
    (site / "it.py").write_text(source)
    install(site, points)
    for _ in range(2):
        (left_out,) = strategies.line_up(listed()).left_out
        assert left_out.strategy == NAME
        assert complaint in left_out.why


def test_arguments_it_does_not_know_are_refused(site: Path) -> None:
    install_the_example(site)
    (left_out,) = strategies.line_up(listed(lable="loud")).left_out
    assert left_out.why.startswith(f"strategies.thirdParty.{NAME}.args: ")
    assert "unknown field `lable`" in left_out.why


HEAD = """
from datetime import datetime
from msgspec import Struct
from descheduler.proposal import Proposal, Urgency
NAME, WEIGHT = "LeaveNoisyNodes", 50
class Args(Struct): pass
class Aim:
    def reached(self, picture): return False
    def ceiling(self): return 1e9
    def alike(self): return None
    def objection(self, picture, pod, node): return None
def wish(pod, **more): return Proposal(pod, Urgency.VOLUNTARY, "why not", **more)
"""
WISH = "yield wish(list(state.nodes['n0'].pods.values())[1], aim=Aim())"
FAILURES = {
    "not iterable": ("def propose(state, args, now): return 1", "TypeError"),
    "at once": ("def propose(state, args, now): raise KeyError(now)", "KeyError at it.py:"),
    "not a proposal": ("def propose(state, args, now): yield 1", "not a Proposal"),
    "no time zone": (
        "def propose(state, args, now): yield wish(state.pods['default', 'x-00'], deadline=datetime(2026, 1, 1))",
        "no time zone",
    ),
    "a pod without a node": (
        "def propose(state, args, now): yield wish(state.pending['default', 'y-00'])",
        "on no node",
    ),
    "an urgency of its own": (
        "def propose(state, args, now): yield Proposal(state.pods['default', 'x-00'], 'voluntary', '')",
        "urgency",
    ),
    "aim: reached": (f"Aim.reached = lambda *_: 1 / 0\ndef propose(state, args, now): {WISH}", "ZeroDivisionError"),
    "aim: ceiling": (f"Aim.ceiling = lambda *_: 'high'\ndef propose(state, args, now): {WISH}", "ValueError"),
    "aim: alike": (f"Aim.alike = lambda *_: []\ndef propose(state, args, now): {WISH}", "TypeError"),
    "aim: objection": (
        f"Aim.objection = lambda *_: 1 / 0\ndef propose(state, args, now): {WISH}",
        "ZeroDivisionError",
    ),
    "aim: an odd objection": (f"Aim.objection = lambda *_: 'no'\ndef propose(state, args, now): {WISH}", "Reason"),
}


@pytest.mark.parametrize(("source", "complaint"), FAILURES.values(), ids=FAILURES.keys())
def test_one_that_fails_leaves_all_others_their_moves(site: Path, source: str, complaint: str) -> None:
    (site / "it.py").write_text(HEAD + source)
    install(site, {NAME: "it"})
    drained = build.node("n2", labels={"scheduler.alpha.kubernetes.io/maintenance": "true"})
    objects = [*nodes("n0", "n1"), drained, *deployment("x", ["n0", "n0"]), *deployment("z", ["n2"]), *WAITING]
    alone = scenes.made(objects, Settings(enabled_strategies=("NodeMaintenance",)))
    assert scenes.moves(alone)
    for weight in (500, NodeMaintenance().weight, 1):
        beside = Strategies(third_party={NAME: ThirdParty(weight=weight)})
        found = scenes.made(objects, Settings(enabled_strategies=("NodeMaintenance", NAME), strategies=beside))
        assert scenes.moves(found) == scenes.moves(alone)
        (left_out,) = found.left_out
        assert left_out.why.startswith("it failed: ")
        assert complaint in left_out.why


def test_what_it_proposed_before_it_failed_counts(site: Path) -> None:
    proposals = "for pod in state.nodes['n0'].pods.values(): yield wish(pod)"
    (site / "it.py").write_text(f"{HEAD}def propose(state, args, now):\n    {proposals}\n    raise OSError")
    install(site, {NAME: "it"})
    found = scenes.made([*nodes("n0", "n1"), *deployment("x", ["n0"])], listed())
    assert [it.strategy for it in found.moves] == [NAME]
    assert [it.strategy for it in found.left_out] == [NAME]


@pytest.mark.parametrize("command", [("plan",), ("explain", "shop/web-0")], ids=["plan", "explain"])
def test_the_command_says_it(capsys: pytest.CaptureFixture[str], tmp_path: Path, command: tuple[str, ...]) -> None:
    settings = tmp_path / "settings.yaml"
    head = "apiVersion: spotshift.dev/v1alpha1\nkind: Policy\n"
    chosen = f"enabledStrategies: [LoadBalancing, {NAME}]\nstrategies: {{thirdParty: {{{NAME}: {{}}}}}}\n"
    settings.write_text(head + chosen)
    code = main([*command, "-f", str(DUMP), "--settings", str(settings), "--now", "2026-11-16T06:00:00Z"])
    told = capsys.readouterr()
    assert (code, told.err) == (3, "")
    assert told.out.startswith("Strategies that have no part in this")
    assert "no installed package offers" in told.out
    assert "LoadBalancing" in told.out
