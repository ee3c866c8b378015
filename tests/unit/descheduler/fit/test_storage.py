"""Claims and volumes: reach, zones, limits, exclusive use, and claims that wait for their pod."""

from typing import Any

import pytest

from descheduler.fit import FitCode, Fitter, provisioning
from descheduler.picture import Picture
from tests.unit.descheduler import build, counting

BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
DRIVER = "disk.example"


def mounting(*claims: str, ephemeral: bool = False) -> dict[str, Any]:
    if ephemeral:
        return {"volumes": [{"name": it, "ephemeral": {"volumeClaimTemplate": {}}} for it in claims]}
    return {"volumes": [{"name": it, "persistentVolumeClaim": {"claimName": it}} for it in claims]}


def claim(name: str = "data", volume: str = "v", *, kind: str = "", phase: str = "Bound", **more: Any) -> Any:
    annotations = more.pop("annotations", BOUND if volume else {})
    base = {
        "metadata": {"annotations": annotations, **more.pop("metadata", {})},
        "spec": {
            "volumeName": volume,
            "storageClassName": kind,
            "accessModes": more.pop("modes", ["ReadWriteOnce"]),
            "resources": {"requests": {"storage": more.pop("size", "1Gi")}},
        },
        "status": {"phase": phase},
    }
    return build.thing("PersistentVolumeClaim", name, **build.merged(base, more))


def volume(name: str = "v", *, labels: Any = None, sites: Any = None, csi: bool = False, **spec: Any) -> Any:
    made: dict[str, Any] = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], **spec}
    if sites:
        rule = {"key": "site", "operator": "In", "values": sites}
        made["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [rule]}]}}
    if csi:
        made["csi"] = {"driver": DRIVER, "volumeHandle": name}
    phase = {"phase": "Available"} if "storageClassName" in spec else {"phase": "Bound"}
    return build.thing("PersistentVolume", name, "", metadata={"labels": labels or {}}, spec=made, status=phase)


def storage_class(*, waits: bool = True, provisioner: str = DRIVER, sites: Any = None) -> Any:
    mode = "WaitForFirstConsumer" if waits else "Immediate"
    topologies = [{"matchLabelExpressions": [{"key": "site", "values": sites}]}] if sites else []
    more = {"provisioner": provisioner, "volumeBindingMode": mode, "allowedTopologies": topologies}
    return build.thing("StorageClass", "fast", "", **more)


def codes(objects: Any, pod: Any = None, labels: Any = None) -> set[FitCode]:
    pod = pod or build.pod("x", spec=mounting("data"))
    fitter = Fitter(Picture(build.state(build.node("a", labels=labels or {"site": "s1"}), *objects, pod)))
    found = {it.code for it in fitter.misfits(pod, "a")}
    assert fitter.fits(pod, "a") is (not found)
    return found


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param([claim(), volume()], set(), id="bound"),
        pytest.param([], {FitCode.VOLUME_CLAIM}, id="no-such-claim"),
        pytest.param([claim()], {FitCode.VOLUME_CLAIM}, id="no-such-volume"),
        pytest.param([claim(phase="Lost"), volume()], {FitCode.VOLUME_CLAIM}, id="lost"),
        pytest.param([claim(annotations={}), volume()], {FitCode.VOLUME_CLAIM}, id="half-bound"),
        pytest.param(
            [claim(metadata={"deletionTimestamp": build.LONG_AGO}), volume()], {FitCode.VOLUME_CLAIM}, id="deleted"
        ),
        pytest.param(
            [claim(volume="", kind="fast"), storage_class(waits=False)], {FitCode.VOLUME_CLAIM}, id="others-must-bind"
        ),
        pytest.param([claim(volume="", kind="none")], {FitCode.VOLUME_CLAIM}, id="no-such-class"),
        pytest.param([claim(), volume(sites=["s1", "s2"])], set(), id="reached"),
        pytest.param([claim(), volume(sites=["s2"])], {FitCode.VOLUME_AFFINITY}, id="not-reached"),
    ],
)
def test_claims(objects: list[Any], expected: set[FitCode]) -> None:
    assert codes(objects) == expected


