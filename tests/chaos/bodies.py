"""The objects of the model as the API takes them.   Pure."""

from typing import Any, Final

from policy import keys
from testbed import objects
from testbed.api import Object
from tests.chaos.model import Form, Machine, Workload

KEYS: Final = keys.under()
NAMESPACE: Final = "chaos"
NOTICE: Final = {"key": "aws-node-termination-handler/spot-itn", "value": "chaos", "effect": "NoSchedule"}
JOB_SECONDS: Final = 15
BUILDERS: Final = {
    Form.DEPLOYMENT: objects.deployment,
    Form.STATEFUL_SET: objects.stateful_set,
}


def of(workload: Workload) -> Object:
    """What a user would apply."""
    annotations = {KEYS.prefix + key: value for key, value in workload.wishes.items()}
    if workload.ready_seconds:
        annotations[f"{objects.PREFIX}ready-delay"] = f"{workload.ready_seconds}s"
    options: dict[str, Any] = {"cpu": workload.cpu, "annotations": annotations, "terminationGracePeriodSeconds": 2}
    if workload.form is Form.POD:
        return objects.pod(workload.name, **options)
    if workload.form is Form.JOB:
        return _job(workload, options)
    return BUILDERS[workload.form](workload.name, replicas=workload.replicas, **options)


def node(machine: Machine) -> Object:
    """The cloud's part of a machine; the kubelet is simulated."""
    return objects.node(machine.name, spot=machine.spot, zone=machine.zone, cpu="4", memory="16Gi")


def budget(workload: Workload) -> Object:
    """A user's own."""
    return objects.budget(workload.name, app=workload.name, **(workload.budget or {}))


def _job(workload: Workload, options: dict[str, Any]) -> Object:
    """One that survives disruptions, as its author has learnt to say."""
    options["annotations"][f"{objects.PREFIX}complete-after"] = f"{JOB_SECONDS}s"
    made = objects.job(workload.name, completions=workload.replicas, **options)
    ignore = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    made["spec"]["podFailurePolicy"] = {"rules": [ignore]}
    return made
