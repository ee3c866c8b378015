"""What people say about pods, in our words and in those of other projects."""

from datetime import timedelta

import pytest

from descheduler import guards
from policy import keys
from policy.settings import Placement, Settings
from policy.values import Rescheduling
from tests.unit.descheduler import build
from tests.unit.descheduler.guarding import NOW, OURS, Given, deployment, namespace, pod, replica_set

KEY = OURS.rescheduling
ON, OFF = {KEY: "enabled"}, {KEY: "disabled"}
OPT_IN = Settings(placement=Placement(rescheduling=Rescheduling.DISABLED))
NO = "SAFE_TO_EVICT_FALSE"
CAST = keys.CAST_REMOVAL_DISABLED


def started(ago: timedelta, **annotations: str) -> object:
    status = {"startTime": (NOW - ago).strftime("%Y-%m-%dT%H:%M:%SZ")}
    return pod(annotations={keys.DO_NOT_DISRUPT: annotations["for_"]}, status=status)


OWN_KEY = {
    "nobody says anything": Given(pod=pod()),
    "disabled as the pod's label": Given(
        pod=pod(labels=OFF), voluntary="OPTED_OUT", maintenance="OPTED_OUT", says=f"{KEY}: disabled on the pod"
    ),
    "disabled as the pod's annotation": Given(
        pod=pod(annotations=OFF), voluntary="OPTED_OUT", maintenance="OPTED_OUT"
    ),
    "enabled on the pod": Given(pod=pod(annotations=ON)),
    "label and annotation of the pod differ": Given(
        pod=pod(labels=ON, annotations=OFF), voluntary="OPTED_OUT", maintenance="OPTED_OUT"
    ),
    "disabled on the workload": Given(
        pod=pod(),
        also=(deployment(metadata={"annotations": OFF}),),
        voluntary="OPTED_OUT",
        maintenance="OPTED_OUT",
        says="on Deployment shop/web",
    ),
    "the pod goes before the workload": Given(pod=pod(labels=ON), also=(deployment(metadata={"annotations": OFF}),)),
    "disabled on a ReplicaSet below a kind that is not watched": Given(
        pod=pod(),
        also=(replica_set(annotations=OFF, ownerReferences=[build.owner("Rollout", "other", "shop")]),),
        voluntary="OPTED_OUT",
        maintenance="OPTED_OUT",
        says="on Rollout shop/other",
    ),
    "disabled on a ReplicaSet below a Deployment does not count": Given(
        pod=pod(), also=(replica_set(annotations=OFF),)
    ),
    "disabled on the namespace": Given(
        pod=pod(),
        also=(namespace(labels=OFF),),
        voluntary="OPTED_OUT",
        maintenance="OPTED_OUT",
        says="on namespace shop",
    ),
    "the workload goes before the namespace": Given(
        pod=pod(), also=(namespace(labels=OFF), deployment(metadata={"labels": ON}))
    ),
    "disabled by the settings": Given(
        pod=pod(), settings=OPT_IN, voluntary="OPTED_OUT", says="placement.rescheduling: disabled"
    ),
    "the namespace goes before the settings": Given(pod=pod(), settings=OPT_IN, also=(namespace(labels=ON),)),
    "disabled on the node": Given(
        pod=pod(), also=(build.node("a", annotations=OFF),), voluntary="OPTED_OUT", says="disabled on node a"
    ),
    "disabled as a label of the node": Given(
        pod=pod(), also=(build.node("a", labels=OFF),), voluntary="OPTED_OUT", says="disabled on node a"
    ),
    "the pod does not go before its node": Given(
        pod=pod(labels=ON), also=(build.node("a", annotations=OFF),), voluntary="OPTED_OUT"
    ),
    "disabled on another node": Given(pod=pod(), also=(build.node("b", annotations=OFF),)),
    "enabled on the node means nothing": Given(
        pod=pod(), settings=OPT_IN, also=(build.node("a", annotations=ON),), voluntary="OPTED_OUT"
    ),
    "a node that removal is disabled of": Given(
        pod=pod(), also=(build.node("a", annotations={CAST: "true"}),), voluntary="OPTED_OUT", says=CAST
    ),
    "a node that is not known": Given(pod=pod(on="c")),
    "an unknown word is passed over": Given(pod=pod(labels={KEY: "off"})),
}


