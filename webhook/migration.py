"""The replacement of a pod that is being moved: its labels and annotations, and the hint to the scheduler.

A pod is matched by its namespace and the UID of its controller, never by what it says itself. The hint is a
preference: it cannot leave a pod pending. Which pod really is the replacement, the migrator decides.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

from policy import affinity, keys, values
from policy.settings_moves import Coordination
from policy.values import MigrationStatus
from webhook.patch import Change, Json
from webhook.pod import Pod
from webhook.reasons import Note
from webhook.view import Migration, View

OPEN_AT_MOST: Final = timedelta(hours=24)
"""A move older than this guides nobody: whoever should carry it out has been gone for a day."""


def matching(pod: Pod, namespace: str, view: View, now: datetime) -> tuple[Migration, ...]:
    """The open moves whose replacement this pod can be, oldest first."""
    owner = pod.controller
    moves = view.migrations.get((namespace, owner.uid if owner else ""), ())
    return tuple(it for it in moves if _is_ours(pod, it, view) and now - it.started <= OPEN_AT_MOST)


def change(pod: Pod, moves: tuple[Migration, ...], view: View) -> Change:
    """The keys of one move, and a hint that serves them all.

    Pods of one owner are alike, and which of them lands where is the scheduler's choice; so every replacement
    prefers all targets that are still free, and is labelled with the oldest move until the migrator sees where
    it landed. That is the same on every replica of the webhook and on every call.
    """
    labels, annotations = _keys(_chosen(pod, moves, view), view)
    hint = tuple(_hint(pod, moves, view))
    guided = bool(hint) and any(move.target for move in moves)
    return Change(
        labels={key: value for key, value in labels.items() if pod.labels.get(key) != value},
        annotations={key: value for key, value in annotations.items() if pod.annotations.get(key) != value},
        drop_labels=_present(view.keys.migration_labels, pod.labels, but=labels),
        drop_annotations=_present(view.keys.migration_annotations, pod.annotations, but=annotations),
        preferred=tuple(term for term in hint if term not in pod.preferred_terms),
        notes=(Note.REPLACEMENT, Note.HINTED if guided else Note.UNGUIDED),
    )


def strip(pod: Pod, view: View) -> Change:
    """Take away the keys of a move that came along when somebody copied a moved pod."""
    labels = _present(view.keys.migration_labels, pod.labels)
    annotations = _present(view.keys.migration_annotations, pod.annotations)
    notes = (Note.KEYS_STRIPPED,) if labels or annotations else ()
    return Change(drop_labels=labels, drop_annotations=annotations, notes=notes)


def _is_ours(pod: Pod, move: Migration, view: View) -> bool:
    if move.owner_kind == "StatefulSet":
        return pod.name == move.pod_name
    if move.owner_kind:
        return True
    # A pod without a controller is copied by the migrator, which marks the copy before it creates it.
    copied = pod.annotations.get(view.keys.original_pod) == move.pod_uid != ""
    return copied and pod.labels.get(view.keys.migration_id) == move.id


def _chosen(pod: Pod, moves: tuple[Migration, ...], view: View) -> Migration:
    """The move an earlier call chose, as long as it is open; else the oldest."""
    said = pod.labels.get(view.keys.migration_id)
    return next((move for move in moves if move.id == said), moves[0])


def _keys(move: Migration, view: View) -> tuple[dict[str, str], dict[str, str]]:
    ours = view.keys
    labels = {
        ours.migration_id: move.id,
        ours.migration_status: MigrationStatus.IN_PROGRESS.value,
        ours.migrated_from: values.label_for_node(move.source) if move.source else "",
        ours.migration_reason: move.strategy,
    }
    annotations = {
        ours.migration_time: values.format_time(move.started),
        ours.original_pod: move.pod_uid,
        ours.original_pod_name: move.pod_name,
        ours.migration_target: move.target,
    }
    return _filled(labels), _filled(annotations)


def _filled(found: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in found.items() if value}


def _present(ours: Iterable[str], held: Iterable[str], *, but: Iterable[str] = ()) -> tuple[str, ...]:
    return tuple(key for key in ours if key in held and key not in but)


def _hint(pod: Pod, moves: tuple[Migration, ...], view: View) -> Iterator[Json]:
    """Prefer the targets, and prefer not to be on the sources; weights are measured, see `policy.settings_moves`."""
    settings = view.settings.migrations
    if settings.coordination is Coordination.UNGUIDED or affinity.pinned(pod.selector, pod.node_affinity):
        return
    hosts, names = _split((move.target for move in moves), view)
    weight = settings.hint.target_weight
    if hosts:
        yield {"weight": weight, "preference": {"matchExpressions": [_rule(keys.HOSTNAME, "In", hosts)]}}
    for name in names:  # a field rule takes one value only
        yield {"weight": weight, "preference": {"matchFields": [_rule("metadata.name", "In", [name])]}}
    hosts, names = _split((move.source for move in moves), view)
    avoided: dict[str, list[Json]] = {}
    if hosts:
        avoided["matchExpressions"] = [_rule(keys.HOSTNAME, "NotIn", hosts)]
    if names:
        avoided["matchFields"] = [_rule("metadata.name", "NotIn", [name]) for name in names]
    if avoided:
        yield {"weight": settings.hint.avoid_source_weight, "preference": avoided}


def _split(nodes: Iterable[str], view: View) -> tuple[list[str], list[str]]:
    """Nodes by hostname label, and those whose name is too long to be one, by name."""
    labels = {name: view.hostnames.get(name, name) for name in nodes if name}
    hosts = {label for label in labels.values() if values.is_label_value(label)}
    return sorted(hosts), sorted(name for name, label in labels.items() if not values.is_label_value(label))


def _rule(key: str, operator: str, listed: list[str]) -> Json:
    return {"key": key, "operator": operator, "values": listed}
