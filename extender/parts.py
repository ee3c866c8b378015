"""Changes of objects to the next `View`: keeps what the view is made of, and makes anew only what changed.

No threads and no requests; owned by one thread. Pods only add to and take from the load of their node.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from cluster.meta import PartialObjectMetadata
from cluster.migration import PodMigration
from cluster.node import Node
from cluster.resources import PODMIGRATIONS, Resource
from cluster.store import Delta, Key
from extender import load, moves, view
from extender.load import Amount
from extender.objects import PlacedPod
from extender.view import Metadata, NodeFacts, View
from policy.quantities import InvalidQuantity
from policy.settings import Settings

LOOK_AGAIN: Final = timedelta(seconds=10)
"""What is announced for a later time becomes due by itself. Such announcements are made for hours."""


class Parts:
    """What the next view will hold."""

    def __init__(self, settings: Settings, *, now: Callable[[], datetime]) -> None:
        self._now = now
        self._view = view.empty(settings)
        self._nodes: dict[str, Node] = {}
        self._facts: dict[str, NodeFacts] = {}
        self._room: dict[str, Amount] = {}
        self._taken: dict[str, Amount] = {}
        self._loads: dict[str, float] = {}
        self._pods: dict[Key, tuple[str, Amount]] = {}
        self._namespaces: dict[str, Metadata] = {}
        self._moves: dict[Key, PodMigration] = {}
        self._changed: set[str] = set()
        self._looked = now()

    def apply(self, resource: Resource, delta: Delta[Any]) -> None:
        """One change of one object."""
        if delta.new is None:
            self._remove(delta.key, delta.object)
        else:
            self.put(resource, delta.new)

    def put(self, resource: Resource, seen: Any) -> None:
        """An object as it is now."""
        del resource
        match seen:
            case Node():
                self._put_node(seen)
            case PlacedPod():
                self._put_pod(seen)
            case PodMigration():
                self._set(self._moves, seen.metadata.key, seen, "moves")
            case PartialObjectMetadata():
                said = Metadata(seen.metadata.labels, seen.metadata.annotations)
                self._set(self._namespaces, seen.metadata.name, said, "namespaces")

    def forget(self, resource: Resource) -> None:
        """The resource itself is gone, and with it all its objects; only that of the moves may come and go."""
        if resource == PODMIGRATIONS and self._moves:
            self._moves.clear()
            self._changed.add("moves")

    def view(self) -> View:
        """The view of now; the very same as before if nothing in it changed."""
        self._look_again()
        if self._changed:
            self._view = replace(self._view, **self._fresh())
            self._changed.clear()
        return self._view

    def _fresh(self) -> dict[str, Any]:
        made: dict[str, Callable[[], Any]] = {
            "nodes": lambda: dict(self._facts),
            "loads": lambda: dict(self._loads),
            "namespaces": lambda: dict(self._namespaces),
            "moves": lambda: moves.waiting(self._moves.values()),
        }
        return {part: make() for part, make in made.items() if part in self._changed}

    def _look_again(self) -> None:
        """At nodes with a sign; the others get one only by a change."""
        if self._now() - self._looked < LOOK_AGAIN:
            return
        self._looked = self._now()
        for name, known in tuple(self._facts.items()):
            if known.sign is not None:
                self._judge(self._nodes[name])

    def _judge(self, node: Node) -> None:
        found = view.facts(node, self._view.settings, self._view.keys, self._now())
        self._set(self._facts, node.metadata.name, found, "nodes")

    def _put_node(self, node: Node) -> None:
        name = node.metadata.name
        self._nodes[name] = node
        self._judge(node)
        try:
            self._room[name] = load.allocatable(node.status.allocatable)
        except InvalidQuantity:
            self._room[name] = load.NOTHING  # counts as empty; the scheduler would not use it either
        self._weigh(name)

    def _put_pod(self, pod: PlacedPod) -> None:
        try:
            asks = load.asked(pod.spec)
        except InvalidQuantity:
            asks = Amount(pods=1)
        key, placed = (pod.metadata.namespace, pod.metadata.name), (pod.spec.node_name, asks)
        if self._pods.get(key) != placed:
            self._take_away(key)
            self._pods[key] = placed
            self._add(placed, 1)

    def _take_away(self, key: Key) -> None:
        placed = self._pods.pop(key, None)
        if placed is not None:
            self._add(placed, -1)

    def _add(self, placed: tuple[str, Amount], times: int) -> None:
        node, asks = placed
        self._taken[node] = self._taken.get(node, load.NOTHING).plus(asks, times)
        self._weigh(node)

    def _weigh(self, node: str) -> None:
        """A node that is not there, or not yet, has no load."""
        room, taken = self._room.get(node), self._taken.get(node, load.NOTHING)
        if taken.pods == 0:
            self._taken.pop(node, None)
        if room is not None:
            self._set(self._loads, node, load.share(taken, room), "loads")

    def _remove(self, key: Key, last: Any) -> None:
        match last:
            case Node():
                for known in (self._nodes, self._facts, self._room, self._loads):
                    known.pop(key[1], None)
                self._changed |= {"nodes", "loads"}
            case PlacedPod():
                self._take_away(key)
            case PodMigration():
                self._drop(self._moves, key, "moves")
            case _:
                self._drop(self._namespaces, key[1], "namespaces")

    def _set(self, into: dict[Any, Any], key: object, value: object, part: str) -> None:
        if into.get(key) != value:
            into[key] = value
            self._changed.add(part)

    def _drop(self, out_of: dict[Any, Any], key: object, part: str) -> None:
        if out_of.pop(key, None) is not None:
            self._changed.add(part)
