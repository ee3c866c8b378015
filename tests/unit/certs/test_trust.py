"""Which webhooks are ours, and that the patch touches nothing but their caBundle."""

import copy
from datetime import UTC, datetime, timedelta
from pathlib import Path

import jsonpatch
import msgspec
import pytest

from certs import trust, x509
from certs.objects import ClientConfig, Configuration, ServiceReference, Webhook
from certs.settings import Settings
from testbed import pki
from tests.unit.certs.simulated import EPOCH, SETTINGS, authority, configuration, leaf

LOCAL = Settings(extra_names=("127.0.0.1", "0:0:0:0:0:0:0:1", "hook.example.com"))
ONE, TWO = authority(), authority()


def to(url: str = "", service: str = "", namespace: str = SETTINGS.namespace) -> ClientConfig:
    reference = ServiceReference(name=service, namespace=namespace) if service else None
    return ClientConfig(url=url, service=reference)


OURS = {
    "our Service": (to(service=SETTINGS.service), True),
    "same name elsewhere": (to(service=SETTINGS.service, namespace="default"), False),
    "other Service": (to(service="other"), False),
    "address": (to("https://127.0.0.1:9443/mutate"), True),
    "other spelling of an address": (to("https://[::1]:9443/mutate"), True),
    "other spelling of a name": (to("https://Hook.Example.COM/"), True),
    "other address": (to("https://127.0.0.2:9443/mutate"), False),
    "not a URL": (to("https://[::1/"), False),
    "nothing": (to(), False),
}


@pytest.mark.parametrize(("config", "expected"), OURS.values(), ids=OURS.keys())
def test_ours(config: ClientConfig, expected: bool) -> None:
    found = trust.targets(Configuration(webhooks=(Webhook(name="w", client_config=config),)), LOCAL.names)
    assert bool(found) is expected


def test_only_the_bundles_of_our_webhooks_are_touched() -> None:
    found = configuration("other", SETTINGS.service, "third", SETTINGS.service)
    document = msgspec.json.decode(msgspec.json.encode(found))
    document["webhooks"][1]["timeoutSeconds"] = 2
    operations = trust.operations("7", trust.targets(found, SETTINGS.names), (ONE.cert,))
    patched = jsonpatch.apply_patch(copy.deepcopy(document), operations)
    value = msgspec.json.decode(msgspec.json.encode(ONE.cert.pem))
    for index in (1, 3):
        assert patched["webhooks"][index]["clientConfig"].pop("caBundle") == value
    assert patched == document


def test_a_sorted_list_is_noticed() -> None:
    found = configuration("a", SETTINGS.service)
    operations = trust.operations("7", trust.targets(found, SETTINGS.names), (ONE.cert,))
    document = msgspec.json.decode(msgspec.json.encode(found))
    document["webhooks"].reverse()
    with pytest.raises(jsonpatch.JsonPatchTestFailed):
        jsonpatch.apply_patch(document, operations)


def test_a_bundle_counts_only_where_all_webhooks_have_it() -> None:
    both, one = x509.bundle((ONE.cert, TWO.cert)), x509.bundle((ONE.cert,))
    found = (trust.Target(0, "a", both), trust.Target(1, "b", one))
    assert trust.everywhere(found) == {ONE.cert.fingerprint}
    assert trust.everywhere(()) == frozenset()
    assert [target.name for target in trust.wrong(found, (ONE.cert, TWO.cert))] == ["b"]


def test_an_expired_authority_verifies_nothing() -> None:
    target = trust.Target(0, "a", ONE.cert.pem)
    served = leaf(ONE).cert
    assert trust.verifies((target,), served, EPOCH)
    assert not trust.verifies((target,), served, ONE.cert.not_after)
    assert not trust.verifies((target, trust.Target(1, "b", TWO.cert.pem)), served, EPOCH)


@pytest.fixture
def root(tmp_path: Path) -> pki.Authority:
    return pki.authority(tmp_path, "root")


def trusted(*shown: pki.Authority, by: pki.Authority, at: timedelta = timedelta(0)) -> bool:
    """Whether a leaf of the first one is, with all of them shown beside it."""
    leaf_, *rest = x509.read(shown[0].server("leaf").cert.read_bytes() + b"".join(it.bundle() for it in shown))[0]
    bundle = trust.Target(0, "a", by.bundle())
    return trust.verifies((bundle,), leaf_, datetime.now(UTC) + at, shown=rest)


def test_a_leaf_below_other_authorities(root: pki.Authority) -> None:
    upper = root.below("upper")
    lower = upper.below("lower")
    assert trusted(upper, by=root)
    assert trusted(lower, upper, by=root)
    assert trusted(lower, by=upper), "an apiserver does not ask whether it is a root"
    assert not trusted(lower, by=root), "the one between them is not shown"


def test_no_way_leads_to_another_root(root: pki.Authority, tmp_path: Path) -> None:
    assert not trusted(root.below("middle"), by=pki.authority(tmp_path / "other", "root"))


def test_every_authority_of_the_chain_must_be_valid(root: pki.Authority) -> None:
    middle = root.below("middle", days=1)
    assert trusted(middle, by=root)
    assert not trusted(middle, by=root, at=timedelta(days=2))


def test_who_may_not_sign_leads_nowhere(root: pki.Authority) -> None:
    assert not trusted(root.below("claims", ca=False), by=root)
    last = root.below("last", path_length=0)
    assert trusted(last, by=root)
    assert not trusted(last.below("beyond"), last, by=root)


def test_a_leaf_may_be_trusted_by_itself() -> None:
    served = leaf(ONE).cert
    assert trust.verifies((trust.Target(0, "a", served.pem),), served, EPOCH)
