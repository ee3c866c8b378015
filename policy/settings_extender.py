"""Settings of the scheduler extender: what comes first, and how much each part of a score weighs."""

from enum import StrEnum
from typing import Annotated

import msgspec

from policy import values
from policy.settings_types import Group, Weight


def _is_key(text: str) -> bool:
    return text == "" or values.is_label_key(text)


AnnotationKey = Annotated[
    str,
    msgspec.Meta(
        extra={"check": _is_key, "accepted": "an annotation key such as 'example.org/latency-ms', or '' for none"}
    ),
]
Number = Annotated[float, msgspec.Meta(ge=-1e12, le=1e12)]


class By(StrEnum):
    """How firmly a wish is served."""

    FILTER = "filter"
    SCORE = "score"


class NodeMetric(Group, frozen=True, kw_only=True):
    """A number that something else keeps in an annotation of each node: latency, price, temperature."""

    annotation: AnnotationKey = ""
    """Key of the annotation. None: there is no such number until somebody provides one."""
    best: Number = 0.0
    """Value that earns the full score. 0 suits latencies and prices; put the larger number here if more is better."""
    worst: Number = 100.0
    """Value that earns nothing. Between the two it is linear; a node without a number earns half."""


class Extender(Group, frozen=True, kw_only=True):
    """How the optional scheduler extender steers kube-scheduler.

    `filter` leaves only the nodes that serve a wish, as long as one of them can take the pod, and then all of them;
    `score` adds to the score of those nodes, and the scheduler's own plugins may outvote it.
    """

    target: By = By.FILTER
    """How the replacement of a moved pod gets to its target. By filter, because then it gets there every time."""
    avoid: By = By.FILTER
    """How pods that avoid spot get to on-demand, critical ones among them. By filter: they must not lose a node for a
    better score."""
    prefer: By = By.SCORE
    """How pods that prefer spot get there. By score: a preference should not undo the spreading of replicas."""
    capacity_weight: Weight = 60
    """Weight of the capacity type in the score. The largest: it is what the extender is for."""
    load_weight: Weight = 30
    """Weight of the room that requests leave on the node. Half as much, so that it decides among equals."""
    metric_weight: Weight = 30
    """Weight of the number in the annotation, where one is set. As much as the load."""
    metric: NodeMetric = NodeMetric()
    """A number on each node that counts as well."""
