"""Which pods are left alone, and why. One function per rule; all run, all reasons are reported."""

from collections.abc import Callable
from typing import Final

from policy import keys
from webhook.pod import Pod
from webhook.reasons import Skip
from webhook.review import Review
from webhook.view import View

ALWAYS_EXCLUDED: Final = ("kube-system",)
"""Whatever the settings say: a cluster whose own pods wait for spot nodes cannot heal itself."""
SCHEDULERS: Final = ("", "default-scheduler")
"""Schedulers known to read node affinity the way our preferences are meant."""
OS_LABELS: Final = ("kubernetes.io/os", "beta.kubernetes.io/os")


def of_request(review: Review) -> tuple[Skip, ...]:
    """What the request alone says; with a reason here there may be no pod to look at."""
    return tuple(rule for rule in (_not_create(review), _subresource(review)) if rule is not None)


def of_pod(pod: Pod, namespace: str, view: View) -> tuple[Skip, ...]:
    """What the pod and the name of its namespace say."""
    found = [rule(namespace, view) for rule in _NAMESPACE_RULES]
    found += [rule(pod) for rule in _POD_RULES]
    return tuple(skip for skip in found if skip is not None)


def _not_create(review: Review) -> Skip | None:
    return None if review.operation == "CREATE" else Skip.NOT_CREATE


def _subresource(review: Review) -> Skip | None:
    return Skip.SUBRESOURCE if review.subresource else None


def _own_namespace(namespace: str, view: View) -> Skip | None:
    return Skip.OWN_NAMESPACE if namespace == view.own_namespace else None


def _excluded_namespace(namespace: str, view: View) -> Skip | None:
    excluded = namespace in ALWAYS_EXCLUDED or namespace in view.settings.excluded_namespaces
    return Skip.EXCLUDED_NAMESPACE if excluded else None


def _namespace_unknown(namespace: str, view: View) -> Skip | None:
    """A namespace that is not in the view may have opted out; without labels it would look as if it had not."""
    return None if namespace in view.namespaces else Skip.NAMESPACE_UNKNOWN


def _daemon_set(pod: Pod) -> Skip | None:
    owner = pod.controller
    return Skip.DAEMONSET if owner is not None and owner.kind == "DaemonSet" else None


def _mirror(pod: Pod) -> Skip | None:
    """Kubelets own the mirror pods of static pods by their Node object and mark them; either sign counts."""
    owner = pod.controller
    marked = keys.MIRROR_POD in pod.annotations
    return Skip.MIRROR if marked or (owner is not None and owner.kind == "Node") else None


def _node_name(pod: Pod) -> Skip | None:
    return Skip.NODE_NAME if pod.spec.node_name else None


def _foreign_scheduler(pod: Pod) -> Skip | None:
    return None if (pod.spec.scheduler_name or "") in SCHEDULERS else Skip.FOREIGN_SCHEDULER


def _windows(pod: Pod) -> Skip | None:
    declared = pod.spec.os is not None and pod.spec.os.name == "windows"
    selected = any(pod.selector.get(label) == "windows" for label in OS_LABELS)
    return Skip.WINDOWS if declared or selected else None


_NAMESPACE_RULES: Final[tuple[Callable[[str, View], Skip | None], ...]] = (
    _own_namespace,
    _excluded_namespace,
    _namespace_unknown,
)
_POD_RULES: Final[tuple[Callable[[Pod], Skip | None], ...]] = (
    _daemon_set,
    _mirror,
    _node_name,
    _foreign_scheduler,
    _windows,
)
