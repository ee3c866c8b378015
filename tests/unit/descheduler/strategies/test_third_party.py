"""A strategy from a package of its own: installed, listed, asked; and what is said when one of these is missing."""

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from descheduler import strategies
from descheduler.strategies import third_party
from descheduler.strategies.third_party import Unusable
from policy.settings import Settings
from policy.settings_strategies import Strategies, ThirdParty
from tests.unit.descheduler import build, scenes
from tests.unit.descheduler.scenes import deployment, nodes

EXAMPLE = Path(__file__).parents[4] / "examples" / "strategy"
NAME = "LeaveNoisyNodes"


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
        pytest.param({NAME: "it"}, "NAME, WEIGHT, Args, propose = 'x', 1, int, print", "calls itself 'x'", id="name"),
    ],
)
def test_what_is_wrong_is_said(site: Path, points: dict[str, str], source: str, complaint: str) -> None:
    (site / "it.py").write_text(source)
    install(site, points)
    with pytest.raises(Unusable, match=complaint):
        strategies.active(listed())


def test_arguments_it_does_not_know_are_refused(site: Path) -> None:
    install_the_example(site)
    with pytest.raises(Unusable, match=f"strategies.thirdParty.{NAME}.args: .*unknown field `lable`"):
        strategies.active(listed(lable="loud"))
