import pytest

from policy import capacity
from policy.capacity import Capacity, CapacityLabel, CapacitySettings, CapacityType, SpotTaint

SPOT, ON_DEMAND, UNKNOWN = CapacityType.SPOT, CapacityType.ON_DEMAND, CapacityType.UNKNOWN


@pytest.mark.parametrize(
    ("label", "value", "expected"),
    [
        ("node.kubernetes.io/capacity", "spot", SPOT),
        ("node.kubernetes.io/capacity", "on-demand", ON_DEMAND),
        ("node.kubernetes.io/capacity", "other", UNKNOWN),
        ("eks.amazonaws.com/capacityType", "SPOT", SPOT),
        ("eks.amazonaws.com/capacityType", "ON_DEMAND", ON_DEMAND),
        ("karpenter.sh/capacity-type", "spot", SPOT),
        ("karpenter.sh/capacity-type", "on-demand", ON_DEMAND),
        ("karpenter.sh/capacity-type", "reserved", ON_DEMAND),
        ("cloud.google.com/gke-spot", "true", SPOT),
        ("cloud.google.com/gke-preemptible", "true", SPOT),
        ("kubernetes.azure.com/scalesetpriority", "spot", SPOT),
        ("oci.oraclecloud.com/oke-is-preemptible", "true", SPOT),
        ("yandex.cloud/preemptible", "true", SPOT),
        ("scheduling.cast.ai/spot", "true", SPOT),
        ("spotinst.io/node-lifecycle", "spot", SPOT),
        ("spotinst.io/node-lifecycle", "od", ON_DEMAND),
        ("node-role.kubernetes.io/spot-worker", "", SPOT),
        ("aws.amazon.com/spot", "true", SPOT),
        ("lifecycle", "Ec2Spot", SPOT),
        ("topology.kubernetes.io/zone", "spot", UNKNOWN),
    ],
)
def test_labels_of_the_platforms(label: str, value: str, expected: CapacityType) -> None:
    found = capacity.read({"kubernetes.io/os": "linux", label: value})
    assert found == (Capacity(UNKNOWN) if expected is UNKNOWN else Capacity(expected, label, value))
    assert capacity.capacity_type({label: value}) is expected


def test_the_own_label_beats_the_platform() -> None:
    labels = {"cloud.google.com/gke-spot": "true", "node.kubernetes.io/capacity": "on-demand"}
    assert capacity.read(labels) == Capacity(ON_DEMAND, "node.kubernetes.io/capacity", "on-demand")


def test_a_label_with_an_unknown_value_lets_the_next_speak() -> None:
    labels = {"node.kubernetes.io/capacity": "?", "karpenter.sh/capacity-type": "spot"}
    assert capacity.read(labels).key == "karpenter.sh/capacity-type"


def test_settings_extend_and_replace() -> None:
    row = CapacityLabel("example.org/pool", spot=("cheap",), on_demand=("*",))
    both = {"example.org/pool": "cheap", "node.kubernetes.io/capacity": "on-demand"}
    assert capacity.read(both, CapacitySettings(labels=(row,)).all_labels()).type is SPOT
    assert capacity.read({"example.org/pool": "x"}, (row,)).type is ON_DEMAND
    replaced = CapacitySettings(labels=(row,), replace=True).all_labels()
    assert capacity.read({"node.kubernetes.io/capacity": "spot"}, replaced).type is UNKNOWN


@pytest.mark.parametrize(
    ("taint", "expected"),
    [
        (("cloud.google.com/gke-spot", "true", "NoSchedule"), True),
        (("cloud.google.com/gke-spot", "true", "NoExecute"), False),
        (("kubernetes.azure.com/scalesetpriority", "spot", "NoSchedule"), True),
        (("kubernetes.azure.com/scalesetpriority", "regular", "NoSchedule"), False),
        (("oci.oraclecloud.com/oke-is-preemptible", "present", "NoSchedule"), True),
        (("oci.oraclecloud.com/oke-is-preemptible", "", "NoSchedule"), True),
        (("scheduling.cast.ai/spot", "", "NoSchedule"), True),
        (("dedicated", "gpu", "NoSchedule"), False),
    ],
    ids=str,
)
def test_spot_taints(taint: tuple[str, str, str], expected: bool) -> None:
    assert capacity.is_spot_taint(*taint) is expected


def test_settings_extend_taints() -> None:
    row = SpotTaint("example.org/cheap", effect="PreferNoSchedule")
    table = CapacitySettings(taints=(row,)).all_taints()
    assert capacity.is_spot_taint("example.org/cheap", "x", "PreferNoSchedule", table)
    assert capacity.is_spot_taint("cloud.google.com/gke-spot", "true", "NoSchedule", table)
