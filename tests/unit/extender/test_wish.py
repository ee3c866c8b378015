"""What a pod wants: its own affinity before annotations, nothing for pods of one node, and the moves it is in."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from extender import wish
from extender.view import Metadata, Move
from extender.wish import Wish
from policy.settings_extender import By
from tests.unit.extender.building import (
    CAPACITY,
    NOW,
    ON_DEMAND,
    SPOT,
    a_view,
    annotated,
    move,
    owner,
    parsed,
    pod,
    preferring,
    requiring,
)

SPOT_BY_SCORE, ON_DEMAND_BY_FILTER = Wish(SPOT, By.SCORE), Wish(ON_DEMAND, By.FILTER)
NO_MATTER, BOUND = Wish(), Wish(free=False)
CRITICAL = "placement: {criticalNamespaces: [shop]}\n"
HOST = "kubernetes.io/hostname"


@pytest.mark.parametrize(
    ("made", "wanted"),
    [
        pytest.param(pod(), SPOT_BY_SCORE, id="nobody says anything"),
        pytest.param(pod(annotations=annotated(spot="prefer")), SPOT_BY_SCORE, id="prefer"),
        pytest.param(
            pod(annotations=annotated(spot="require")), SPOT_BY_SCORE, id="require, which the webhook enforces"
        ),
        pytest.param(pod(annotations=annotated(spot="avoid")), ON_DEMAND_BY_FILTER, id="avoid"),
        pytest.param(pod(annotations=annotated(spot="ignore")), NO_MATTER, id="ignore"),
        pytest.param(pod(annotations=annotated(spot="perhaps")), SPOT_BY_SCORE, id="a value that is not accepted"),
        pytest.param(pod(annotations=annotated(tier="critical")), ON_DEMAND_BY_FILTER, id="critical"),
        pytest.param(pod(namespace="kube-system"), NO_MATTER, id="an excluded namespace"),
        pytest.param(pod(namespace="calm"), ON_DEMAND_BY_FILTER, id="its namespace avoids"),
        pytest.param(
            pod(namespace="calm", annotations=annotated(spot="prefer")), SPOT_BY_SCORE, id="it says more than that"
        ),
        pytest.param(
            pod(spec=preferring("spot", operator="NotIn")), ON_DEMAND_BY_FILTER, id="written by the webhook"
        ),
        pytest.param(
            pod(spec=preferring("spot", operator="NotIn"), annotations=annotated(spot="prefer")),
            ON_DEMAND_BY_FILTER,
            id="a mix that came to on-demand for this pod",
        ),
        pytest.param(
            pod(labels=annotated(managed="true")), NO_MATTER, id="looked at by the webhook, which wrote nothing"
        ),
        pytest.param(pod(spec=requiring(CAPACITY, "spot")), NO_MATTER, id="it can run on spot only"),
        pytest.param(pod(spec={"nodeSelector": {CAPACITY: "on-demand"}}), NO_MATTER, id="on on-demand only"),
        pytest.param(pod(spec=requiring("zone", "a")), SPOT_BY_SCORE, id="a rule about something else"),
        pytest.param(pod(spec={"nodeSelector": {HOST: "a"}}), BOUND, id="one node by selector"),
        pytest.param(pod(spec=requiring(HOST, "a")), BOUND, id="one node by affinity"),
        pytest.param(pod(ownerReferences=[owner("DaemonSet")]), BOUND, id="of a DaemonSet"),
        pytest.param(pod(ownerReferences=[]), SPOT_BY_SCORE, id="without a controller"),
    ],
)
def test_what_comes_first(made: dict[str, Any], wanted: Wish) -> None:
    calm = Metadata({}, annotated(spot="avoid"))
    assert wish.of(parsed(made), a_view(said=CRITICAL, namespaces={"calm": calm})) == wanted


@pytest.mark.parametrize(
    ("said", "made", "by"),
    [
        pytest.param("extender: {prefer: filter}", pod(), By.FILTER, id="prefer"),
        pytest.param("extender: {avoid: score}", pod(annotations=annotated(spot="avoid")), By.SCORE, id="avoid"),
    ],
)
def test_how_firmly_is_a_setting(said: str, made: dict[str, Any], by: By) -> None:
    assert wish.of(parsed(made), a_view(said=said)).by is by


COPY = {
    "annotations": annotated(original_pod="old-1"),
    "labels": annotated(migration_id="m-1"),
    "ownerReferences": [],
}


@pytest.mark.parametrize(
    ("made", "open_", "found"),
    [
        pytest.param(pod(), move(), True, id="same controller"),
        pytest.param(pod(namespace="other"), move(), False, id="another namespace"),
        pytest.param(pod(ownerReferences=[owner(uid="rs-2")]), move(), False, id="another controller"),
        pytest.param(pod(ownerReferences=[]), move(), False, id="no controller"),
        pytest.param(
            pod(ownerReferences=[], annotations=annotated(migration_target="c")),
            move(),
            False,
            id="it says so itself",
        ),
        pytest.param(pod(), move(owner_kind="StatefulSet"), False, id="another member of a StatefulSet"),
        pytest.param(pod(name="web-1"), move(owner_kind="StatefulSet"), True, id="the same member"),
        pytest.param(pod(), move(started=NOW - timedelta(days=2)), False, id="left behind for a day"),
    ],
)
def test_whose_replacement_it_can_be(made: dict[str, Any], open_: Move, found: bool) -> None:
    assert wish.moves(parsed(made), a_view(open_), NOW) == ((open_,) if found else ())


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        pytest.param({}, True, id="marked by the migrator"),
        pytest.param({"annotations": annotated(original_pod="other")}, False, id="copy of another pod"),
        pytest.param({"labels": {}}, False, id="not marked"),
    ],
)
def test_the_copy_of_a_pod_without_a_controller(changed: dict[str, Any], found: bool) -> None:
    seen = replace(a_view(), moves={("shop", ""): (move(owner_kind=""),)})
    assert bool(wish.moves(parsed(pod(**{**COPY, **changed})), seen, NOW)) is found


def test_nobody_is_guided_where_that_is_switched_off() -> None:
    assert wish.moves(parsed(pod()), a_view(move(), said="migrations: {coordination: unguided}"), NOW) == ()


@pytest.mark.parametrize(
    ("made", "held"),
    [
        pytest.param(pod(), True, id="new"),
        pytest.param(pod(creationTimestamp="2026-11-16T11:58:59Z"), False, id="older than a minute"),
        pytest.param(pod(creationTimestamp=None), False, id="of unknown age"),
        pytest.param(
            pod(conditions=({"type": "PodScheduled", "status": "False", "reason": "SchedulerError"},)),
            False,
            id="binding failed",
        ),
        pytest.param(
            pod(conditions=({"type": "PodScheduled", "status": "False", "reason": "Unschedulable"},)),
            True,
            id="nothing fitted before",
        ),
    ],
)
def test_a_target_is_not_insisted_on_for_ever(made: dict[str, Any], held: bool) -> None:
    assert wish.may_be_held(parsed(made), NOW) is held
