"""Does what was drawn: as users with kubectl, as the cloud, or as bad luck would.

A request of a user that does not get through is repeated, because the cluster is to become what the model says.
"""

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import urllib3

from testbed import faults, objects
from testbed.api import STRATEGIC_PATCH, Api, ApiError, Object
from testbed.waiting import NeverCame, eventually
from tests.chaos import bodies
from tests.chaos.asking import Asking
from tests.chaos.bodies import KEYS, NAMESPACE, NOTICE
from tests.chaos.model import Act, Form, Kind, Model, Workload
from tests.chaos.product import DESCHEDULER, SYSTEM, WEBHOOK, Product
from tests.chaos.settings import DOCUMENTS
from tests.integration.descheduler.moves import product as moves
from tests.integration.descheduler.moves.trouble import TROUBLES, WATCHES

SNATCH_SECONDS: Final = 15.0
GONE, THERE = 404, 409


@dataclass(slots=True)
class Doer:
    """Does one act after the other."""

    kube: Api
    product: Product
    model: Model
    """What was asked for so far, this act included."""
    tell: Callable[[str], None]
    asking: Asking

    def do(self, act: Act) -> None:
        """To its end, but for what others have to do then."""
        before = self.model.workloads.get(act.subject)
        self.model.apply(act)
        DEEDS[act.kind](self, act, before)

    # ---- workloads

    def create(self, act: Act, _: Workload | None) -> None:
        made: Workload = act.given
        self.asking.insist(lambda: self.kube.create(made.form, bodies.of(made), NAMESPACE), passing=THERE)

    def delete(self, act: Act, before: Workload | None) -> None:
        """With its budget, and a pod with whatever it has become."""
        assert before is not None
        if before.budget is not None:
            self.asking.insist(lambda: self.kube.delete("poddisruptionbudgets", act.subject, NAMESPACE), passing=GONE)
        if before.form is not Form.POD:
            self.asking.insist(
                lambda: self.kube.delete(before.form, act.subject, NAMESPACE, propagationPolicy="Background"),
                passing=GONE,
            )
            return
        for pod in self.pods(act.subject):
            self.asking.insist(lambda pod=pod: self.kube.delete("pods", pod, NAMESPACE), passing=GONE)  # type: ignore[misc]

    def scale(self, act: Act, before: Workload | None) -> None:
        """Nobody can tell apart a user's number from the same number of a Surge, so a user whose wish seems to be
        fulfilled already looks again, and writes over nothing but what was seen.
        """
        assert before is not None
        form, replicas, lost = before.form, before.replicas, False

        def scaled() -> bool:
            nonlocal lost
            found = self.kube.get(form, act.subject, NAMESPACE)
            if found["spec"]["replicas"] == act.given != replicas:
                return lost
            version = found["metadata"]["resourceVersion"]
            body = {"metadata": {"resourceVersion": version}, "spec": {"replicas": act.given}}
            try:
                self.kube.patch(form, act.subject, body, NAMESPACE)
            except urllib3.exceptions.HTTPError:
                lost = True  # nobody knows whether it got through
                raise
            return True

        self.asking.once(scaled)

    def roll_out(self, act: Act, before: Workload | None) -> None:
        assert before is not None
        body = {"spec": {"template": {"metadata": {"annotations": {"revision": str(act.given)}}}}}
        self.asking.insist(lambda: self.kube.patch(before.form, act.subject, body, NAMESPACE))

    def delete_pod(self, act: Act, _: Workload | None) -> None:
        name = self.pod(act)
        if name:
            self.asking.insist(lambda: self.kube.delete("pods", name, NAMESPACE), passing=GONE)

    def ask(self, act: Act, _: Workload | None) -> None:
        name = self.pod(act)
        if name:
            self.asking.insist(lambda: moves.ask_for(self.kube, NAMESPACE, name, mode=""))

    def snatch(self, act: Act, _: Workload | None) -> None:
        """A pod has another of its name in its place when the eviction that was meant for it arrives."""
        name = self.pod(act)
        if name:
            threading.Thread(target=self._snatch, args=(name,), daemon=True).start()

    def _snatch(self, name: str) -> None:
        ways = [self.product.proxies[f"{DESCHEDULER}-{number}"].rules for number in (0, 1)]
        gates = [faults.Gate() for _ in ways]
        set_up = [
            rules.add(gate, verb="create", resource="pods/eviction", path=f"/pods/{name}/eviction", count=1)
            for rules, gate in zip(ways, gates, strict=True)
        ]
        try:
            moves.ask_for(self.kube, NAMESPACE, name)
            before = self.kube.get("pods", name, NAMESPACE)["metadata"]["uid"]
            eventually(lambda: any(it.reached.is_set() for it in gates), timeout=SNATCH_SECONDS, interval=0.02)
            self.kube.delete("pods", name, NAMESPACE, gracePeriodSeconds=0)
            eventually(lambda: self._is_another(name, before), timeout=SNATCH_SECONDS)
            self.tell(f"{name} was replaced while its eviction was under way")
        except (ApiError, NeverCame, urllib3.exceptions.HTTPError) as missed:
            self.tell(f"{name} was not replaced: {str(missed).splitlines()[0]}")
        finally:
            for number, (rules, rule, gate) in enumerate(zip(ways, set_up, gates, strict=True)):
                rules.remove(rule)
                if gate.reached.is_set():  # what was held arrives now, whoever leads
                    self.product.resumed[f"{DESCHEDULER}-{number}"] = time.time()
                gate.opened.set()

    def _is_another(self, name: str, before: str) -> bool:
        pod = self.kube.get("pods", name, NAMESPACE)
        return pod["metadata"]["uid"] != before and objects.is_ready(pod)

    def budget(self, act: Act, before: Workload | None) -> None:
        """Made anew where there is one: what a user thinks of now."""
        assert before is not None
        if before.budget is not None:
            self.no_budget(act, before)
        body = bodies.budget(self.model.workloads[act.subject])
        self.asking.insist(lambda: self.kube.create("poddisruptionbudgets", body, NAMESPACE), passing=THERE)

    def no_budget(self, act: Act, _: Workload | None) -> None:
        self.asking.insist(lambda: self.kube.delete("poddisruptionbudgets", act.subject, NAMESPACE), passing=GONE)

    # ---- machines

    def add_node(self, act: Act, _: Workload | None) -> None:
        self.asking.insist(lambda: self.kube.create("nodes", bodies.node(act.given)), passing=THERE)

    def remove_node(self, act: Act, _: Workload | None) -> None:
        """And what ran on it: nobody is left to say that it has stopped."""
        self.asking.insist(lambda: self.kube.delete("nodes", act.subject), passing=GONE)
        for pod in self.asking.insist(lambda: self.kube.list("pods")):
            if pod["spec"].get("nodeName") == act.subject:
                self._take_away(pod["metadata"])

    def _take_away(self, meta: Object) -> None:
        name, namespace, uid = meta["name"], meta["namespace"], meta["uid"]
        options: dict[str, Any] = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
        self.asking.insist(lambda: self.kube.delete("pods", name, namespace, **options), passing=(GONE, THERE))

    def cordon(self, act: Act, _: Workload | None) -> None:
        """For the same reason not while the product has it cordoned."""
        name = act.subject
        self.asking.once(lambda: not self.kube.get("nodes", name)["spec"].get("unschedulable"))
        self.node(name, {"spec": {"unschedulable": True}})

    def node(self, name: str, body: Object, *, kind: str = STRATEGIC_PATCH) -> None:
        self.asking.insist(lambda: self.kube.patch("nodes", name, body, kind=kind))

    # ---- the product

    def kill_leader(self, _: Act, __: Workload | None) -> None:
        name = self.product.leader()
        if name:
            self.tell(f"{name} leads and is killed")
            self.product.kill(name)

    def stop_leader(self, _: Act, __: Workload | None) -> None:
        name = self.product.leader()
        if name:
            self.tell(f"{name} leads and is stopped")
            self.product.stop(name)

    def kill_webhooks(self, act: Act, _: Workload | None) -> None:
        found = [one.name for _, one in self.product.members(WEBHOOK)]
        self.product.kill(*(found if act.kind is Kind.KILL_WEBHOOKS else [found[int(act.subject)]]))
        self.product.excuse(time.time(), 3.0)  # what it was answering is lost

    def rotate(self, act: Act, _: Workload | None) -> None:
        secret = {"leaf": "spotshift-webhook-tls", "ca": "spotshift-ca"}[act.subject]
        body = {"metadata": {"annotations": {"spotshift.dev/rotate": act.subject}}}
        self.asking.insist(lambda: self.kube.patch("secrets", secret, body, SYSTEM))

    def configure(self, act: Act, _: Workload | None) -> None:
        self._settings({"data": {"settings.yaml": DOCUMENTS[act.subject]}})

    def emergency(self, act: Act, _: Workload | None) -> None:
        value = "true" if act.kind is Kind.EMERGENCY_STOP else None
        self._settings({"metadata": {"annotations": {KEYS.emergency_stop: value}}})

    def _settings(self, body: Object) -> None:
        self.asking.insist(lambda: self.kube.patch("configmaps", "spotshift-settings", body, SYSTEM))

    def restart_apiserver(self, _: Act, __: Workload | None) -> None:
        began = time.time()
        self.product.running.restart("kube-apiserver", grace_seconds=0)
        self.product.excuse(began, time.time() - began + 10.0)  # it knows the webhook only after a moment

    def trouble(self, act: Act, _: Workload | None) -> None:
        """Requests of every process of the product, each with its own luck."""
        rng, names = random.Random(act.given), act.subject.split(", ")
        for proxy in self.product.proxies.values():
            proxy.rules.rng = random.Random(rng.random())
            for name in names:
                fault, how = TROUBLES[name](rng)
                proxy.rules.add(fault, **how)
            if WATCHES & set(names):
                proxy.cut_all()  # an open watch was let through before there were rules

    def end_trouble(self, _: Act, __: Workload | None) -> None:
        for proxy in self.product.proxies.values():
            proxy.rules.clear()

    def cut(self, _: Act, __: Workload | None) -> None:
        for proxy in self.product.proxies.values():
            proxy.cut_all()

    # ---- asking the API

    def pods(self, app: str) -> list[str]:
        found = self.asking.insist(lambda: self.kube.list("pods", NAMESPACE, labels=f"app={app}"))
        return sorted(it["metadata"]["name"] for it in found)

    def pod(self, act: Act) -> str:
        """One of the workload's pods; empty if it has none right now."""
        found = self.pods(act.subject)
        return found[act.given % len(found)] if found else ""


