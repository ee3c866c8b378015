"""A pod that nothing holds back, ways to change that, and what the guards then say."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from descheduler import guards
from descheduler.proposal import Urgency
from descheduler.reasons import Reason
from policy import keys
from policy.settings import Settings
from tests.unit.descheduler import build

NOW = datetime(2026, 2, 1, 12, tzinfo=UTC)
OURS = keys.under()
REPLICA_SET = build.owner("ReplicaSet", "web-5f", "shop")


def deployment(**more: Any) -> Any:
    """One that is rolled out."""
    base = {"spec": {"replicas": 2}, "status": {"replicas": 2, "updatedReplicas": 2}}
    return build.thing("Deployment", "web", "shop", **build.merged(base, more))


def replica_set(name: str = "web-5f", **metadata: Any) -> Any:
    """Of that Deployment."""
    owners = [build.owner("Deployment", "web", "shop")]
    return build.thing("ReplicaSet", name, "shop", metadata={"ownerReferences": owners, **metadata})


def pod(name: str = "web-1", **more: Any) -> Any:
    """One that may be moved, unless `more` says otherwise."""
    return build.pod(name, **{"on": "a", "namespace": "shop", "of": REPLICA_SET, **more})


@dataclass(frozen=True, kw_only=True)
class Given:
    """A pod in its cluster, and the codes that hold it back from each kind of move."""

    pod: Any
    also: tuple[Any, ...] = ()
    """What replaces or joins nodes a and b, the namespace, the Deployment and its ReplicaSet."""
    voluntary: str = ""
    maintenance: str = ""
    interruption: str = ""
    says: str = ""
    """Part of the sentence of a voluntary move, or of a maintenance move if only that is held."""
    settings: Settings = field(default_factory=Settings)
    cooldowns: Mapping[str, datetime] = field(default_factory=dict)
    now: datetime = NOW

    def expected(self) -> dict[Urgency, list[str]]:
        """Codes by kind of move."""
        return {urgency: getattr(self, urgency.value).split() for urgency in Urgency}

    def context(self) -> guards.Context:
        """The pass."""
        usual = (build.node("a"), build.node("b"), namespace(), deployment(), replica_set())
        named = {(type(it), it.metadata.key): it for it in (*usual, self.pod, *self.also)}
        state = build.state(*named.values(), settings=self.settings)
        return guards.Context(state, self.settings, OURS, self.now, self.cooldowns)

    def reasons(self) -> dict[Urgency, tuple[Reason, ...]]:
        """What the guards say."""
        context = self.context()
        return {urgency: guards.reasons(self.pod, context, urgency) for urgency in Urgency}

    def check(self) -> None:
        """The codes are these and no others, and the sentence names what decided."""
        found = self.reasons()
        assert {urgency: sorted(it.code for it in said) for urgency, said in found.items()} == {
            urgency: sorted(codes) for urgency, codes in self.expected().items()
        }
        said = found[Urgency.VOLUNTARY] or found[Urgency.MAINTENANCE]
        assert self.says in " | ".join(it.text for it in said)


def namespace(**metadata: Any) -> Any:
    """The pod's."""
    return build.decode({"kind": "Namespace", "metadata": {**build.meta("shop"), **metadata}})
