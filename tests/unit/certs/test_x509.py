"""What is issued is accepted by a TLS stack that did not make it, and what is not ours is recognised."""

import base64
import ssl
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509 as raw
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from certs import x509
from certs.x509 import Pair
from tests.unit.certs.simulated import EPOCH, SETTINGS, authority, leaf

HOST = "spotshift-webhook.spotshift-system.svc"
NOW = datetime.now(UTC)


def shake_hands(served: Pair, bundle: bytes, host: str, folder: Path) -> None:
    """A TLS handshake in memory, verified as strictly as OpenSSL can; SSLError if the client is not content."""
    pair = folder / "served.pem"
    pair.write_bytes(served.cert.pem + served.key)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(pair)
    client = ssl.create_default_context(cadata=bundle.decode())
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = server.wrap_bio(to_server, to_client, server_side=True)
    theirs = client.wrap_bio(to_client, to_server, server_hostname=host)
    done: set[str] = set()
    for _ in range(10):
        for name, end in (("client", theirs), ("server", ours)):
            try:
                end.do_handshake()
                done.add(name)
            except ssl.SSLWantReadError:
                continue
        if done == {"client", "server"}:
            return
    raise AssertionError("the handshake did not end")


@pytest.mark.parametrize("host", SETTINGS.names)
def test_every_name_is_served(host: str, tmp_path: Path) -> None:
    signer = authority(NOW)
    shake_hands(leaf(signer, NOW), signer.cert.pem, host, tmp_path)


def test_addresses_are_served(tmp_path: Path) -> None:
    signer = authority(NOW)
    shake_hands(leaf(signer, NOW, names=(HOST, "127.0.0.1", "::1")), signer.cert.pem, "127.0.0.1", tmp_path)


def test_old_and_new_are_accepted_during_the_overlap(tmp_path: Path) -> None:
    old, new = authority(NOW), authority(NOW)
    bundle = x509.bundle((old.cert, new.cert))
    assert bundle == x509.bundle((new.cert, old.cert, new.cert)), "the order of the bundle does not depend on roles"
    for signer in (old, new):
        shake_hands(leaf(signer, NOW), bundle, HOST, tmp_path)


REFUSED = {
    "another CA": (lambda _: leaf(authority(NOW), NOW), HOST, "unable to get local issuer"),
    "another name": (lambda signer: leaf(signer, NOW), "spotshift-webhook.other.svc", "Hostname mismatch"),
    "expired": (lambda signer: leaf(signer, NOW - timedelta(days=40)), HOST, "certificate has expired"),
    "not yet valid": (lambda signer: leaf(signer, NOW + timedelta(hours=2)), HOST, "not yet valid"),
}


