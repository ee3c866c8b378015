"""Whole stories over the simulated cluster: installation, rotation, repair, and the order of the writes."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from certs import act, findings, keys, objects, plan, reconcile, trust, x509
from certs.material import Authority
from certs.objects import Secret
from certs.settings import Settings
from cluster import errors
from testbed import pki
from tests.unit.certs.simulated import (
    AT_ONCE,
    OVERLAP,
    SETTINGS,
    Clock,
    Cluster,
    authority,
    ca_secret,
    configuration,
    installed,
    leaf,
    leaf_secret,
    settle,
)

CA, LEAF = SETTINGS.ca_secret, SETTINGS.leaf_secret
SECOND = timedelta(seconds=1)


def decision(cluster: Cluster, settings: Settings = SETTINGS) -> plan.Decision:
    world = objects.observe(cluster, ca_secret=CA, leaf_secret=LEAF)
    return plan.decide(world, settings, cluster.clock())


def serves(cluster: Cluster) -> bool:
    return findings.unready(decision(cluster)) is None


def test_first_installation_waits_for_the_overlap() -> None:
    cluster = Cluster()
    cluster.configure(configuration())
    assert settle(cluster) == ["STAGE", "PUBLISH", "RECORD"]
    cluster.clock.advance(OVERLAP - SECOND)
    assert settle(cluster) == []
    cluster.clock.advance(SECOND)
    assert settle(cluster) == ["PROMOTE", "SIGN", "RECORD"]
    assert serves(cluster)
    assert decision(cluster).settled


def test_first_installation_at_once() -> None:
    cluster = Cluster()
    cluster.configure(configuration())
    assert settle(cluster, AT_ONCE) == ["STAGE", "PUBLISH", "RECORD", "PROMOTE", "SIGN", "RECORD"]
    assert serves(cluster)


def test_installation_before_the_configuration_exists() -> None:
    cluster = Cluster()
    assert settle(cluster) == ["STAGE", "PROMOTE", "SIGN", "RECORD"]
    cluster.configure(configuration(SETTINGS.service, "other", SETTINGS.service))
    assert settle(cluster) == ["PUBLISH", "RECORD"]
    assert serves(cluster)
    assert cluster.webhooks
    assert [bool(entry.client_config.ca_bundle) for entry in cluster.webhooks.webhooks] == [True, False, True]


def test_rotation_of_the_ca_keeps_its_order() -> None:
    cluster = installed()
    old = cluster.bundle()
    cluster.annotate(CA, keys.ROTATE, "ca")
    assert settle(cluster) == ["STAGE", "PUBLISH", "RECORD"]
    assert old in (cluster.bundle()[: len(old)], cluster.bundle()[-len(old) :]), "old and new"
    assert keys.ROTATE not in cluster.secrets[CA].metadata.annotations, "a wish is granted once"
    cluster.clock.advance(OVERLAP)
    assert settle(cluster) == ["PROMOTE", "SIGN", "RECORD"]
    assert old in (cluster.bundle()[: len(old)], cluster.bundle()[-len(old) :]), "pods may still serve the old leaf"
    cluster.clock.advance(OVERLAP)
    assert settle(cluster) == ["RETIRE", "RECORD", "PUBLISH"]
    assert len(x509.read(cluster.bundle())[0]) == 1
    assert old not in cluster.bundle()
    assert serves(cluster)
    assert decision(cluster).settled


def test_a_year_passes_by_itself() -> None:
    cluster = installed()
    steps: list[str] = []
    end = cluster.clock() + timedelta(days=400)
    while cluster.clock() < end:
        due = decision(cluster).wait_until or cluster.clock() + timedelta(days=2)
        cluster.clock.advance(due - cluster.clock())
        assert serves(cluster)
        steps += settle(cluster)
    assert steps.count("STAGE") == 1
    assert 20 <= steps.count("SIGN") <= 24
    assert len(x509.read(cluster.bundle())[0]) == 1


def test_a_wipe_during_the_overlap_starts_it_again() -> None:
    cluster = installed()
    cluster.annotate(CA, keys.ROTATE, "ca")
    settle(cluster)
    cluster.clock.advance(OVERLAP - SECOND)
    cluster.wipe()
    assert settle(cluster) == ["RECORD", "PUBLISH", "RECORD"]
    cluster.clock.advance(OVERLAP - SECOND)
    assert settle(cluster) == []
    cluster.clock.advance(SECOND)
    assert settle(cluster)[0] == "PROMOTE"


def stranger() -> Authority:
    return Authority(current=authority())


REPAIRS: dict[str, tuple[Callable[[Cluster], object], Sequence[str]]] = {
    "bundle wiped": (lambda c: c.wipe(), ["RECORD", "PUBLISH", "RECORD"]),
    "bundle edited": (lambda c: c.wipe(b"mine"), ["RECORD", "PUBLISH", "RECORD"]),
    "leaf deleted": (lambda c: c.secrets.pop(LEAF), ["RECORD", "SIGN", "RECORD"]),
    "leaf emptied": (lambda c: c.change(LEAF, data={}), ["RECORD", "SIGN", "RECORD"]),
    "leaf of another type": (lambda c: c.change(LEAF, type="Opaque"), ["REMOVE", "RECORD", "SIGN", "RECORD"]),
    "leaf immutable": (lambda c: c.change(LEAF, immutable=True), ["REMOVE", "RECORD", "SIGN", "RECORD"]),
    "leaf of a stranger": (
        lambda c: c.change(LEAF, data=leaf_secret(leaf(authority())).data),
        ["RECORD", "SIGN", "RECORD"],
    ),
    "leaf asked for": (lambda c: c.annotate(LEAF, keys.ROTATE, "leaf"), ["SIGN", "RECORD"]),
}
LOSSES: dict[str, Callable[[Cluster], object]] = {
    "CA deleted": lambda c: c.secrets.pop(CA),
    "CA emptied": lambda c: c.change(CA, data={}),
    "CA immutable": lambda c: c.change(CA, immutable=True),
    "key of the CA lost": lambda c: c.change(CA, data={**c.secrets[CA].data, keys.CURRENT_KEY: b"?"}),
    "CA of a stranger": lambda c: c.change(CA, data=ca_secret(stranger()).data),
    "both deleted": lambda c: c.secrets.clear(),
}


@pytest.mark.parametrize(("damage", "steps"), REPAIRS.values(), ids=REPAIRS.keys())
def test_repaired_at_once(damage: Callable[[Cluster], object], steps: Sequence[str]) -> None:
    cluster = installed()
    damage(cluster)
    assert settle(cluster) == steps
    assert serves(cluster)
    assert decision(cluster).settled


@pytest.mark.parametrize("damage", LOSSES.values(), ids=LOSSES.keys())
def test_a_lost_ca_is_replaced_without_an_interruption(damage: Callable[[Cluster], object]) -> None:
    cluster = installed()
    served = x509.read(cluster.secrets[LEAF].data[keys.LEAF_CERT])[0][0]
    damage(cluster)
    for _ in range(8):
        settle(cluster)
        now = cluster.clock()
        here = cluster.secrets.get(LEAF)
        moved = here and x509.read(here.data[keys.LEAF_CERT])[0][0] != served
        if not moved:
            assert trust.signer(x509.read(cluster.bundle())[0], served, now), "what pods serve is trusted"
        cluster.clock.advance(OVERLAP / 2)
    assert serves(cluster)
    assert decision(cluster).settled
    assert len(x509.read(cluster.bundle())[0]) == 1


def test_external_certificates_are_never_touched() -> None:
    cluster = Cluster()
    cluster.configure(configuration())
    signer = authority()
    cluster.put(LEAF, leaf_secret(leaf(signer, life=timedelta(minutes=1))))
    cluster.annotate(LEAF, keys.CERT_MANAGER, "spotshift-webhook")
    cluster.clock.advance(timedelta(hours=1))
    assert settle(cluster) == []
    assert cluster.history == []


def below_another_authority(folder: Path, *, shown: bool = True) -> Cluster:
    """A leaf that somebody else made below an intermediate CA, whose root is published."""
    root = pki.authority(folder, "root")
    middle = root.below("middle")
    pair = middle.server("leaf", SETTINGS.names)
    chain = pair.cert.read_bytes() + (middle.bundle() if shown else b"")
    cluster = Cluster(clock=Clock(datetime.now(UTC)))
    cluster.configure(configuration(bundle=root.bundle()))
    data = {keys.LEAF_CERT: chain, keys.LEAF_KEY: pair.key.read_bytes()}
    cluster.put(LEAF, Secret(type=keys.LEAF_TYPE, data=data))
    return cluster


@pytest.mark.parametrize("shown", [True, False])
def test_external_certificates_may_come_from_an_intermediate_ca(tmp_path: Path, shown: bool) -> None:
    cluster = below_another_authority(tmp_path, shown=shown)
    cluster.annotate(LEAF, keys.CERT_MANAGER, "spotshift-webhook")
    assert serves(cluster) is shown


def test_a_leaf_of_an_intermediate_ca_is_trusted_until_ours_is_in_place(tmp_path: Path) -> None:
    cluster = below_another_authority(tmp_path)
    served, (root,) = cluster.secrets[LEAF].data[keys.LEAF_CERT], x509.read(cluster.bundle())[0]
    settle(cluster)
    assert cluster.secrets[LEAF].data[keys.LEAF_CERT] == served
    assert root in x509.read(cluster.bundle())[0], "pods still serve a leaf of it"
    assert serves(cluster)
    for _ in range(3):
        cluster.clock.advance(OVERLAP)
        settle(cluster)
    assert root not in x509.read(cluster.bundle())[0]
    assert serves(cluster)


def test_foreign_labels_and_parts_survive() -> None:
    cluster = installed()
    cluster.change(CA, data={**cluster.secrets[CA].data, "notes": b"mine"})
    cluster.annotate(LEAF, "example.com/owner", "me")
    cluster.annotate(LEAF, keys.ROTATE, "leaf")
    cluster.annotate(CA, keys.ROTATE, "ca")
    settle(cluster)
    assert cluster.secrets[CA].data["notes"] == b"mine"
    assert cluster.secrets[LEAF].metadata.annotations["example.com/owner"] == "me"


class Outrun(Cluster):
    """Somebody else writes just before each write of ours, for a while."""

    lead: int = 3

    def create_secret(self, name: str, body: Any) -> None:
        if self.lead:
            self.lead -= 1
            super().create_secret(name, body)
        super().create_secret(name, body)


def test_being_outrun_is_an_outcome() -> None:
    cluster = Outrun()
    cluster.configure(configuration())
    outcomes: list[reconcile.Outcome] = []
    last = reconcile.settle(cluster, AT_ONCE, cluster.clock, lambda done: outcomes.append(done.outcome))
    assert reconcile.Outcome.LOST in outcomes
    assert last.outcome is reconcile.Outcome.IDLE
    assert serves(cluster)


class Undone(Cluster):
    """Somebody else wipes every bundle we publish."""

    def patch_configuration(self, found: Any, operations: Any) -> None:
        super().patch_configuration(found, operations)
        self.wipe()


def test_a_fight_ends_with_a_rest() -> None:
    cluster = Undone()
    cluster.configure(configuration())
    last = reconcile.settle(cluster, AT_ONCE, cluster.clock, lambda _: None)
    assert last.outcome is reconcile.Outcome.DONE
    assert len([write for write in cluster.history if write.what == "publish"]) < reconcile.MAX_PASSES


def test_asking_needs_a_secret() -> None:
    cluster = installed()
    world = objects.observe(cluster, ca_secret=CA, leaf_secret=LEAF)
    act.ask(cluster, world, "leaf")
    assert settle(cluster) == ["SIGN", "RECORD"]
    with pytest.raises(errors.Conflict):
        act.ask(cluster, objects.World(None, None, None), "leaf")
