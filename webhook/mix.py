"""The side of one new pod whose workload asks for a mix of spot and on-demand.

Pure: what is counted stands in the view. A side that was chosen once stays, so that being called again for the same
pod changes nothing.
"""

from typing import Final

from policy import mix
from policy.mix import Mix
from policy.placement import Intent
from policy.values import Side
from webhook.counts import Choice
from webhook.patch import Change
from webhook.pod import OwnerReference, Pod
from webhook.reasons import Note
from webhook.view import Migration, View

MIXED: Final = "true"
"""Value of the label by which such pods are watched."""
_NOTES: Final = {Side.SPOT: Note.MIX_SPOT, Side.ON_DEMAND: Note.MIX_ON_DEMAND}


def choose(pod: Pod, intent: Intent, namespace: str, view: View, moves: tuple[Migration, ...]) -> Choice | None:
    """The side that the pod gets; None where no mix is asked for, or where no controller makes more like it."""
    wanted, owner = mix.of(intent), pod.controller
    if wanted is None or owner is None:
        return None
    said = mix.chosen(pod.annotations, view.keys)
    if said is not None:
        return Choice((namespace, owner.uid), said, fresh=False)
    return Choice((namespace, owner.uid), _side(pod, owner, wanted, namespace, view, moves), fresh=True)


def change(pod: Pod, choice: Choice, view: View) -> Change:
    """The label and the annotations that say so."""
    ours, notes = view.keys, (_NOTES[choice.side],)
    labels = {} if ours.mixed in pod.labels else {ours.mixed: MIXED}
    if not choice.fresh:
        return Change(labels=labels, notes=notes)
    told = {ours.capacity: choice.side.value, ours.decided_by: view.counts.decider}
    annotations = {key: value for key, value in told.items() if value and pod.annotations.get(key) != value}
    return Change(labels=labels, annotations=annotations, notes=notes)


def _side(
    pod: Pod, owner: OwnerReference, wanted: Mix, namespace: str, view: View, moves: tuple[Migration, ...]
) -> Side:
    """A move has a target, and its plan has looked at the mix; a StatefulSet numbers its pods; others are counted."""
    sent = {_capacity(move.target, view) for move in moves if move.target}
    if len(sent) == 1:
        return sent.pop()
    number = mix.ordinal(pod.name, pod.labels) if owner.kind == "StatefulSet" else None
    return wanted.next(*view.counts.of((namespace, owner.uid))) if number is None else wanted.at(number)


def _capacity(node: str, view: View) -> Side:
    return Side.SPOT if node in view.spot_nodes else Side.ON_DEMAND
