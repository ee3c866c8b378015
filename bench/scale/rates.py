"""How many events a large cluster makes, derived from what Kubernetes promises for it.   Pure.

For 5,000 nodes with 150,000 pods, each second:

* 17 times the status of a node: a kubelet writes it every five minutes if nothing has changed. Its heartbeat is a
  Lease, which we do not watch.
* 20 pods deleted and 20 created. Kubernetes measures its own promises at a churn of at most 20 pods created or
  deleted. A creation is four events (created, bound, given an address, Ready), a deletion three (asked to go,
  stopped, gone).
* 42 changes of readiness: every pod restarts or flaps once in two hours.
* 102 times the status of a ReplicaSet, whenever a pod comes, stops or becomes Ready, and as often that of its
  Deployment.
* 82 times the status of a PodDisruptionBudget, whenever a pod is Ready or is not any more: every workload has one.

Above that, once a minute, a roll-out restarts 250 pods within a second.
"""

from __future__ import annotations

from dataclasses import dataclass

NODE_STATUS_SECONDS = 300
CHURN = 20 / 150_000
"""Pods created, and as many deleted, each second for each pod there is."""
ON_CREATION, ON_DELETION = 4, 3
ON_REPLACED = 3
"""How often an owner's status changes when one pod goes and another comes."""
FLAP_SECONDS = 7_200
ROLLOUT_EVERY_SECONDS, ROLLOUT_PODS = 60, 250 / 150_000


@dataclass(frozen=True, slots=True)
class Rates:
    """Per second."""

    node_status: float
    replaced: float
    """Pods deleted, each with another created in its place."""
    flaps: float
    rollout: int
    """Pods replaced at once, now and then."""

    @property
    def events(self) -> float:
        """All together, roll-outs included."""
        replaced = self.replaced + self.rollout / ROLLOUT_EVERY_SECONDS
        pods = replaced * (ON_CREATION + ON_DELETION) + 2 * self.flaps
        owners = 2 * (ON_REPLACED * replaced + 2 * self.flaps)
        budgets = 2 * replaced + 2 * self.flaps
        return self.node_status + pods + owners + budgets


def of(nodes: int, pods: int) -> Rates:
    """Of a cluster of this size."""
    return Rates(nodes / NODE_STATUS_SECONDS, pods * CHURN, pods / FLAP_SECONDS, round(pods * ROLLOUT_PODS))
