"""Reading Secrets: what is kept, what is not, and that nothing secret shows."""

from datetime import timedelta

import msgspec

from certs import keys, material
from certs.material import Authority, Fault
from certs.objects import Secret
from cluster.meta import ObjectMeta
from tests.unit.certs.simulated import EPOCH, SETTINGS, authority, ca_secret, leaf, leaf_secret

OLD, NEW = authority(), authority()
FULL = Authority(current=NEW, staged=authority(), previous=(OLD.cert,), seen={NEW.cert.fingerprint: EPOCH})


def test_what_is_written_is_read_back() -> None:
    found = material.read_ca(ca_secret(FULL), EPOCH)
    assert found == material.CaContent(FULL)
    assert found.usable


def test_other_parts_of_a_secret_are_nobodys_business() -> None:
    secret = ca_secret(FULL)
    crowded = msgspec.structs.replace(secret, data={**secret.data, "notes.txt": b"hands off"})
    assert not material.read_ca(crowded, EPOCH).untidy


def test_a_ca_whose_key_is_lost_is_still_trusted() -> None:
    secret = ca_secret(Authority(current=OLD))
    found = material.read_ca(msgspec.structs.replace(secret, data={keys.CURRENT_CERT: OLD.cert.pem}), EPOCH)
    assert found.authority.trusted == (OLD.cert,)
    assert not found.usable
    assert found.faults == (Fault.UNREADABLE,)


def test_the_record_forgets_the_future_and_what_is_not_a_time() -> None:
    late = EPOCH + timedelta(seconds=1)
    found = material.read_ca(ca_secret(Authority(current=OLD, seen={"a": EPOCH, "b": late})), EPOCH)
    assert found.authority.seen == {"a": EPOCH}
    for text in ("", "x", "[]", '{"a": 1}', '{"a": "2026-11-16"}', "null"):
        secret = Secret(metadata=ObjectMeta(annotations={keys.SEEN: text}), data=ca_secret(FULL).data)
        assert material.read_ca(secret, EPOCH).authority.seen == {}


def test_all_faults_of_a_leaf_are_told() -> None:
    wrong = leaf(OLD, names=("other",))
    secret = msgspec.structs.replace(leaf_secret(wrong), type="Opaque", immutable=True)
    found = material.read_leaf(secret, SETTINGS.names, wrong.cert.not_after)
    assert found.faults == (Fault.WRONG_TYPE, Fault.IMMUTABLE, Fault.NOT_VALID_NOW, Fault.WRONG_NAMES)


def test_a_secret_does_not_show_its_content() -> None:
    shown = repr(ca_secret(FULL)) + repr(leaf_secret(leaf(NEW))) + repr(material.read_ca(ca_secret(FULL), EPOCH))
    assert "ca.key" in shown
    for secret in (OLD.key, NEW.key, NEW.cert.pem):
        assert secret.decode()[40:80] not in shown
        assert repr(secret)[40:80] not in shown
