"""Pods of one template share, pods that differ do not, and what nobody uses goes away."""

from __future__ import annotations

import copy
import gc
import json
import random
import threading
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench import pods as realistic
from cluster import wire
from cluster.decode import Decoders
from cluster.intern import LAST_APPLIED, Interner
from cluster.objects import ObjectMeta, Pod, PodSpec, PodStatus
from cluster.pod import Container, ContainerStatus, PodCondition, Volume
from tests.effort import many

Object = dict[str, Any]


def sibling(number: int, template: int = 0) -> Object:
    return realistic.pod(template, number, random.Random(number))


class Decoding:
    """A decoder and its pools."""

    def __init__(self) -> None:
        decoders = Decoders()
        self.interner: Interner = decoders.interner
        self._decoder = decoders.of(Pod)

    def pod(self, body: Object) -> Pod:
        return self._decoder.decode(json.dumps(body).encode())


def test_siblings_share_everything_that_is_not_their_own() -> None:
    decoding = Decoding()
    one, two = (decoding.pod(sibling(number)) for number in (1, 2))
    assert one.spec is two.spec
    assert one.status is two.status
    assert one.metadata.labels is two.metadata.labels
    assert one.metadata.annotations is two.metadata.annotations
    assert one.metadata.owner_references[0] is two.metadata.owner_references[0]
    assert one.metadata.namespace is two.metadata.namespace
    for field in ("name", "uid", "resource_version", "creation_timestamp"):
        assert getattr(one.metadata, field) != getattr(two.metadata, field)
    assert one.node_name != two.node_name
    assert one.ready_since != two.ready_since