Deed = Callable[[Doer, Act, Workload | None], None]


def _patches(body: Object) -> Deed:
    return lambda by, act, _: by.node(act.subject, body)


READY: Final = "testbed.spotshift.dev/ready"
DEEDS: Final[dict[Kind, Deed]] = {
    Kind.CREATE: Doer.create,
    Kind.DELETE: Doer.delete,
    Kind.SCALE: Doer.scale,
    Kind.ROLL_OUT: Doer.roll_out,
    Kind.DELETE_POD: Doer.delete_pod,
    Kind.ASK: Doer.ask,
    Kind.SNATCH: Doer.snatch,
    Kind.BUDGET: Doer.budget,
    Kind.NO_BUDGET: Doer.no_budget,
    Kind.ADD_NODE: Doer.add_node,
    Kind.REMOVE_NODE: Doer.remove_node,
    Kind.NOTICE: _patches({"spec": {"taints": [NOTICE]}}),
    Kind.NOT_READY: _patches({"metadata": {"annotations": {READY: "false"}}}),
    Kind.READY: _patches({"metadata": {"annotations": {READY: None}}}),
    Kind.LABEL: _patches({"metadata": {"labels": {KEYS.maintenance: "true"}}}),
    Kind.UNLABEL: _patches({"metadata": {"labels": {KEYS.maintenance: None}}}),
    Kind.CORDON: Doer.cordon,
    Kind.UNCORDON: _patches({"spec": {"unschedulable": None}}),
    Kind.KILL_LEADER: Doer.kill_leader,
    Kind.STOP_LEADER: Doer.stop_leader,
    Kind.RESUME: lambda by, _act, _before: by.product.resume(),
    Kind.KILL_WEBHOOK: Doer.kill_webhooks,
    Kind.KILL_WEBHOOKS: Doer.kill_webhooks,
    Kind.ROTATE: Doer.rotate,
    Kind.CONFIGURE: Doer.configure,
    Kind.EMERGENCY_STOP: Doer.emergency,
    Kind.GO_ON: Doer.emergency,
    Kind.RESTART_APISERVER: Doer.restart_apiserver,
    Kind.TROUBLE: Doer.trouble,
    Kind.END_TROUBLE: Doer.end_trouble,
    Kind.CUT: Doer.cut,
}
