from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from policy import keys, signal_table, signals
from policy.reasons import Malformed
from policy.signal_table import Clock, Kind, Place, SignalRow, SignalSettings
from policy.signals import NodeSigns, Signal

NOW = datetime(2026, 1, 7, 12, 0, tzinfo=UTC)
AGO = NOW - timedelta(seconds=20)
OURS = keys.under()
LAST = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Taint:
    key: str
    value: str = ""
    time_added: datetime | None = None


@dataclass(frozen=True)
class Condition:
    type: str
    status: str = "True"
    last_transition_time: datetime | None = None


def read(node: NodeSigns) -> tuple[Signal, ...]:
    return signals.read(node, keys=OURS, now=NOW)


def tainted(key: str, value: str = "", added: datetime | None = None) -> NodeSigns:
    return NodeSigns(taints=(Taint(key, value, added),))


def labelled(key: str, value: str) -> NodeSigns:
    return NodeSigns(labels={key: value, "kubernetes.io/os": "linux"})


NTH = "aws-node-termination-handler"
GKE = "cloud.google.com"


@pytest.mark.parametrize(
    ("node", "kind", "source"),
    [
        (labelled(OURS.maintenance, "true"), Kind.MAINTENANCE, f"label {OURS.maintenance}"),
        (tainted(f"{NTH}/spot-itn", "event-1"), Kind.INTERRUPTION, f"taint {NTH}/spot-itn"),
        (tainted(f"{NTH}/asg-lifecycle-termination"), Kind.INTERRUPTION, None),
        (tainted(f"{NTH}/scheduled-maintenance"), Kind.MAINTENANCE, None),
        (tainted(f"{NTH}/rebalance-recommendation"), Kind.REBALANCE, None),
        (labelled(f"{NTH}/action", "UncordonAfterReboot"), Kind.AVOID, None),
        (tainted(f"{GKE}/impending-node-termination"), Kind.INTERRUPTION, None),
        (NodeSigns(conditions=(Condition(f"{GKE}/impending-node-termination"),)), Kind.INTERRUPTION, None),
        (NodeSigns(annotations={f"{GKE}/impending-node-termination": ""}), Kind.INTERRUPTION, None),
        (labelled(f"{GKE}/active-node-maintenance", "ONGOING"), Kind.MAINTENANCE, None),
        (tainted(f"{GKE}/maintenance-window-started"), Kind.MAINTENANCE, None),
        (
            NodeSigns(conditions=(Condition("VMEventScheduled"),)),
            Kind.INTERRUPTION,
            "condition VMEventScheduled",
        ),
        (labelled("kubernetes.azure.com/upgrade-status", "Quarantined"), Kind.AVOID, None),
        (tainted("remediator.kubernetes.azure.com/unschedulable"), Kind.AVOID, None),
        (tainted("medik8s.io/drain"), Kind.MAINTENANCE, None),
        (NodeSigns(conditions=(Condition("DrainScheduled"),)), Kind.MAINTENANCE, None),
        (tainted("karpenter.sh/disrupted"), Kind.AVOID, None),
        (tainted("karpenter.sh/unregistered"), Kind.AVOID, None),
        (tainted("ToBeDeletedByClusterAutoscaler", "1767787180"), Kind.AVOID, None),
        (tainted("DeletionCandidateOfClusterAutoscaler", "1767787180"), Kind.AVOID, None),
        (tainted("startup-taint.cluster-autoscaler.kubernetes.io/gpu"), Kind.AVOID, None),
        (tainted("status-taint.cluster-autoscaler.kubernetes.io/x"), Kind.AVOID, None),
        (tainted("ignore-taint.cluster-autoscaler.kubernetes.io/x"), Kind.AVOID, None),
        (tainted("NodeWithImpairedVolumes"), Kind.AVOID, None),
        (tainted("node.cloudprovider.kubernetes.io/shutdown"), Kind.AVOID, None),
        (tainted("node.cloudprovider.kubernetes.io/uninitialized"), Kind.AVOID, None),
        (tainted("node.kubernetes.io/out-of-service", "nodeshutdown"), Kind.AVOID, None),
        (tainted("node.kubernetes.io/not-ready"), Kind.AVOID, None),
        (tainted("node.kubernetes.io/memory-pressure"), Kind.AVOID, None),
        (tainted("nodeutilization.descheduler.openshift.io/overutilized"), Kind.AVOID, None),
        (NodeSigns(annotations={"weave.works/kured-reboot-in-progress": "t"}), Kind.AVOID, None),
        (tainted("weave.works/kured-node-reboot"), Kind.AVOID, None),
        (NodeSigns(unschedulable=True), Kind.AVOID, "spec.unschedulable"),
    ],
    ids=str,
)
def test_one_signal(node: NodeSigns, kind: Kind, source: str | None) -> None:
    (found,) = read(node)
    assert found.kind is kind
    assert source is None or found.source == source
    assert found.deadline is None
    assert found.withdrawable is (kind is Kind.REBALANCE)