@pytest.mark.parametrize(("make", "host", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_clients_refuse(make: object, host: str, message: str, tmp_path: Path) -> None:
    assert callable(make)
    signer = authority(NOW - timedelta(days=50))
    with pytest.raises(ssl.SSLCertVerificationError, match=message):
        shake_hands(make(signer), signer.cert.pem, host, tmp_path)


def test_a_leaf_cannot_sign(tmp_path: Path) -> None:
    signer = authority(NOW)
    middle = leaf(signer, NOW)
    forged = leaf(middle, NOW)
    assert not x509.signed_by(forged.cert, middle.cert)
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(forged, signer.cert.pem + middle.cert.pem, HOST, tmp_path)


def extension(pair: Pair, kind: type[raw.ExtensionType]) -> raw.Extension[raw.ExtensionType]:
    return pair.cert.parsed.extensions.get_extension_for_class(kind)


def test_shape_of_the_ca() -> None:
    made = authority()
    basic, usage = extension(made, raw.BasicConstraints), extension(made, raw.KeyUsage)
    assert basic.critical
    assert basic.value == raw.BasicConstraints(ca=True, path_length=0)
    assert usage.critical
    assert isinstance(usage.value, raw.KeyUsage)
    assert usage.value.key_cert_sign
    assert not usage.value.digital_signature
    assert made.cert.not_before == EPOCH - x509.BACKDATE
    assert made.cert.not_after == EPOCH + timedelta(days=365)


def test_shape_of_the_leaf() -> None:
    signer = authority()
    made = leaf(signer)
    assert made.cert.names == frozenset(SETTINGS.names)
    assert made.cert.is_server
    assert not made.cert.is_authority
    assert made.cert.not_after == EPOCH + timedelta(days=30)
    ours, above = extension(made, raw.AuthorityKeyIdentifier), extension(signer, raw.SubjectKeyIdentifier)
    assert isinstance(ours.value, raw.AuthorityKeyIdentifier)
    assert isinstance(above.value, raw.SubjectKeyIdentifier)
    assert ours.value.key_identifier == above.value.digest
    key = serialization.load_pem_private_key(made.key, password=None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    assert isinstance(key.curve, ec.SECP256R1)
    assert made.key.startswith(b"-----BEGIN PRIVATE KEY-----"), "PKCS8"


def test_serials_and_subjects_are_random() -> None:
    made = [authority() for _ in range(50)]
    serials = {pair.cert.serial for pair in made}
    assert len(serials) == len({pair.cert.parsed.subject for pair in made}) == 50
    assert max(serials) >= 2**100, "far beyond the 64 bits that are asked for"
    assert min(serials) >= 2**64


def test_a_leaf_does_not_outlive_its_ca() -> None:
    signer = authority(life=timedelta(days=3))
    assert leaf(signer).cert.not_after == signer.cert.not_after


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        pytest.param(timedelta(hours=-1), True, id="first moment"),
        pytest.param(timedelta(hours=-1, seconds=-1), False, id="before"),
        pytest.param(timedelta(days=30, seconds=-1), True, id="last moment"),
        pytest.param(timedelta(days=30), False, id="the end itself"),
    ],
)
def test_valid_takes_the_time(at: timedelta, expected: bool) -> None:
    assert x509.valid(leaf(authority()).cert, EPOCH + at) is expected


def test_renewal_begins_at_two_thirds_with_a_jitter_of_its_own() -> None:
    signer = authority()
    certs = [leaf(signer).cert for _ in range(40)]
    ahead = [x509.lookahead(cert) for cert in certs]
    assert ahead == [x509.lookahead(cert) for cert in certs], "the same certificate always at the same time"
    assert all(timedelta(days=10) <= length <= timedelta(days=11.5) for length in ahead)
    assert len(set(ahead)) > 20


def other_key() -> bytes:
    private = serialization.PrivateFormat.PKCS8
    key = ed25519.Ed25519PrivateKey.generate()
    return key.private_bytes(serialization.Encoding.PEM, private, serialization.NoEncryption())


def unreadable() -> Iterable[tuple[str, bytes, bytes]]:
    one, two = authority(), authority()
    yield "key of another", one.cert.pem, two.key
    yield "no key", one.cert.pem, b""
    yield "half a key", one.cert.pem, one.key[:80]
    yield "key of another kind", one.cert.pem, other_key()
    yield "half a certificate", one.cert.pem[:200], one.key
    yield "no certificate", b"", one.key
    yield "swapped", one.key, one.cert.pem
    yield "not text", b"\xff\x00\xfe", b"\xff\x00"
    yield "not base64", b"-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----\n", one.key


@pytest.mark.parametrize(("cert", "key"), [pytest.param(c, k, id=name) for name, c, k in unreadable()])
def test_what_cannot_be_used_is_none(cert: bytes, key: bytes) -> None:
    assert x509.read_pair(cert, key) is None
    assert x509.read_signer(cert, key) is None


def test_a_leaf_from_elsewhere_may_have_a_key_of_another_kind() -> None:
    """RSA is what others make if nobody asks for anything else. What we sign with is our own."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = raw.Name([raw.NameAttribute(raw.NameOID.COMMON_NAME, HOST)])
    made = (
        raw.CertificateBuilder(name, name, key.public_key(), 7, NOW, NOW + timedelta(days=1))
        .sign(key, hashes.SHA256())
        .public_bytes(serialization.Encoding.PEM)
    )
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    pair = x509.read_pair(made, text)
    assert pair is not None
    assert pair.cert.serial == 7
    assert x509.read_signer(made, text) is None


def test_junk_in_a_bundle_is_noticed_and_skipped() -> None:
    one = authority().cert
    assert x509.read(one.pem) == ((one,), True)
    assert x509.read(b"hello\n" + one.pem) == ((one,), False)
    assert x509.read(one.pem + one.pem[:100] + one.pem)[0] == (one,), "a cut block spoils the block it runs into"


def pem(der: bytes) -> bytes:
    return b"-----BEGIN CERTIFICATE-----\n" + base64.encodebytes(der) + b"-----END CERTIFICATE-----\n"


def odd(old: bytes, new: bytes) -> bytes:
    """A leaf with a part that the library does not understand."""
    made = LEAF.cert.parsed.public_bytes(serialization.Encoding.DER)
    assert made.count(old) >= 1
    return pem(made.replace(old, new, 1))


LEAF = leaf(authority())
VERSION = bytes.fromhex("a0030201")
CURVE = bytes.fromhex("06082a8648ce3d0301")
NAME = bytes((len(HOST),)) + HOST.encode()
ODD = {
    "version 6": (odd(VERSION + b"\x02", VERSION + b"\x05"), 0),
    "an X.400 address among its names": (odd(b"\x82" + NAME, b"\xa3" + NAME), 0),
    "an unknown curve": (odd(CURVE + b"\x07", CURVE + b"\x02"), 1),
}


@pytest.mark.parametrize(("strange", "readable"), ODD.values(), ids=ODD.keys())
def test_an_odd_certificate_does_not_hide_the_others(strange: bytes, readable: int) -> None:
    one = authority().cert
    found, _ = x509.read(strange + one.pem)
    assert (len(found), found[-1]) == (1 + readable, one)
    assert x509.read_pair(strange, LEAF.key) is None
    assert not any(x509.signed_by(cert, one) for cert in found[:-1])


def test_every_complaint_of_the_library_is_known() -> None:
    """Those that derive from Exception itself would end the program."""
    lookups = {raw.AttributeNotFound, raw.ExtensionNotFound}  # raised by questions that are not asked
    raised = {it for it in vars(raw).values() if isinstance(it, type) and issubclass(it, Exception)}
    assert {it for it in raised - lookups if not issubclass(it, x509._BAD)} == set()


def test_keys_do_not_show() -> None:
    made = authority()
    assert "PRIVATE" not in repr(made)
    assert "BEGIN" not in repr(made)