@pytest.mark.parametrize("given", OWN_KEY.values(), ids=OWN_KEY.keys())
def test_our_own_key(given: Given) -> None:
    given.check()


def marked(key: str, value: str, *, holds: str) -> Given:
    """`holds` is V, VM or nothing."""
    return Given(
        pod=pod(annotations={key: value}),
        voluntary=NO if "V" in holds else "",
        maintenance=NO if "M" in holds else "",
        says=key if holds else "",
    )


FOREIGN = {
    "safe-to-evict false": marked(keys.SAFE_TO_EVICT, "false", holds="VM"),
    "safe-to-evict on-completion": marked(keys.SAFE_TO_EVICT, "on-completion", holds="VM"),
    "safe-to-evict true": marked(keys.SAFE_TO_EVICT, "true", holds=""),
    "safe-to-evict nonsense": marked(keys.SAFE_TO_EVICT, "no", holds=""),
    "evict false": marked(keys.DESCHEDULER_EVICT, "false", holds="VM"),
    "evict": marked(keys.DESCHEDULER_EVICT, "", holds=""),
    "prefer-no-eviction": marked(keys.DESCHEDULER_PREFER_NO_EVICTION, "", holds="V"),
    "prefer-no-eviction true": marked(keys.DESCHEDULER_PREFER_NO_EVICTION, "true", holds="V"),
    "prefer-no-eviction false": marked(keys.DESCHEDULER_PREFER_NO_EVICTION, "false", holds=""),
    "request-evict-only": marked(keys.DESCHEDULER_REQUEST_EVICT_ONLY, "", holds="V"),
    "eviction-cost of never": marked(keys.KOORDINATOR_EVICTION_COST, "2147483647", holds="VM"),
    "eviction-cost": marked(keys.KOORDINATOR_EVICTION_COST, "2147483646", holds=""),
    "eviction-cost nonsense": marked(keys.KOORDINATOR_EVICTION_COST, "2147483648", holds=""),
    "removal-disabled": marked(CAST, "true", holds="VM"),
    "removal-disabled false": marked(CAST, "false", holds=""),
    "restrict-scale-down": Given(
        pod=pod(labels={keys.OCEAN_RESTRICT_SCALE_DOWN: "true"}),
        voluntary=NO,
        maintenance=NO,
        says=keys.OCEAN_RESTRICT_SCALE_DOWN,
    ),
    "restrict-scale-down false": Given(pod=pod(labels={keys.OCEAN_RESTRICT_SCALE_DOWN: "false"})),
    "restrict-scale-down is a label": marked(keys.OCEAN_RESTRICT_SCALE_DOWN, "true", holds=""),
    "pod-deletion-cost": marked(keys.POD_DELETION_COST, "2147483647", holds=""),
    "two at once are both told": Given(
        pod=pod(annotations={keys.SAFE_TO_EVICT: "false", CAST: "true"}),
        voluntary=f"{NO} {NO}",
        maintenance=f"{NO} {NO}",
    ),
    "eviction-in-progress": Given(
        pod=pod(annotations={keys.DESCHEDULER_EVICTION_IN_PROGRESS: ""}),
        voluntary="ALREADY_MIGRATING",
        maintenance="ALREADY_MIGRATING",
        interruption="ALREADY_MIGRATING",
        says=keys.DESCHEDULER_EVICTION_IN_PROGRESS,
    ),
    "do-not-disrupt true": Given(
        pod=started(timedelta(days=9), for_="true"),
        voluntary="DO_NOT_DISRUPT",
        maintenance="DO_NOT_DISRUPT",
        says=f"{keys.DO_NOT_DISRUPT}: true",
    ),
    "do-not-disrupt false": Given(pod=started(timedelta(days=9), for_="false")),
    "do-not-disrupt for a while": Given(
        pod=started(timedelta(minutes=29), for_="30m"),
        voluntary="DO_NOT_DISRUPT",
        maintenance="DO_NOT_DISRUPT",
        says="30m from its start, until 2026-02-01T12:01:00Z",
    ),
    "do-not-disrupt is over": Given(pod=started(timedelta(minutes=30), for_="30m")),
    "do-not-disrupt nonsense": Given(pod=started(timedelta(minutes=6), for_="30 minutes")),
}