@pytest.mark.parametrize(
    "node",
    [
        NodeSigns(),
        labelled("node.kubernetes.io/exclude-from-external-load-balancers", ""),
        labelled(f"{NTH}/event-id", "x"),
        labelled(f"{NTH}/action", "Other"),
        labelled(OURS.maintenance, "false"),
        NodeSigns(annotations={"weave.works/kured-most-recent-reboot-needed": "t"}),
        NodeSigns(annotations={"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"}),
        NodeSigns(annotations={"draino/drain-retry": "true"}),
        NodeSigns(conditions=(Condition("VMEventScheduled", "False"), Condition("Ready"))),
        tainted("dedicated", "gpu"),
        tainted("startup-taint.cluster-autoscaler.kubernetes.io"),
    ],
    ids=str,
)
def test_no_signal(node: NodeSigns) -> None:
    assert read(node) == ()


@pytest.mark.parametrize(
    ("node", "started", "deadline"),
    [
        pytest.param(tainted(f"{NTH}/spot-itn", "", AGO), AGO, AGO + timedelta(seconds=120), id="AWS: 120 s"),
        pytest.param(
            tainted(f"{GKE}/impending-node-termination", "", AGO),
            AGO,
            AGO + timedelta(seconds=15),
            id="GKE: 15 s",
        ),
        pytest.param(
            NodeSigns(conditions=(Condition("VMEventScheduled", "True", AGO),)),
            AGO,
            AGO + timedelta(seconds=30),
            id="AKS: 30 s",
        ),
        pytest.param(
            tainted("ToBeDeletedByClusterAutoscaler", str(int(AGO.timestamp()))),
            AGO,
            None,
            id="unix start in a taint",
        ),
        pytest.param(tainted("ToBeDeletedByClusterAutoscaler", "soon"), None, None, id="no number: still a signal"),
        pytest.param(tainted("ToBeDeletedByClusterAutoscaler", "9" * 12), None, None, id="too many digits"),
        pytest.param(
            labelled(f"{GKE}/scheduled-maintenance-time", str(int(NOW.timestamp()) + 3600)),
            None,
            NOW + timedelta(hours=1),
            id="unix deadline in a label",
        ),
        pytest.param(
            NodeSigns(annotations={"karpenter.sh/nodeclaim-termination-timestamp": "2026-01-07T13:00:00Z"}),
            None,
            NOW + timedelta(hours=1),
            id="RFC 3339 deadline",
        ),
        pytest.param(
            NodeSigns(annotations={"karpenter.sh/nodeclaim-termination-timestamp": "2026-01-07T13:00:00"}),
            None,
            None,
            id="a time without a zone is no time",
        ),
        *(
            pytest.param(
                NodeSigns(annotations={"karpenter.sh/nodeclaim-termination-timestamp": text}),
                None,
                None,
                id=f"nothing can be counted from {text}",
            )
            for text in ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00")
        ),
        pytest.param(tainted(f"{NTH}/spot-itn", "", LAST), None, None, id="a taint of the last year there is"),
        pytest.param(
            NodeSigns(conditions=(Condition("VMEventScheduled", "True", LAST),)),
            None,
            None,
            id="a condition of the last year there is",
        ),
    ],
)
def test_times(node: NodeSigns, started: datetime | None, deadline: datetime | None) -> None:
    (found,) = read(node)
    assert (found.started, found.deadline) == (started, deadline)


def test_without_a_start_the_notice_is_told() -> None:
    (found,) = read(tainted(f"{NTH}/spot-itn"))
    assert (found.notice, found.deadline) == (timedelta(seconds=120), None)


@pytest.mark.parametrize(
    ("ahead", "kind"),
    [
        pytest.param(timedelta(days=14), Kind.AVOID, id="announced weeks ahead: only avoided"),
        pytest.param(timedelta(days=1), Kind.MAINTENANCE, id="a day ahead: emptied"),
        pytest.param(timedelta(hours=-1), Kind.MAINTENANCE, id="overdue: still emptied"),
    ],
)
def test_announced_maintenance(ahead: timedelta, kind: Kind) -> None:
    (found,) = read(labelled(f"{GKE}/scheduled-maintenance-time", str(int((NOW + ahead).timestamp()))))
    assert (found.kind, found.deadline) == (kind, NOW + ahead)


def test_all_signals_of_a_node_are_told_ours_first() -> None:
    node = NodeSigns(
        labels={OURS.maintenance: "true"},
        taints=(Taint("node.kubernetes.io/unschedulable"), Taint(f"{NTH}/spot-itn")),
        unschedulable=True,
    )
    kinds = [found.kind for found in read(node)]
    assert kinds == [Kind.MAINTENANCE, Kind.INTERRUPTION, Kind.AVOID, Kind.AVOID]


def test_the_prefix_decides_which_label_is_ours() -> None:
    other = keys.under("example.org/")
    assert signals.read(labelled(OURS.maintenance, "true"), keys=other, now=NOW) == ()
    assert signals.read(labelled(other.maintenance, "true"), keys=other, now=NOW)[0].kind is Kind.MAINTENANCE