@pytest.mark.parametrize(
    ("of_node", "of_volume", "fits"),
    [
        pytest.param({ZONE: "a"}, {ZONE: "a"}, True, id="same-zone"),
        pytest.param({ZONE: "b"}, {ZONE: "a"}, False, id="other-zone"),
        pytest.param({ZONE: "b"}, {ZONE: "a__b"}, True, id="one-of-two-zones"),
        pytest.param({"site": "s1"}, {ZONE: "a"}, True, id="cluster-without-zones"),
        pytest.param({REGION: "r"}, {ZONE: "a"}, False, id="node-has-region-only"),
        pytest.param({ZONE: "a"}, {OLD_ZONE: "a"}, True, id="old-label-of-the-volume"),
        pytest.param({OLD_ZONE: "a"}, {ZONE: "a"}, False, id="old-label-of-the-node"),
        pytest.param({ZONE: "a", REGION: "r"}, {ZONE: "a", REGION: "q"}, False, id="other-region"),
    ],
)
def test_zones(of_node: dict[str, str], of_volume: dict[str, str], fits: bool) -> None:
    found = codes([claim(), volume(labels=of_volume)], labels=of_node)
    assert found == (set() if fits else {FitCode.VOLUME_ZONE})


STATIC: dict[str, Any] = {"storageClassName": "fast"}
WAITING = claim(volume="", kind="fast", phase="Pending")
NO_PROVISIONER = "kubernetes.io/no-provisioner"
SENT = "volume.kubernetes.io/selected-node"


@pytest.mark.parametrize(
    ("objects", "fits"),
    [
        pytest.param([WAITING, storage_class()], True, id="provisioned-anywhere"),
        pytest.param([WAITING, storage_class(sites=["s1"])], True, id="provisioned-here"),
        pytest.param([WAITING, storage_class(sites=["s2"])], False, id="provisioned-elsewhere"),
        pytest.param([WAITING, storage_class(provisioner=NO_PROVISIONER)], False, id="nothing-there"),
        pytest.param([WAITING, storage_class(provisioner=NO_PROVISIONER), volume(**STATIC)], True, id="one-is-there"),
        pytest.param(
            [WAITING, storage_class(provisioner=NO_PROVISIONER), volume(sites=["s2"], **STATIC)],
            False,
            id="one-is-elsewhere",
        ),
        pytest.param(
            [WAITING, storage_class(provisioner=NO_PROVISIONER), volume(capacity={"storage": "1Mi"}, **STATIC)],
            False,
            id="one-is-too-small",
        ),
        pytest.param(
            [WAITING, storage_class(provisioner=NO_PROVISIONER), volume(claimRef={"name": "else"}, **STATIC)],
            False,
            id="one-is-taken",
        ),
        pytest.param(
            [WAITING, storage_class(provisioner=NO_PROVISIONER), volume(volumeMode="Block", **STATIC)],
            False,
            id="one-is-a-block-device",
        ),
        pytest.param(
            [claim(volume="", kind="fast", annotations={SENT: "a"}), storage_class()], True, id="sent-here-already"
        ),
        pytest.param(
            [claim(volume="", kind="fast", annotations={SENT: "b"}), storage_class()], False, id="sent-elsewhere"
        ),
    ],
)
def test_claims_that_wait_for_their_pod(objects: list[Any], fits: bool) -> None:
    assert codes(objects) == (set() if fits else {FitCode.VOLUME_AFFINITY})


def test_two_claims_cannot_have_one_volume() -> None:
    two = [claim(name, "", kind="fast") for name in ("data", "more")]
    kind = storage_class(provisioner=NO_PROVISIONER)
    pod = build.pod("x", spec=mounting("data", "more"))
    assert codes([*two, kind, volume(**STATIC)], pod) == {FitCode.VOLUME_AFFINITY}
    assert codes([*two, kind, volume(**STATIC), volume("w", **STATIC)], pod) == set()


