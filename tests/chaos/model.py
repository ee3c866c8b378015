"""What users and the cloud have asked for so far: workloads, budgets, machines.   Pure.

The schedule is drawn against it, so that every act is possible when its time comes; and at a quiet point the cluster
is compared with it: replicas, budgets and cordons are the user's, whatever was moved in between.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final


class Kind(StrEnum):
    """Everything that can be done to the cluster or to the product."""

    CREATE = "create"
    DELETE = "delete"
    SCALE = "scale"
    ROLL_OUT = "roll out"
    DELETE_POD = "delete a pod of"
    ASK = "ask for a move of"
    SNATCH = "replace, while its eviction is under way, a pod of"
    BUDGET = "set the budget of"
    NO_BUDGET = "remove the budget of"
    ADD_NODE = "add node"
    REMOVE_NODE = "remove node"
    NOTICE = "interrupt node"
    NOT_READY = "silence node"
    READY = "wake node"
    LABEL = "label for maintenance node"
    UNLABEL = "take the label off node"
    CORDON = "cordon node"
    UNCORDON = "uncordon node"
    KILL_LEADER = "kill the leader"
    STOP_LEADER = "stop the leader"
    RESUME = "resume who was stopped"
    KILL_WEBHOOK = "kill a webhook"
    KILL_WEBHOOKS = "kill all webhooks"
    ROTATE = "rotate certificate"
    CONFIGURE = "configure"
    EMERGENCY_STOP = "stop in an emergency"
    GO_ON = "end the emergency"
    RESTART_APISERVER = "restart the apiserver"
    TROUBLE = "trouble requests"
    END_TROUBLE = "end the trouble"
    CUT = "cut all connections"


class Form(StrEnum):
    """What a workload is."""

    DEPLOYMENT = "deployments"
    STATEFUL_SET = "statefulsets"
    JOB = "jobs"
    POD = "pods"


class Condition(StrEnum):
    """How a machine is."""

    UP = "up"
    NOT_READY = "not ready"
    NOTICED = "noticed"
    LABELLED = "labelled"


@dataclass(frozen=True, slots=True)
class Workload:
    """One that a user wants."""

    name: str
    form: Form
    replicas: int = 1
    cpu: str = "200m"
    ready_seconds: int = 0
    wishes: Mapping[str, str] = field(default_factory=dict)
    """Annotations of ours on its pods, without the prefix."""
    revision: int = 0
    budget: Mapping[str, Any] | None = None

    def __str__(self) -> str:
        wishes = "".join(f" {key}={value}" for key, value in self.wishes.items())
        return f"{self.replicas} x {self.cpu} of {self.form}, Ready after {self.ready_seconds} s{wishes}"


@dataclass(frozen=True, slots=True)
class Machine:
    """One that the cloud gave."""

    name: str
    spot: bool
    zone: str
    condition: Condition = Condition.UP
    cordoned: bool = False

    @property
    def usable(self) -> bool:
        return self.condition is Condition.UP and not self.cordoned

    def __str__(self) -> str:
        return f"{'spot' if self.spot else 'on-demand'} in {self.zone}"


@dataclass(frozen=True, slots=True)
class Act:
    """One thing that is done at its time."""

    at: float
    """Seconds after the beginning of its round."""
    kind: Kind
    subject: str = ""
    given: Any = None

    def __str__(self) -> str:
        told = "" if self.given is None else f": {self.given}"
        return f"{self.kind}{' ' + self.subject if self.subject else ''}{told}"


@dataclass(slots=True)
class Model:
    """The sum of all acts so far."""

    workloads: dict[str, Workload] = field(default_factory=dict)
    machines: dict[str, Machine] = field(default_factory=dict)
    under_way: set[Kind] = field(default_factory=set)
    """What was begun and has an end of its own."""

    def apply(self, act: Act) -> None:
        """Take it as done."""
        if act.kind in _CHANGES:
            _CHANGES[act.kind](self, act)
        if act.kind in ENDS:
            self.under_way.add(act.kind)
        self.under_way -= {begun for begun, end in ENDS.items() if end is act.kind}

    def of(self, *forms: Form) -> list[Workload]:
        """Workloads of these forms, by name."""
        return [it for _, it in sorted(self.workloads.items()) if it.form in forms]

    def usable(self, *, spot: bool) -> list[Machine]:
        """Machines that take pods, by name."""
        return [it for _, it in sorted(self.machines.items()) if it.spot == spot and it.usable]

    def budgets(self) -> set[str]:
        """Names of the users' budgets: those of their workloads."""
        return {it.name for it in self.workloads.values() if it.budget is not None}

    @property
    def pods(self) -> int:
        return sum(it.replicas for it in self.workloads.values())


ENDS: Final = {
    Kind.STOP_LEADER: Kind.RESUME,
    Kind.EMERGENCY_STOP: Kind.GO_ON,
    Kind.TROUBLE: Kind.END_TROUBLE,
}
"""What ends what; one at a time."""


def _create(model: Model, act: Act) -> None:
    model.workloads[act.subject] = act.given


def _change(model: Model, name: str, **changed: Any) -> None:
    model.workloads[name] = replace(model.workloads[name], **changed)


def _machine(condition: Condition) -> Callable[[Model, Act], None]:
    def change(model: Model, act: Act) -> None:
        model.machines[act.subject] = replace(model.machines[act.subject], condition=condition)

    return change


def _cordoned(*, cordoned: bool) -> Callable[[Model, Act], None]:
    def change(model: Model, act: Act) -> None:
        model.machines[act.subject] = replace(model.machines[act.subject], cordoned=cordoned)

    return change


def _add(model: Model, act: Act) -> None:
    model.machines[act.subject] = act.given


_CHANGES: Final[dict[Kind, Callable[[Model, Act], None]]] = {
    Kind.CREATE: _create,
    Kind.DELETE: lambda model, act: model.workloads.__delitem__(act.subject),
    Kind.SCALE: lambda model, act: _change(model, act.subject, replicas=act.given),
    Kind.ROLL_OUT: lambda model, act: _change(model, act.subject, revision=act.given),
    Kind.BUDGET: lambda model, act: _change(model, act.subject, budget=act.given),
    Kind.NO_BUDGET: lambda model, act: _change(model, act.subject, budget=None),
    Kind.ADD_NODE: _add,
    Kind.REMOVE_NODE: lambda model, act: model.machines.__delitem__(act.subject),
    Kind.NOTICE: _machine(Condition.NOTICED),
    Kind.NOT_READY: _machine(Condition.NOT_READY),
    Kind.READY: _machine(Condition.UP),
    Kind.LABEL: _machine(Condition.LABELLED),
    Kind.UNLABEL: _machine(Condition.UP),
    Kind.CORDON: _cordoned(cordoned=True),
    Kind.UNCORDON: _cordoned(cordoned=False),
}