def test_a_maintenance_label_with_a_typo_is_told() -> None:
    (mistake,) = signals.mistakes(labelled(OURS.maintenance, "yes"), keys=OURS)
    assert mistake == Malformed(OURS.maintenance, "yes", "'true', or remove the label")
    assert signals.mistakes(labelled(OURS.maintenance, "true"), keys=OURS) == ()
    assert signals.mistakes(NodeSigns(), keys=OURS) == ()


def test_annotations_beside_our_label_say_since_when_and_until_when() -> None:
    since, until = NOW - timedelta(hours=1), NOW + timedelta(hours=1)
    notes = {OURS.maintenance_since: since.isoformat(), OURS.maintenance_deadline: str(int(until.timestamp()))}
    (found,) = signals.read(NodeSigns(labels={OURS.maintenance: "true"}, annotations=notes), keys=OURS, now=NOW)
    assert (found.started, found.deadline) == (since, until)
    assert signals.read(NodeSigns(annotations=notes), keys=OURS, now=NOW) == ()
    assert signals.mistakes(NodeSigns(annotations=notes), keys=OURS) == ()


NO_TIMES = ("tonight", "9000-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "2026-07-01T18:00:00", "123456789012")


@pytest.mark.parametrize("text", NO_TIMES)
def test_a_deadline_that_is_no_time_is_told_with_the_bounds_of_one(text: str) -> None:
    node = NodeSigns(labels={OURS.maintenance: "true"}, annotations={OURS.maintenance_deadline: text})
    (mistake,) = signals.mistakes(node, keys=OURS)
    bounds = (
        "a time with its zone from 1970 to 8999 such as 2026-07-01T18:00:00Z, or Unix seconds of at most 11 digits"
    )
    assert mistake == Malformed(OURS.maintenance_deadline, text, bounds)
    (found,) = signals.read(node, keys=OURS, now=NOW)
    assert found.deadline is None


def test_settings_extend_and_replace() -> None:
    row = SignalRow(Kind.INTERRUPTION, Place.TAINT, "example.org/*", clock=Clock.START, notice_seconds=10)
    node = NodeSigns(taints=(Taint("example.org/gone", time_added=NOW), Taint("medik8s.io/drain")))
    both = signals.read(node, keys=OURS, now=NOW, table=SignalSettings(rows=(row,)).all_rows())
    assert [found.kind for found in both] == [Kind.INTERRUPTION, Kind.MAINTENANCE]
    assert both[0].deadline == NOW + timedelta(seconds=10)
    (only,) = signals.read(node, keys=OURS, now=NOW, table=SignalSettings(rows=(row,), replace=True).all_rows())
    assert only.source == "taint example.org/gone"


def test_no_row_stands_twice() -> None:
    places = [(row.place, row.key, row.value) for row in signal_table.ROWS]
    assert len(set(places)) == len(places)


def carrying(row: SignalRow, value: str) -> NodeSigns:
    """A node with this sign and with every time that can stand beside it."""
    key = row.key.replace("*", "x")
    match row.place:
        case Place.TAINT:
            return NodeSigns(taints=(Taint(key, value, AGO),))
        case Place.CONDITION:
            return NodeSigns(conditions=(Condition(key, value, AGO),))
        case Place.LABEL:
            return NodeSigns(labels={key: value})
        case Place.ANNOTATION:
            return NodeSigns(annotations={key: value})
        case Place.UNSCHEDULABLE:
            return NodeSigns(unschedulable=True)


STATED = NOW + timedelta(hours=1)
NOTICE = timedelta(seconds=40)
ASKED = {
    Clock.NONE: (None, None),
    Clock.START: (AGO, AGO + NOTICE),
    Clock.VALUE_START: (STATED, STATED + NOTICE),
    Clock.VALUE_DEADLINE: (None, STATED),
}


@pytest.mark.parametrize("place", [Place.TAINT, Place.CONDITION])
@pytest.mark.parametrize("clock", list(Clock))
def test_only_the_clock_of_the_row_is_read(clock: Clock, place: Place) -> None:
    row = SignalRow(Kind.INTERRUPTION, place, "example.org/gone", clock=clock, notice_seconds=40)
    node = carrying(row, STATED.isoformat())
    (found,) = signals.read(node, keys=OURS, now=NOW, table=(row,))
    assert (found.started, found.deadline) == ASKED[clock]
    assert found.notice == NOTICE, "kept, so that who has no start can count from first sight"


@pytest.mark.parametrize("row", signal_table.ROWS, ids=lambda row: f"{row.place} {row.key} {row.clock}")
def test_every_row_can_match_and_tells_the_times_it_names(row: SignalRow) -> None:
    assert signal_table.can_have_key(row)
    assert signal_table.can_have_value(row)
    stated = str(int(STATED.timestamp()))
    (found,) = signals.read(
        carrying(row, stated if row.value == "*" else row.value), keys=OURS, now=NOW, table=(row,)
    )
    notice = None if row.notice_seconds is None else timedelta(seconds=row.notice_seconds)
    started = {Clock.START: AGO, Clock.VALUE_START: STATED}.get(row.clock)
    ends = started + notice if started and notice else None
    assert found.notice == notice
    assert found.started == started
    assert found.deadline == (STATED if row.clock is Clock.VALUE_DEADLINE else ends)