def csi_node(count: int | None) -> Any:
    allocatable = {} if count is None else {"allocatable": {"count": count}}
    return build.thing("CSINode", "a", "", spec={"drivers": [{"name": DRIVER, "nodeID": "a", **allocatable}]})


@pytest.mark.parametrize(
    ("count", "held", "fits"),
    [
        pytest.param(2, ["other"], True, id="room-for-one-more"),
        pytest.param(1, ["other"], False, id="full"),
        pytest.param(1, ["data"], True, id="the-volume-is-attached-already"),
        pytest.param(None, ["other"], True, id="no-limit"),
        pytest.param(2, ["other", "third"], False, id="two-of-one-pod"),
    ],
)
def test_attach_limits(count: int | None, held: list[str], fits: bool) -> None:
    names = ("data", "other", "third")
    made = [it for name in names for it in (claim(name, f"v-{name}"), volume(f"v-{name}", csi=True))]
    there = build.pod("y", on="a", spec=mounting(*held))
    assert codes([*made, csi_node(count), there]) == (set() if fits else {FitCode.VOLUME_LIMIT})


def test_a_volume_that_is_yet_to_be_made_counts_too() -> None:
    made = [WAITING, storage_class(), claim("other", "v"), volume(csi=True), csi_node(1)]
    assert codes([*made, build.pod("y", on="a", spec=mounting("other"))]) == {FitCode.VOLUME_LIMIT}


ONLY_ONE: dict[str, Any] = {"modes": ["ReadWriteOncePod"]}


@pytest.mark.parametrize(
    ("more", "held", "fits"),
    [
        pytest.param(ONLY_ONE, "data", False, id="in-use"),
        pytest.param(ONLY_ONE, "other", True, id="another-claim-in-use"),
        pytest.param({}, "data", True, id="read-write-once-is-for-nodes"),
    ],
)
def test_claims_for_one_pod(more: dict[str, Any], held: str, fits: bool) -> None:
    there = build.pod("y", on="b", spec=mounting(held))
    found = codes([claim(**more), volume(), build.node("b"), there])
    assert found == (set() if fits else {FitCode.VOLUME_IN_USE})


def test_a_pod_that_was_taken_gives_up_its_claim() -> None:
    pod = build.pod("x", on="b", spec=mounting("data"))
    picture = Picture(build.state(build.node("a"), build.node("b"), claim(**ONLY_ONE), volume(), pod))
    fitter = Fitter(picture)
    assert [it.code for it in fitter.misfits(pod, "a")] == [FitCode.VOLUME_IN_USE]
    picture.take(pod)
    assert fitter.fits(pod, "a")


@pytest.mark.parametrize(
    ("one", "two", "fits"),
    [
        pytest.param({"iscsi": {"iqn": "q"}}, {"iscsi": {"iqn": "q"}}, False, id="iscsi-same"),
        pytest.param({"iscsi": {"iqn": "q"}}, {"iscsi": {"iqn": "r"}}, True, id="iscsi-other"),
        pytest.param(
            {"iscsi": {"iqn": "q", "readOnly": True}}, {"iscsi": {"iqn": "q", "readOnly": True}}, True, id="both-read"
        ),
        pytest.param({"iscsi": {"iqn": "q", "readOnly": True}}, {"iscsi": {"iqn": "q"}}, False, id="one-writes"),
        pytest.param(
            {"gcePersistentDisk": {"pdName": "d"}}, {"gcePersistentDisk": {"pdName": "d"}}, False, id="gce-same"
        ),
        pytest.param(
            {"awsElasticBlockStore": {"volumeID": "d", "readOnly": True}},
            {"awsElasticBlockStore": {"volumeID": "d", "readOnly": True}},
            False,
            id="aws-even-to-read",
        ),
        pytest.param(
            {"rbd": {"monitors": ["m", "n"], "pool": "p", "image": "i"}},
            {"rbd": {"monitors": ["n"], "pool": "p", "image": "i"}},
            False,
            id="rbd-one-monitor-in-common",
        ),
        pytest.param(
            {"rbd": {"monitors": ["m"], "pool": "p", "image": "i"}},
            {"rbd": {"monitors": ["n"], "pool": "p", "image": "i"}},
            True,
            id="rbd-other-cluster",
        ),
        pytest.param({"iscsi": {"iqn": "d"}}, {"gcePersistentDisk": {"pdName": "d"}}, True, id="other-kind"),
    ],
)
def test_disks_named_in_the_pod(one: dict[str, Any], two: dict[str, Any], fits: bool) -> None:
    there = build.pod("y", on="a", spec={"volumes": [{"name": "d", **one}]})
    pod = build.pod("x", spec={"volumes": [{"name": "d", **two}]})
    assert codes([there], pod) == (set() if fits else {FitCode.VOLUME_IN_USE})


