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
UNREAD = "INVALID_VALUE"
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
    "a word that cannot be read is a no": Given(
        pod=pod(labels={KEY: "disbled"}),
        voluntary=UNREAD,
        maintenance=UNREAD,
        says=f"{KEY}: 'disbled' on the pod is neither 'enabled' nor 'disabled', and counts as a no",
    ),
    "nor can an empty one": Given(pod=pod(annotations={KEY: ""}), voluntary=UNREAD, maintenance=UNREAD),
    "beside a no that can": Given(
        pod=pod(labels={KEY: "off"}, annotations=OFF), voluntary="OPTED_OUT", maintenance="OPTED_OUT"
    ),
    "beside a yes that can": Given(
        pod=pod(labels={KEY: "off"}, annotations=ON), voluntary=UNREAD, maintenance=UNREAD, says="'off' on the pod"
    ),
    "one on the workload": Given(
        pod=pod(),
        also=(deployment(metadata={"annotations": {KEY: "Disabled"}}),),
        voluntary=UNREAD,
        maintenance=UNREAD,
        says="'Disabled' on Deployment shop/web",
    ),
    "one on the namespace": Given(
        pod=pod(),
        also=(namespace(labels={KEY: "false"}),),
        voluntary=UNREAD,
        maintenance=UNREAD,
        says="'false' on namespace shop",
    ),
    "the pod goes before one on the workload": Given(
        pod=pod(labels=ON), also=(deployment(metadata={"annotations": {KEY: "Disabled"}}),)
    ),
    "one on the pod goes before a yes on the workload": Given(
        pod=pod(labels={KEY: "off"}),
        also=(deployment(metadata={"annotations": ON}),),
        voluntary=UNREAD,
        maintenance=UNREAD,
    ),
    "one on the node": Given(
        pod=pod(),
        also=(build.node("a", annotations={KEY: "off"}),),
        voluntary=UNREAD,
        says="'off' on node a is neither",
    ),
    "one on another node": Given(pod=pod(), also=(build.node("b", annotations={KEY: "off"}),)),
    "one on a pod that nothing would replace": Given(
        pod=pod(of=None, labels={KEY: "enable"}),
        voluntary=f"{UNREAD} NO_CONTROLLER",
        maintenance=f"{UNREAD} NO_CONTROLLER",
        interruption="NO_CONTROLLER",
    ),
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


COSTS = {"none": ({}, 0), "low": ("-7", -7), "high": ("100", 100), "nonsense": ("many", 0)}


@pytest.mark.parametrize(("text", "cost"), COSTS.values(), ids=COSTS.keys())
def test_deletion_cost_is_for_the_order(text: str, cost: int) -> None:
    made = pod(annotations={keys.POD_DELETION_COST: text} if text else {})
    assert guards.deletion_cost(made) == cost
