"""A tier's PriorityClass: set where the user chose none and the class exists.

Who may use a tier is decided in `policy.placement`; a class that is missing would make the API server refuse
the pod.
"""

from typing import Final

from policy.values import Tier
from webhook.patch import NO_CHANGE, Change
from webhook.pod import Pod
from webhook.reasons import Note
from webhook.view import View

_OF_USER: Final = Change(notes=(Note.CLASS_OF_USER,))


def change(pod: Pod, tier: Tier, view: View) -> Change:
    """The class of the tier, if this pod should get it.

    Nothing is touched where the class is right already: removing `priority` a second time, on a reinvocation,
    would store a pod without one.
    """
    wanted: str = getattr(view.settings.placement.priority_classes, tier)
    own = pod.spec.priority_class_name or ""
    if wanted in {"", own}:
        return NO_CHANGE
    if own and not _is_default(own, view):
        return _OF_USER
    if wanted not in view.classes:
        told = f"tier {tier}: PriorityClass {wanted} does not exist, so the pod keeps its priority"
        return Change(notes=(Note.CLASS_MISSING,), warnings=(told,))
    return Change(priority_class=wanted, notes=(Note.CLASS_SET,))


def _is_default(name: str, view: View) -> bool:
    """The Priority plugin fills the global default in before we see the pod, so it is nobody's choice."""
    found = view.classes.get(name)
    return found is not None and found.global_default
