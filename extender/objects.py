"""A pod as the extender watches it: where it is and what it asks for, which is a small part of it.

Wire types only.
"""

from collections.abc import Mapping

from cluster.meta import Part
from cluster.pod import Container, Resources


class PlacedMeta(Part, frozen=True):
    """`metadata` with what a reflector needs."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    annotations: Mapping[str, str] = {}


class PlacedSpec(Part, frozen=True):
    """What it asks for, and where it is."""

    node_name: str = ""
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: Mapping[str, str] = {}
    resources: Resources = Resources()


class PlacedPod(Part, frozen=True):
    """A pod on a node."""

    metadata: PlacedMeta = PlacedMeta()
    spec: PlacedSpec = PlacedSpec()
