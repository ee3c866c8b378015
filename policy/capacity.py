"""Which label of a node says that it is spot, and which taints keep pods off such nodes.

The tables hold what the platforms themselves write; settings can add rows or replace them. Alibaba, Huawei
and Tencent are not in them because their labels could not be confirmed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final

import msgspec

from policy import keys, values

ANY: Final = "*"
EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def _is_value(text: str) -> bool:
    return text == ANY or values.is_label_value(text)


def _is_effect(text: str) -> bool:
    return text in EFFECTS


LabelKey = Annotated[
    str,
    msgspec.Meta(
        extra={"check": values.is_label_key, "accepted": "a label key such as 'capacity' or 'example.org/capacity'"}
    ),
]
TaintKey = Annotated[
    str,
    msgspec.Meta(
        extra={"check": values.is_label_key, "accepted": "a taint key such as 'spot' or 'example.org/spot'"}
    ),
]
Value = Annotated[
    str,
    msgspec.Meta(
        extra={"check": _is_value, "accepted": "'*', or letters, digits and - _ . inside, at most 63 characters"}
    ),
]
Effect = Annotated[str, msgspec.Meta(extra={"check": _is_effect, "accepted": values.one_of(EFFECTS)})]


class CapacityType(StrEnum):
    """How a node is paid for, which is how easily it goes away."""

    SPOT = "spot"
    ON_DEMAND = "on-demand"
    UNKNOWN = "unknown"


class CapacityLabel(msgspec.Struct, frozen=True, rename="camel"):
    """One node label that tells the capacity type."""

    key: LabelKey
    """Label key."""
    spot: tuple[Value, ...] = ()
    """Values that mean spot; `*` is any value."""
    on_demand: tuple[Value, ...] = ()
    """Values that mean on-demand."""


class SpotTaint(msgspec.Struct, frozen=True, rename="camel"):
    """A taint that a platform puts on spot nodes and that pods willing to run there must tolerate."""

    key: TaintKey
    """Taint key."""
    value: Value = ANY
    """Taint value; `*` is any value."""
    effect: Effect = "NoSchedule"
    """Taint effect."""


# Order decides when two labels contradict each other: the cluster's own word first, then autoscalers, which
# know what they bought, then the platforms.
LABELS: Final = (
    CapacityLabel(keys.CAPACITY, ("spot",), ("on-demand",)),
    CapacityLabel("karpenter.sh/capacity-type", ("spot",), ("on-demand", "reserved")),
    CapacityLabel("scheduling.cast.ai/spot", ("true",), ("false",)),
    CapacityLabel("spotinst.io/node-lifecycle", ("spot",), ("od",)),
    CapacityLabel("eks.amazonaws.com/capacityType", ("SPOT",), ("ON_DEMAND",)),
    CapacityLabel("cloud.google.com/gke-spot", ("true",), ("false",)),
    CapacityLabel("cloud.google.com/gke-preemptible", ("true",), ("false",)),
    CapacityLabel("kubernetes.azure.com/scalesetpriority", ("spot",), ("regular",)),
    CapacityLabel("oci.oraclecloud.com/oke-is-preemptible", ("true",), ("false",)),
    CapacityLabel("yandex.cloud/preemptible", ("true",), ("false",)),
    CapacityLabel("aws.amazon.com/spot", ("true",), ("false",)),
    CapacityLabel("node-role.kubernetes.io/spot-worker", (ANY,)),
    CapacityLabel("lifecycle", ("Ec2Spot",)),
)

TAINTS: Final = (
    SpotTaint("cloud.google.com/gke-spot", "true"),
    SpotTaint("kubernetes.azure.com/scalesetpriority", "spot"),
    SpotTaint("oci.oraclecloud.com/oke-is-preemptible"),
    SpotTaint("scheduling.cast.ai/spot"),
)


class CapacitySettings(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What the settings add to the tables, or put in their place."""

    replace: bool = False
    """True drops the built-in tables. Off, because they match nothing on platforms they are not made for."""
    labels: tuple[CapacityLabel, ...] = ()
    """Labels that tell the capacity type; they are asked before the built-in ones."""
    taints: tuple[SpotTaint, ...] = ()
    """Taints that pods willing to run on spot get a toleration for."""

    def all_labels(self) -> tuple[CapacityLabel, ...]:
        """The table in effect."""
        return self.labels if self.replace else self.labels + LABELS

    def all_taints(self) -> tuple[SpotTaint, ...]:
        """The table in effect."""
        return self.taints if self.replace else self.taints + TAINTS


@dataclass(frozen=True, slots=True)
class Capacity:
    """The capacity type of a node and the label that said so; key and value are empty where none did."""

    type: CapacityType
    key: str = ""
    value: str = ""


def read(labels: Mapping[str, str], table: Sequence[CapacityLabel] = LABELS) -> Capacity:
    """What the labels of a node say; the first row that knows the value decides."""
    for row in table:
        value = labels.get(row.key)
        if value is None:
            continue
        found = meaning(row, value)
        if found is not CapacityType.UNKNOWN:
            return Capacity(found, row.key, value)
    return Capacity(CapacityType.UNKNOWN)


def capacity_type(labels: Mapping[str, str], table: Sequence[CapacityLabel] = LABELS) -> CapacityType:
    """`read` for those who do not need the label."""
    return read(labels, table).type


def meaning(row: CapacityLabel, value: str) -> CapacityType:
    """What one value of one label means."""
    if value in row.spot:
        return CapacityType.SPOT
    if value in row.on_demand:
        return CapacityType.ON_DEMAND
    if ANY in row.spot:
        return CapacityType.SPOT
    return CapacityType.ON_DEMAND if ANY in row.on_demand else CapacityType.UNKNOWN


def is_spot_taint(key: str, value: str, effect: str, table: Sequence[SpotTaint] = TAINTS) -> bool:
    """Whether the taint only says that the node is spot, and nothing about its health."""
    return any(row.key == key and row.value in {ANY, value} and row.effect == effect for row in table)
