"""Whatever is booked, a Fitter that follows says the same as one that is made afresh for the cluster as it became."""

import random
from typing import Any

import pytest

from descheduler.fit import Fitter
from descheduler.picture import Picture
from tests.unit.descheduler import build

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
NODES = [f"n{number}" for number in range(6)]
SPACES = ("default", "other")


def nodes(rng: random.Random) -> list[Any]:
    zones = ("a", "b", "c", "")
    return [build.node(name, zone=rng.choice(zones), cpu=str(rng.randint(2, 4)), pods="8") for name in NODES]


def term(rng: random.Random) -> dict[str, Any]:
    selector = {"matchLabels": {"app": rng.choice(("web", "db"))}}
    spaces: dict[str, Any] = {"namespaceSelector": {}} if rng.random() < 0.3 else {}
    return {"topologyKey": rng.choice((ZONE, HOST)), "labelSelector": selector, **spaces}


def spec(rng: random.Random) -> dict[str, Any]:
    made: dict[str, Any] = {"affinity": {}}
    for kind in ("podAffinity", "podAntiAffinity"):
        if rng.random() < 0.25:
            made["affinity"][kind] = {REQUIRED: [term(rng)]}
    if rng.random() < 0.4:
        base = {"maxSkew": 1, "topologyKey": rng.choice((ZONE, HOST)), "whenUnsatisfiable": "DoNotSchedule"}
        selector = {"matchLabels": {"app": rng.choice(("web", "db"))}}
        made["topologySpreadConstraints"] = [{**base, "labelSelector": selector}]
    if rng.random() < 0.3:
        made["containers"] = [{"name": "main", "ports": [{"hostPort": rng.choice((80, 81))}]}]
    return made


def pods(rng: random.Random) -> dict[str, dict[str, Any]]:
    """By name, what `build.pod` needs; where it is comes with it."""
    return {
        f"p{number}": {
            "on": rng.choice(NODES),
            "namespace": rng.choice(SPACES),
            "cpu": rng.choice(("", "500m", "1")),
            "labels": {"app": rng.choice(("web", "db"))},
            "spec": spec(rng),
        }
        for number in range(14)
    }


@pytest.mark.parametrize("seed", range(30))
def test_following_is_like_starting_afresh(seed: int) -> None:
    rng = random.Random(seed)
    there, made = nodes(rng), pods(rng)
    known = {name: build.pod(name, **parts) for name, parts in made.items()}
    picture = Picture(build.state(*there, *known.values()))
    fitter = Fitter(picture)
    places: dict[str, str | None] = {name: parts["on"] for name, parts in made.items()}
    for _ in range(12):
        name = rng.choice(list(known))
        step(rng, picture, known[name], name, places, made[name]["on"])
        asked = known[rng.choice(list(known))]
        expected = afresh(there, made, places)
        for node in NODES:
            reasons = {it.code for it in fitter.misfits(asked, node)}
            assert reasons == {it.code for it in expected.misfits(asked, node)}
            assert fitter.fits(asked, node) is (not reasons)


def step(rng: random.Random, picture: Picture, pod: Any, name: str, places: dict[str, str | None], home: str) -> None:
    """Take the pod, or undo that, or put its replacement somewhere, or undo that."""
    place = places[name]
    if place is not None and place != home:
        picture.unput(pod, place)
        places[name] = None
    elif place is None and rng.random() < 0.5:
        picture.untake(pod)
        places[name] = home
    elif place is None:
        target = rng.choice([it for it in NODES if it != home])
        picture.put(pod, target)
        places[name] = target
    else:
        picture.take(pod)
        places[name] = None


def afresh(there: list[Any], made: dict[str, dict[str, Any]], places: dict[str, str | None]) -> Fitter:
    moved = [build.pod(name, **{**made[name], "on": place}) for name, place in places.items() if place is not None]
    return Fitter(Picture(build.state(*there, *moved)))