def test_numbered_pods_of_a_statefulset_share_their_spec() -> None:
    """Host name, claim and index label are numbered; the rest is one object."""
    decoding = Decoding()

    def member(number: int) -> Object:
        body = sibling(number)
        body["metadata"]["name"] = body["spec"]["hostname"] = f"db-{number}"
        body["metadata"]["labels"]["apps.kubernetes.io/pod-index"] = str(number)
        body["spec"]["volumes"] += [
            {"name": "data", "persistentVolumeClaim": {"claimName": f"data-db-{number}"}},
            {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
        ]
        return body

    one, two = (decoding.pod(member(number)) for number in (1, 2))
    assert one.spec is two.spec
    assert one.claims == ("data-db-1", "db-1-scratch")
    assert two.claims == ("data-db-2", "db-2-scratch")
    assert (one.hostname, two.hostname) == ("db-1", "db-2")
    assert one.hostname is one.metadata.name
    assert one.metadata.labels is not two.metadata.labels
    assert one.metadata.annotations is two.metadata.annotations


def put(*path: Any, value: Any) -> Callable[[Object], None]:
    def change(body: Object) -> None:
        inner: Any = body
        for step in path[:-1]:
            inner = inner[step] if isinstance(inner, list) else inner.setdefault(step, {})
        inner[path[-1]] = value

    return change


SPEC_CHANGES = {
    "request": put("spec", "containers", 0, "resources", "requests", "cpu", value="1"),
    "limit": put("spec", "containers", 1, "resources", "limits", "memory", value="1Gi"),
    "container-name": put("spec", "containers", 0, "name", value="other"),
    "host-port": put("spec", "containers", 0, "ports", 0, "hostPort", value=80),
    "host-ip": put("spec", "containers", 0, "ports", 0, "hostIP", value="10.0.0.1"),
    "sidecar": put("spec", "initContainers", value=[{"name": "s", "restartPolicy": "Always"}]),
    "overhead": put("spec", "overhead", value={"cpu": "10m"}),
    "pod-level-resources": put("spec", "resources", value={"requests": {"cpu": "2"}}),
    "node-selector": put("spec", "nodeSelector", value={"a": "b"}),
    "affinity": put("spec", "affinity", "nodeAffinity", value=None),
    "toleration": put("spec", "tolerations", 0, "tolerationSeconds", value=1),
    "spread": put("spec", "topologySpreadConstraints", 0, "maxSkew", value=2),
    "volume-kind": put("spec", "volumes", 0, value={"name": "config", "emptyDir": {"medium": "Memory"}}),
    "local-volume-name": put("spec", "volumes", 0, value={"name": "scratch", "emptyDir": {}}),
    "resource-claim": put("spec", "resourceClaims", value=[{"name": "gpu", "resourceClaimName": "g"}]),
    "scheduling-gate": put("spec", "schedulingGates", value=[{"name": "wait"}]),
    "readiness-gate": put("spec", "readinessGates", value=[{"conditionType": "lb"}]),
    "scheduler": put("spec", "schedulerName", value="other"),
    "priority": put("spec", "priority", value=5),
    "priority-class": put("spec", "priorityClassName", value="high"),
    "preemption": put("spec", "preemptionPolicy", value="Never"),
    "grace": put("spec", "terminationGracePeriodSeconds", value=0),
    "runtime-class": put("spec", "runtimeClassName", value="kata"),
    "restart-policy": put("spec", "restartPolicy", value="Never"),
    "host-network": put("spec", "hostNetwork", value=True),
    "subdomain": put("spec", "subdomain", value="db"),
}
STATUS_CHANGES = {
    "phase": put("status", "phase", value="Pending"),
    "reason": put("status", "reason", value="Evicted"),
    "qos": put("status", "qosClass", value="BestEffort"),
    "nominated": put("status", "nominatedNodeName", value="n"),
    "condition": put("status", "conditions", 2, "status", value="False"),
    "condition-reason": put("status", "conditions", 2, "reason", value="Unready"),
    "ready": put("status", "containerStatuses", 0, "ready", value=False),
    "restarts": put("status", "containerStatuses", 0, "restartCount", value=3),
    "state": put("status", "containerStatuses", 0, "state", value={"waiting": {"reason": "CrashLoopBackOff"}}),
    "resized": put("status", "containerStatuses", 0, "resources", value={"requests": {"cpu": "9"}}),
    "allocated": put("status", "containerStatuses", 0, "allocatedResources", value={"cpu": "9"}),
    "init": put("status", "initContainerStatuses", value=[{"name": "i", "ready": True}]),
}


@pytest.mark.parametrize("change", [pytest.param(change, id=name) for name, change in SPEC_CHANGES.items()])
def test_one_different_field_of_the_spec_is_another_spec(change: Callable[[Object], None]) -> None:
    decoding = Decoding()
    changed = sibling(2)
    change(changed)
    plain, other = decoding.pod(sibling(1)), decoding.pod(changed)
    assert plain.spec != other.spec
    assert plain.status is other.status
    assert other.spec == reference_spec(changed)


@pytest.mark.parametrize("change", [pytest.param(change, id=name) for name, change in STATUS_CHANGES.items()])
def test_one_different_field_of_the_status_is_another_status(change: Callable[[Object], None]) -> None:
    decoding = Decoding()
    changed = sibling(2)
    change(changed)
    plain, other = decoding.pod(sibling(1)), decoding.pod(changed)
    assert plain.status != other.status
    assert plain.spec is other.spec
    assert other.status == msgspec.convert(changed["status"], PodStatus)


def reference_spec(body: Object) -> PodSpec:
    """The spec decoded plainly, without the shallow form: what interning must give as well."""
    spec = copy.deepcopy(body["spec"])
    for volume in spec.get("volumes", ()):
        if not volume.keys() & {"ephemeral", "emptyDir", "hostPath"}:
            volume.pop("name", None)
    if spec.get("affinity", {}).get("nodeAffinity", 0) is None:
        spec["affinity"].pop("nodeAffinity")
    return msgspec.convert(spec, PodSpec)


@settings(max_examples=many(60))
@given(
    st.lists(
        st.tuples(st.sampled_from(sorted(SPEC_CHANGES)), st.sampled_from(sorted(STATUS_CHANGES)), st.booleans()),
        min_size=1,
        max_size=8,
    )
)
def test_interned_pods_are_what_a_plain_decode_gives(choices: list[tuple[str, str, bool]]) -> None:
    decoding = Decoding()
    held = []
    for number, (spec_change, status_change, both) in enumerate(choices):
        body = sibling(number)
        SPEC_CHANGES[spec_change](body)
        if both:
            STATUS_CHANGES[status_change](body)
        pod = decoding.pod(body)
        held.append(pod)
        assert pod.spec == reference_spec(body)
        assert pod.status == msgspec.convert(body["status"], PodStatus)
        assert pod.metadata.labels == body["metadata"]["labels"]
        assert pod.metadata.name == body["metadata"]["name"]
        assert pod.node_name == body["spec"]["nodeName"]
    assert decoding.interner.sizes()["specs"] == len({choice[0] for choice in choices})


def test_memory_follows_the_templates() -> None:
    decoding = Decoding()
    held = [decoding.pod(sibling(number, template=number % 7)) for number in range(210)]
    sizes = decoding.interner.sizes()
    assert (sizes["specs"], sizes["owners"], sizes["statuses"], sizes["maps"]) == (7, 7, 1, 14)
    assert len(held) == 210


def test_a_template_goes_with_its_last_pod() -> None:
    decoding = Decoding()
    store = {number: decoding.pod(sibling(number, template=number % 2)) for number in range(10)}
    assert decoding.interner.sizes()["specs"] == 2
    for number in (0, 2, 4, 6):
        del store[number]
    assert decoding.interner.sizes()["specs"] == 2
    del store[8]
    gc.collect()
    assert decoding.interner.sizes() == {"maps": 2, "owners": 1, "specs": 1, "statuses": 1}
    store.clear()
    gc.collect()
    assert set(decoding.interner.sizes().values()) == {0}


def test_churn_leaves_nothing_behind() -> None:
    decoding = Decoding()
    for number in range(500):
        decoding.pod(sibling(number, template=number))
    gc.collect()
    assert set(decoding.interner.sizes().values()) == {0}


def test_a_kept_copy_of_the_whole_object_is_dropped() -> None:
    body = sibling(1)
    body["metadata"]["annotations"] |= {LAST_APPLIED: json.dumps(body), "mine": "yes"}
    annotations = Decoding().pod(body).metadata.annotations
    assert LAST_APPLIED not in annotations
    assert annotations["mine"] == "yes"


@pytest.mark.parametrize("empty", [pytest.param({}, id="empty"), pytest.param(None, id="null")])
@pytest.mark.parametrize("field", ["labels", "annotations"])
def test_no_labels(field: str, empty: Object | None) -> None:
    body = sibling(1)
    body["metadata"][field] = empty
    assert getattr(Decoding().pod(body).metadata, field) == {}


def test_ready_since_is_only_told_while_ready() -> None:
    decoding = Decoding()
    body = sibling(1)
    ready = decoding.pod(body)
    assert ready.ready
    assert ready.ready_since is not None
    STATUS_CHANGES["condition"](body)
    unready = decoding.pod(body)
    assert not unready.ready
    assert unready.ready_since is None


def test_ready_without_a_time_is_ready() -> None:
    body = sibling(1)
    body["status"]["conditions"][2]["lastTransitionTime"] = None
    assert Decoding().pod(body).ready


def test_threads_get_equal_pods() -> None:
    decoding = Decoding()
    bodies = [sibling(number, template=number % 5) for number in range(100)]
    expected = [decoding.pod(body) for body in bodies]
    found: list[list[Pod]] = []
    threads = [
        threading.Thread(target=lambda: found.append([decoding.pod(body) for body in bodies])) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(pods == expected for pods in found)
    assert decoding.interner.sizes()["specs"] == 5


@pytest.mark.parametrize(
    ("shallow", "full", "own"),
    [
        pytest.param(wire.SpecWire, PodSpec, {"nodeName", "hostname"}, id="spec"),
        pytest.param(wire.StatusWire, PodStatus, {"startTime"}, id="status"),
        pytest.param(wire.ContainerWire, Container, set(), id="container"),
        pytest.param(wire.ContainerStatusWire, ContainerStatus, set(), id="container-status"),
        pytest.param(wire.ConditionWire, PodCondition, {"lastTransitionTime"}, id="condition"),
        pytest.param(wire.VolumeWire, Volume, set(), id="volume"),
        pytest.param(wire.MetaWire, ObjectMeta, set(), id="meta"),
    ],
)
def test_the_shallow_form_has_the_fields_of_the_full_one(
    shallow: type[msgspec.Struct], full: type[msgspec.Struct], own: set[str]
) -> None:
    """A field that only one of them knows would be lost, or be shared by pods that differ in it."""
    shallow_fields = {field.encode_name: field for field in msgspec.structs.fields(shallow)}
    full_fields = {field.encode_name: field for field in msgspec.structs.fields(full)}
    assert set(shallow_fields) == set(full_fields) | own
    for name, field in full_fields.items():
        if isinstance(field.default, str | int | bool):
            assert shallow_fields[name].default == field.default, name