@pytest.mark.parametrize("given", FOREIGN.values(), ids=FOREIGN.keys())
def test_keys_of_others(given: Given) -> None:
    given.check()


MALFORMED = {
    "nothing": ({}, {}, []),
    "understood": ({keys.SAFE_TO_EVICT: "true", keys.POD_DELETION_COST: "-5", CAST: "false"}, {}, []),
    "safe-to-evict": ({keys.SAFE_TO_EVICT: "False"}, {}, [keys.SAFE_TO_EVICT]),
    "do-not-disrupt": ({keys.DO_NOT_DISRUPT: "-1h"}, {}, [keys.DO_NOT_DISRUPT]),
    "eviction-cost": ({keys.KOORDINATOR_EVICTION_COST: "1e3"}, {}, [keys.KOORDINATOR_EVICTION_COST]),
    "pod-deletion-cost": ({keys.POD_DELETION_COST: "+1"}, {}, [keys.POD_DELETION_COST]),
    "removal-disabled": ({CAST: "yes"}, {}, [CAST]),
    "restrict-scale-down": ({}, {keys.OCEAN_RESTRICT_SCALE_DOWN: "1"}, [keys.OCEAN_RESTRICT_SCALE_DOWN]),
    "restrict-scale-down as annotation": ({keys.OCEAN_RESTRICT_SCALE_DOWN: "1"}, {}, []),
    "our key": ({}, {KEY: "off"}, [KEY]),
    "our key twice": ({KEY: "enabled"}, {KEY: "disabled"}, [KEY]),
    "several": ({KEY: "x", keys.SAFE_TO_EVICT: "x"}, {}, [keys.SAFE_TO_EVICT, KEY]),
}


@pytest.mark.parametrize(("annotations", "labels", "wrong"), MALFORMED.values(), ids=MALFORMED.keys())
def test_values_that_mean_nothing_are_told(
    annotations: dict[str, str], labels: dict[str, str], wrong: list[str]
) -> None:
    made = pod(annotations=annotations, labels=labels)
    found = guards.mistakes(made, Given(pod=made).context())
    assert sorted(it.key for it in found) == sorted(wrong)
    assert all(it.accepted for it in found)


def test_mistakes_of_workload_and_namespace_are_told_with_the_pod() -> None:
    made = pod()
    wrong = {KEY: "maybe"}
    context = Given(pod=made, also=(deployment(metadata={"labels": wrong}), namespace(annotations=wrong))).context()
    assert [it.value for it in guards.mistakes(made, context)] == ["maybe", "maybe"]


NODE_MISTAKES = {
    "nothing": ({}, {}, 0),
    "understood": ({KEY: "disabled"}, {KEY: "enabled", CAST: "true"}, 0),
    "label and annotation": ({KEY: "off"}, {KEY: "no"}, 2),
    "removal-disabled": ({}, {CAST: "yes"}, 1),
}


@pytest.mark.parametrize(("labels", "annotations", "count"), NODE_MISTAKES.values(), ids=NODE_MISTAKES.keys())
def test_mistakes_on_nodes(labels: dict[str, str], annotations: dict[str, str], count: int) -> None:
    context = Given(pod=pod(), also=(build.node("a", labels=labels, annotations=annotations),)).context()
    assert len(guards.node_mistakes("a", context)) == count
    assert guards.node_mistakes("unknown", context) == ()


COSTS = {"none": ({}, 0), "low": ("-7", -7), "high": ("100", 100), "nonsense": ("many", 0)}


@pytest.mark.parametrize(("text", "cost"), COSTS.values(), ids=COSTS.keys())
def test_deletion_cost_is_for_the_order(text: str, cost: int) -> None:
    made = pod(annotations={keys.POD_DELETION_COST: text} if text else {})
    assert guards.deletion_cost(made) == cost
