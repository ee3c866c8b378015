"""Pods of a spec for which no node will do ask once for all of them, and are told the same as if each had asked."""

import random
from collections.abc import Iterable
from typing import Any

import pytest

from descheduler.fit import Fitter
from descheduler.ledger import Ledger
from descheduler.picture import Picture
from descheduler.places import Places
from descheduler.reasons import Code
from descheduler.strategies.load_balancing import Level
from descheduler.trial import Trial
from policy.settings import Settings
from policy.settings_moves import Limits
from tests.unit.descheduler import build, counting, scenes

POD_NAME = "statefulset.kubernetes.io/pod-name"


def stateful(count: int, on: str) -> list[Any]:
    """Pods that all have a label and a claim of their own, for the same network volume."""
    owner, found = build.owner("StatefulSet", "db"), []
    for number in range(count):
        name = f"db-{number}"
        volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": f"data-{name}"}}]
        labels = {"app": "db", POD_NAME: name}
        found.append(build.pod(name, on=on, of=owner, labels=labels, spec={"volumes": volumes}, cpu="2"))
    return found


def claimed(count: int) -> list[Any]:
    """The set itself and what its pods mount."""
    status = {"replicas": count, "readyReplicas": count, "currentRevision": "a", "updateRevision": "a"}
    bound = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
    claims = (
        build.thing("PersistentVolumeClaim", f"data-db-{it}", metadata=bound, spec={"volumeName": "v"})
        for it in range(count)
    )
    owner = build.thing("StatefulSet", "db", spec={"replicas": count}, status=status)
    return [owner, build.thing("PersistentVolume", "v", ""), *claims]


def full(names: Iterable[str], **more: Any) -> list[Any]:
    """Nodes of four cpus with a pod of three."""
    return [it for name in names for it in (build.node(name, **more), build.pod(f"on-{name}", on=name, cpu="3"))]


def test_pods_of_a_stateful_set_ask_full_spot_nodes_once(monkeypatch: pytest.MonkeyPatch) -> None:
    spot = [f"s{number}" for number in range(20)]
    pods = stateful(30, "o")
    tried = Trial(build.state(*full(spot, spot=True), build.node("o", spot=False, cpu="64"), *pods), Settings())
    asked = counting.calls(monkeypatch, Fitter, "fits")
    assert not any(tried.all((pod,)) for pod in pods)
    assert len(asked) == len(spot)


def test_pods_that_wait_ask_once_whatever_their_index_is(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = counting.calls(monkeypatch, Fitter, "fits")
    owner, index = build.owner("Job", "batch"), "batch.kubernetes.io/job-completion-index"
    waiting = [build.pod(f"b{it}", of=owner, cpu="2", labels={index: f"{it}"}) for it in range(30)]
    ledger = Ledger(build.state(*full(f"n{number}" for number in range(20)), *waiting), Settings())
    assert not ledger.picture.arrived
    assert len(asked) == 20


def test_takers_that_would_all_be_too_full_are_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One node is too full, and a pod more would make any other so; with as many pods it is not more often."""
    free = Settings(
        enabled_strategies=("LoadBalancing",), limits=Limits(per_node=100, per_namespace=100, per_workload=100)
    )
    counts, told = [], []
    for count in (8, 24):
        others = [it for name in map(str, range(20)) for it in (build.node(name), build.pod(f"on-{name}", on=name))]
        world = [build.node("big", cpu=f"{count * 2}"), *others, *stateful(count, "big"), *claimed(count)]
        asked = counting.calls(monkeypatch, Level, "objection")
        found = scenes.made(world, free)
        assert not found.moves
        counts.append(len(asked))
        told.append({(reason.code, reason.text) for no in found.refusals for reason in no.reasons})
    assert counts[1] <= counts[0] + 24 * 3
    assert [{code for code, _ in it} for it in told] == [{Code.NO_IMPROVEMENT}] * 2
    assert all(len(it) == 1 for it in told)


@pytest.mark.parametrize("seed", range(20))
def test_it_says_what_a_search_would_find(seed: int) -> None:
    """Pods come, go and look for a place in any order; who remembers and who does not find the same."""
    rng = random.Random(seed)
    names = [f"n{number}" for number in range(6)]
    world: list[Any] = [
        build.node(name, cpu=str(rng.randint(2, 4)), spot=rng.random() < 0.5, labels={"kind": rng.choice("ab")})
        for name in names
    ]
    for number in range(16):
        chosen = {"nodeSelector": {"kind": "a"}} if number % 4 == 0 else {}
        size, labels = rng.choice(("500m", "1", "2")), {POD_NAME: str(number)}
        world.append(build.pod(f"p{number}", on=rng.choice((*names, "")), cpu=size, spec=chosen, labels=labels))
    state = build.state(*world)
    picture = Picture(state)
    kept, nobody = Places(picture, Fitter(picture)), 0
    there: dict[Any, str] = {}
    for _ in range(120):
        pod, spot = rng.choice(list(state.pods.values())), rng.choice((True, False, None))
        if pod.metadata.key in there:
            target = there.pop(pod.metadata.key)
            picture.unput(pod, target)
            if pod.node_name:
                picture.untake(pod)
            kept.unmoved(pod, target)
            continue
        if pod.node_name:
            picture.take(pod)
        found = kept.choose(pod, spot=spot)
        fresh = Places(picture, Fitter(picture)).choose(pod, spot=spot)
        assert (found is None) is (fresh is None)
        nobody += found is None
        if found is not None and rng.random() < 0.7:
            picture.put(pod, found)
            kept.moved(pod, found)
            there[pod.metadata.key] = found
        elif pod.node_name:
            picture.untake(pod)
    assert nobody
