"""The side of one new pod whose workload asks for a mix of spot and on-demand.

Pure: what is counted stands in the view. A side that was chosen once stays, so that being called again for the same
pod changes nothing.
"""

from collections.abc import Mapping
from typing import Final

from policy import mix
from policy.mix import Mix
from policy.placement import Intent
from policy.values import Side
from webhook.counts import Choice, Counted, Owner
from webhook.patch import Change
from webhook.pod import OwnerReference, Pod
from webhook.reasons import Note
from webhook.view import Migration, View

MIXED: Final = "true"
"""Value of the label by which such pods are watched."""
NUMBERED: Final = "StatefulSet"
_NOTES: Final = {Side.SPOT: Note.MIX_SPOT, Side.ON_DEMAND: Note.MIX_ON_DEMAND}


def choose(pod: Pod, intent: Intent, namespace: str, view: View, moves: tuple[Migration, ...]) -> Choice | None:
    """The side that the pod gets; None where no mix is asked for, or where no controller makes more like it."""
    wanted, owner = mix.of(intent), pod.controller
    if wanted is None or owner is None:
        return None
    said, whose = mix.chosen(pod.annotations, view.keys), (namespace, owner.uid)
    if said is not None:
        return Choice(whose, said, fresh=False)
    sent = _sent(owner, whose, view, moves)
    side = _side(pod, owner, wanted, view.counts.of(whose), sent)
    followed = next((move for move, to in sent.items() if to is side), "")
    return Choice(whose, side, fresh=True, move=followed)


def change(pod: Pod, choice: Choice, view: View) -> Change:
    """The label and the annotations that say so."""
    ours, notes = view.keys, (_NOTES[choice.side],)
    labels = {} if ours.mixed in pod.labels else {ours.mixed: MIXED}
    if not choice.fresh:
        return Change(labels=labels, notes=notes)
    told = {ours.capacity: choice.side.value, ours.decided_by: view.counts.decider}
    annotations = {key: value for key, value in told.items() if value and pod.annotations.get(key) != value}
    return Change(labels=labels, annotations=annotations, notes=notes)


def _side(pod: Pod, owner: OwnerReference, wanted: Mix, counted: Counted, sent: Mapping[str, Side]) -> Side:
    """A move has a target, and its plan has looked at the mix; a StatefulSet numbers its pods; others are counted."""
    sides = set(sent.values())
    if len(sides) == 1:
        return sides.pop()
    number = mix.ordinal(pod.name, pod.labels) if owner.kind == NUMBERED else None
    return wanted.next(*counted) if number is None else wanted.at(number)


def _sent(owner: OwnerReference, whose: Owner, view: View, moves: tuple[Migration, ...]) -> Mapping[str, Side]:
    """Where the moves go whose replacement the pod can be. Each speaks for one pod: others that come meanwhile, of a
    scale-up or instead of a lost one, are counted. A move of a StatefulSet is for one name, however often that comes.
    """
    return {
        move.id: _capacity(move.target, view)
        for move in moves
        if move.target and (owner.kind == NUMBERED or not view.counts.is_followed(whose, move.id))
    }


def _capacity(node: str, view: View) -> Side:
    return Side.SPOT if node in view.spot_nodes else Side.ON_DEMAND