@pytest.mark.parametrize(
    ("sites", "fits"), [pytest.param(["s1"], True, id="can-be-made-here"), pytest.param(["s2"], False, id="cannot")]
)
def test_the_replacement_gets_an_ephemeral_volume_of_its_own(sites: list[str], fits: bool) -> None:
    """Wherever the present one is bound and was sent to: it goes with the pod."""
    pod = build.pod("x", on="b", spec=mounting("scratch", ephemeral=True))
    held = claim("x-scratch", "v", kind="fast", annotations={**BOUND, SENT: "b"})
    objects = [build.node("b"), held, volume(sites=["elsewhere"]), storage_class(sites=sites)]
    assert codes(objects, pod) == (set() if fits else {FitCode.VOLUME_AFFINITY})


def test_the_volume_is_ephemeral_and_bound_while_the_pod_waits() -> None:
    pod = build.pod("x", spec=mounting("scratch", ephemeral=True))
    held = claim("x-scratch", "v", kind="fast")
    assert codes([held, volume(sites=["s2"]), storage_class()], pod) == {FitCode.VOLUME_AFFINITY}
    assert codes([held, volume(sites=["s1"]), storage_class()], pod) == set()


# ---- what it costs


def test_who_uses_a_claim_is_found_once_for_all_nodes_and_again_when_somebody_leaves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = counting.calls(monkeypatch, Picture, "placed")
    user, pod = build.pod("y", on="n0", spec=mounting("data")), build.pod("x", spec=mounting("data"))
    nodes = [build.node(f"n{number}") for number in range(9)]
    state = build.state(*nodes, claim(modes=["ReadWriteOncePod"]), volume(), user, pod)
    picture = Picture(state)
    fitter = Fitter(picture)
    assert not any(fitter.fits(pod, name) for name in state.nodes)
    assert len(asked) == 1
    picture.take(user)
    assert all(fitter.fits(pod, name) for name in state.nodes)
    picture.put(user, "n3")
    assert not fitter.fits(pod, "n5")
    assert len(asked) == 3


def test_volumes_for_a_claim_are_sought_once_for_all_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """One volume in each of nine places; only where it is reached does it count."""
    asked, real = list[Any](), provisioning._suits

    def counted(*args: Any) -> bool:
        asked.append(args)
        return real(*args)

    monkeypatch.setattr(provisioning, "_suits", counted)
    sites = [f"s{number}" for number in range(9)]
    nodes = [build.node(f"on-{site}", labels={"site": site}) for site in (*sites, "none")]
    volumes = [volume(f"v-{site}", sites=[site], **STATIC) for site in sites]
    pod = build.pod("x", spec=mounting("data"))
    state = build.state(*nodes, *volumes, storage_class(provisioner=NO_PROVISIONER), WAITING, pod)
    fitter = Fitter(Picture(state))
    assert [name for name in state.nodes if fitter.fits(pod, name)] == [f"on-{site}" for site in sites]
    assert len(asked) == len(volumes)
