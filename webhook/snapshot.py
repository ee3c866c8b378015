"""A whole `View` from a list of objects, such as `kubectl get ... -o json` prints. For commands and tests.

The server keeps its view up to date from watches instead; both use `derive`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import msgspec

from policy.settings import Settings
from webhook import derive
from webhook.counts import Known
from webhook.objects import AnyObject, Class, Node, PodMigration
from webhook.view import WATCHED_KINDS, View, empty

T = TypeVar("T")


class NotUnderstood(ValueError):
    """An object that does not have the shape of its kind."""


def of_objects(objects: Iterable[Mapping[str, Any]], settings: Settings) -> View:
    """The view of a cluster that holds these objects; kinds that the webhook does not look at are passed over."""
    listed = list(objects)
    nodes = _all(listed, Node, "Node")
    blank = empty(settings)
    workloads = [derive.workload(it, blank.keys) for it in _all(listed, AnyObject, *WATCHED_KINDS)]
    return replace(
        blank,
        namespaces={
            it.metadata.name: derive.metadata(it.metadata, blank.keys) for it in _all(listed, AnyObject, "Namespace")
        },
        workloads={it.uid: it for it in workloads},
        workload_names={(it.namespace, it.kind, it.name): it.uid for it in workloads},
        classes={it.metadata.name: derive.priority_class(it) for it in _all(listed, Class, "PriorityClass")},
        capacity=derive.capacity_in_use(nodes, settings.capacity.all_labels()),
        spot_taints=derive.spot_taints(nodes, settings.capacity.all_taints()),
        hostnames=derive.hostnames(nodes),
        spot_nodes=derive.spot_nodes(nodes, settings.capacity.all_labels()),
        counts=Known(derive.counts((it.metadata for it in _all(listed, AnyObject, "Pod")), blank.keys)),
        migrations=derive.migrations(_all(listed, PodMigration, "PodMigration")),
    )


def _all(objects: Iterable[Mapping[str, Any]], shape: type[T], *kinds: str) -> list[T]:
    return [_one(it, shape) for it in objects if it.get("kind") in kinds]


def _one(found: Mapping[str, Any], shape: type[T]) -> T:
    try:
        return msgspec.convert(found, shape)
    except msgspec.ValidationError as error:
        metadata = found.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        raise NotUnderstood(f"{found.get('kind')} {name or 'without a name'}: {error}") from error
