"""The certificate follows its files: real files, real handshakes."""

import base64
import errno
import os
import resource
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Thread

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from serving.tls import Certificate
from telemetry.logs import Logger
from telemetry.metrics import Metric
from testbed import pki
from tests.unit.cluster.surroundings import World


class Mount:
    """A mounted Secret: files that are links into a folder, which is swapped whole."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cert, self.key = folder / "tls.crt", folder / "tls.key"
        self._count = 0

    def swap(self, cert: bytes, key: bytes) -> None:
        self._count += 1
        data = self.folder / f"..{self._count}"
        data.mkdir()
        (data / "tls.crt").write_bytes(cert)
        (data / "tls.key").write_bytes(key)
        (self.folder / "..new").symlink_to(data.name)
        (self.folder / "..new").rename(self.folder / "..data")
        for link in (self.cert, self.key):
            if not link.is_symlink():
                link.symlink_to(Path("..data") / link.name)

    def put(self, pair: pki.Pair) -> None:
        self.swap(pair.cert.read_bytes(), pair.key.read_bytes())


@pytest.fixture
def authority(tmp_path: Path) -> pki.Authority:
    return pki.authority(tmp_path / "pki", "ca")


@pytest.fixture
def mount(tmp_path: Path) -> Mount:
    folder = tmp_path / "mount"
    folder.mkdir()
    return Mount(folder)


def served(context: ssl.SSLContext, ca: pki.Authority, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> str:
    """Shake hands over a socket pair; the name in the certificate that a client was shown and accepted."""
    trusting = ssl.create_default_context(cadata=ca.bundle().decode())
    trusting.maximum_version = version
    left, right = socket.socketpair()
    left.settimeout(10)
    right.settimeout(10)
    failures: list[Exception] = []

    def serve() -> None:
        try:
            context.wrap_socket(left, server_side=True).close()
        except OSError as failure:
            failures.append(failure)
            left.close()

    thread = Thread(target=serve)
    thread.start()
    try:
        with closing(trusting.wrap_socket(right, server_hostname="localhost")) as client:
            shown = client.getpeercert(binary_form=True) or b""
    finally:
        right.close()
        thread.join()
    return x509.load_der_x509_certificate(shown).subject.rfc4514_string().removeprefix("CN=")


def test_a_swapped_secret_is_served_without_a_restart(mount: Mount, authority: pki.Authority) -> None:
    mount.put(authority.server("old"))
    world = World()
    certificate = Certificate(mount.cert, mount.key, runtime=world.runtime)
    assert served(certificate.context, authority) == "old"
    mount.put(authority.server("new"))
    certificate.poll()
    certificate.poll()
    assert served(certificate.context, authority) == "new"
    assert world.events() == ["CERTIFICATE_LOADED", "CERTIFICATE_LOADED"]
    assert world.meter.read(Metric.CERTIFICATE_ERRORS) == 0
    assert world.meter.read(Metric.CERTIFICATE_EXPIRY, certificate="leaf") > datetime.now(UTC).timestamp()


Spoil = Callable[[Mount, pki.Authority], None]


def _garbage(mount: Mount, _: pki.Authority) -> None:
    mount.swap(b"garbage", b"garbage")


def _foreign_key(mount: Mount, authority: pki.Authority) -> None:
    mount.swap(authority.server("one").cert.read_bytes(), authority.server("two").key.read_bytes())


def _half(mount: Mount, authority: pki.Authority) -> None:
    pair = authority.server("half")
    mount.swap(pair.cert.read_bytes()[:200], pair.key.read_bytes())


def _gone(mount: Mount, _: pki.Authority) -> None:
    (mount.folder / "..data").unlink()


def _version_6(mount: Mount, authority: pki.Authority) -> None:
    pair = authority.server("odd")
    mount.swap(odd(pair.cert.read_bytes()), pair.key.read_bytes())


def odd(cert: bytes) -> bytes:
    """The library's complaint about the version of this one is no ValueError."""
    der = x509.load_pem_x509_certificate(cert).public_bytes(serialization.Encoding.DER)
    changed = der.replace(bytes.fromhex("a003020102"), bytes.fromhex("a003020105"), 1)
    return b"-----BEGIN CERTIFICATE-----\n" + base64.encodebytes(changed) + b"-----END CERTIFICATE-----\n"


@pytest.mark.parametrize("spoil", [_garbage, _foreign_key, _half, _gone, _version_6])
def test_what_cannot_be_used_changes_nothing(mount: Mount, authority: pki.Authority, spoil: Spoil) -> None:
    mount.put(authority.server("good"))
    world = World()
    certificate = Certificate(mount.cert, mount.key, runtime=world.runtime)
    spoil(mount, authority)
    for _ in range(3):
        certificate.poll()
    assert served(certificate.context, authority) == "good"
    assert certificate.problem() is None
    assert world.events() == ["CERTIFICATE_LOADED", "CERTIFICATE_REJECTED"]
    assert world.meter.read(Metric.CERTIFICATE_ERRORS) == 1
    mount.put(authority.server("better"))
    certificate.poll()
    assert served(certificate.context, authority) == "better"


@contextmanager
def one_file_left() -> Iterator[None]:
    """No more than one file can be opened at a time."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    room = max(int(it.name) for it in Path("/proc/self/fd").iterdir()) + 20
    resource.setrlimit(resource.RLIMIT_NOFILE, (room, before[1]))
    held: list[int] = []
    try:
        try:
            while True:
                held.append(os.open(os.devnull, os.O_RDONLY))
        except OSError:
            os.close(held.pop())
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        for descriptor in held:
            os.close(descriptor)


def test_a_good_pair_is_tried_again_when_the_machine_was_short_of_something(
    mount: Mount, authority: pki.Authority
) -> None:
    mount.put(authority.server("old"))
    world = World()
    certificate = Certificate(mount.cert, mount.key, runtime=world.runtime)
    mount.put(authority.server("new"))
    with one_file_left():
        for _ in range(3):
            certificate.poll()
    assert served(certificate.context, authority) == "old"
    assert world.events() == ["CERTIFICATE_LOADED", "CERTIFICATE_REJECTED"], "told once"
    assert world.lines[-1]["error"] == "OSError: Too many open files"
    certificate.poll()
    assert served(certificate.context, authority) == "new"


def with_rsa_key(authority: pki.Authority, name: str) -> tuple[bytes, bytes]:
    """A leaf as the authority makes them, but for the kind of its key."""
    made = x509.load_pem_x509_certificate(authority.server(name).cert.read_bytes())
    signer = serialization.load_pem_private_key(authority.pair.key.read_bytes(), password=None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    key = rsa.generate_private_key(65537, 2048)
    builder = x509.CertificateBuilder(made.issuer, made.subject, key.public_key(), made.serial_number)
    builder = builder.not_valid_before(made.not_valid_before_utc).not_valid_after(made.not_valid_after_utc)
    for extension in made.extensions:
        builder = builder.add_extension(extension.value, extension.critical)
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return builder.sign(signer, hashes.SHA256()).public_bytes(serialization.Encoding.PEM), secret


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_nothing_is_left_of_an_old_pair_with_another_kind_of_key(
    mount: Mount, authority: pki.Authority, version: ssl.TLSVersion
) -> None:
    """A context has a place for each kind, and would go on showing the old leaf to whoever likes its kind better."""
    mount.put(authority.server("old"))
    certificate = Certificate(mount.cert, mount.key, runtime=World().runtime)
    mount.swap(*with_rsa_key(authority, "new"))
    certificate.poll()
    assert served(certificate.context, authority, version) == "new"


def test_handshakes_go_on_while_certificates_are_loaded(mount: Mount, authority: pki.Authority) -> None:
    pairs = [authority.server("one"), authority.server("two")]
    mount.put(pairs[0])
    certificate = Certificate(mount.cert, mount.key, runtime=World().runtime)
    shown: list[str] = []
    clients = Thread(target=lambda: shown.extend(served(certificate.context, authority) for _ in range(60)))
    clients.start()
    turns = 0
    while clients.is_alive():
        turns += 1
        mount.put(pairs[turns % 2])
        certificate.poll()
    clients.join()
    assert set(shown) <= {"one", "two"}
    assert len(shown) == 60


def test_without_files_it_starts_and_waits(mount: Mount, authority: pki.Authority) -> None:
    certificate = Certificate(mount.cert, mount.key, runtime=World().runtime)
    assert certificate.problem() == "no certificate is loaded"
    with pytest.raises(OSError, match=r"."):
        served(certificate.context, authority)
    mount.put(authority.server("late"))
    certificate.poll()
    assert served(certificate.context, authority) == "late"


def test_the_thread_follows_the_files(
    mount: Mount, authority: pki.Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    from serving import tls
    from tests.unit.cluster.surroundings import until

    monkeypatch.setattr(tls, "POLL_SECONDS", 0.01)
    mount.put(authority.server("old"))
    world = World()
    certificate = Certificate(mount.cert, mount.key, runtime=world.runtime)
    certificate.start()
    mount.put(authority.server("new"))
    until(lambda: world.events().count("CERTIFICATE_LOADED") == 2, "the new certificate")
    certificate.stop()
    assert served(certificate.context, authority) == "new"


def test_the_thread_goes_on_whatever_happens(
    mount: Mount, authority: pki.Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    from serving import tls
    from tests.unit.cluster.surroundings import until

    def full_once(line: Mapping[str, object]) -> None:
        told.append(str(line["event"]))
        if told[-1] == "CERTIFICATE_LOADED" and told.count("CERTIFICATE_LOADED") == 2:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tls, "POLL_SECONDS", 0.01)
    told: list[str] = []
    world = World()
    log = Logger(full_once, now=world.runtime.wall, strict=True)
    mount.put(authority.server("first"))
    certificate = Certificate(mount.cert, mount.key, runtime=replace(world.runtime, log=log))
    certificate.start()
    mount.put(authority.server("second"))
    until(lambda: "INTERNAL_ERROR" in told, "the failure")
    mount.put(authority.server("third"))
    until(lambda: told[-1] == "CERTIFICATE_LOADED", "the next certificate")
    certificate.stop()
    assert served(certificate.context, authority) == "third"
    assert world.meter.read(Metric.INTERNAL_ERRORS) == 1


@pytest.mark.parametrize(
    ("shift", "ready"),
    [(timedelta(0), True), (timedelta(days=-1), False), (timedelta(days=pki.VALID_DAYS + 1), False)],
    ids=["now", "too early", "too late"],
)
def test_ready_only_while_it_is_valid(mount: Mount, authority: pki.Authority, shift: timedelta, ready: bool) -> None:
    mount.put(authority.server("leaf"))
    runtime = replace(World().runtime, wall=lambda: datetime.now(UTC) + shift)
    certificate = Certificate(mount.cert, mount.key, runtime=runtime)
    assert (certificate.problem() is None) == ready


def test_the_published_bundle_must_verify_it(mount: Mount, authority: pki.Authority, tmp_path: Path) -> None:
    other = pki.authority(tmp_path / "other", "ca")
    mount.put(authority.server("leaf"))
    certificate = Certificate(mount.cert, mount.key, runtime=World().runtime)
    assert certificate.distrusted(authority.bundle()) is None
    assert certificate.distrusted(other.bundle() + authority.bundle()) is None
    assert certificate.distrusted(other.bundle()) is not None
    assert certificate.distrusted(b"") is not None
    assert certificate.distrusted(b"garbage") == "the published bundle cannot be read"


def test_a_bundle_is_read_past_what_cannot_be_read(mount: Mount, authority: pki.Authority) -> None:
    mount.put(authority.server("leaf"))
    certificate = Certificate(mount.cert, mount.key, runtime=World().runtime)
    assert certificate.distrusted(odd(authority.bundle()) + authority.bundle()) is None
    assert certificate.distrusted(odd(authority.bundle())) == "the published bundle cannot be read"


@dataclass(frozen=True)
class Shown:
    """A leaf below other authorities, what its server shows with it, and what clients trust."""

    leaf: pki.Pair
    between: tuple[pki.Authority, ...]
    root: pki.Authority

    def put(self, mount: Mount) -> None:
        chain = b"".join((self.leaf.cert.read_bytes(), *(it.bundle() for it in self.between)))
        mount.swap(chain, self.leaf.key.read_bytes())


def _below(root: pki.Authority) -> Shown:
    middle = root.below("middle")
    return Shown(middle.server("leaf"), (middle,), root)


def _two_below(root: pki.Authority) -> Shown:
    upper = root.below("upper")
    lower = upper.below("lower", path_length=0)
    return Shown(lower.server("leaf"), (upper, lower), root)


def _missing(root: pki.Authority) -> Shown:
    return replace(_below(root), between=())


def _half_missing(root: pki.Authority) -> Shown:
    found = _two_below(root)
    return replace(found, between=found.between[:1])


def _wrong_root(root: pki.Authority) -> Shown:
    return replace(_below(root), root=pki.authority(root.directory / "other", "ca"))


def _no_authority(root: pki.Authority) -> Shown:
    middle = root.below("middle", ca=False)
    return Shown(middle.server("leaf"), (middle,), root)


def _too_deep(root: pki.Authority) -> Shown:
    upper = root.below("upper", path_length=0)
    lower = upper.below("lower")
    return Shown(lower.server("leaf"), (lower, upper), root)


def _trusted_halfway(root: pki.Authority) -> Shown:
    found = _below(root)
    return replace(found, root=found.between[0])


CHAINS: dict[str, tuple[Callable[[pki.Authority], Shown], bool]] = {
    "through one": (_below, True),
    "through two, in no order": (_two_below, True),
    "through none that is shown": (_missing, False),
    "through one that is not shown": (_half_missing, False),
    "to another root of the same name": (_wrong_root, False),
    "through one that may not sign": (_no_authority, False),
    "through more than one of them allows": (_too_deep, False),
}


@pytest.mark.parametrize(("make", "accepted"), CHAINS.values(), ids=CHAINS.keys())
def test_a_leaf_below_other_authorities(
    mount: Mount, authority: pki.Authority, make: Callable[[pki.Authority], Shown], accepted: bool
) -> None:
    shown = make(authority)
    shown.put(mount)
    certificate = Certificate(mount.cert, mount.key, runtime=World().runtime)
    assert (certificate.distrusted(shown.root.bundle()) is None) is accepted
    if accepted:
        assert served(certificate.context, shown.root) == "leaf"
    else:
        with pytest.raises(ssl.SSLCertVerificationError):
            served(certificate.context, shown.root)


def test_the_authority_below_may_be_the_one_that_is_trusted(mount: Mount, authority: pki.Authority) -> None:
    """As for API servers; the TLS library of Python asks for a root."""
    shown = _trusted_halfway(authority)
    shown.put(mount)
    assert Certificate(mount.cert, mount.key, runtime=World().runtime).distrusted(shown.root.bundle()) is None


def test_a_leaf_may_be_trusted_by_itself(mount: Mount, authority: pki.Authority) -> None:
    leaf = authority.server("leaf")
    mount.put(leaf)
    certificate = Certificate(mount.cert, mount.key, runtime=World().runtime)
    assert certificate.distrusted(leaf.cert.read_bytes()) is None


def test_every_authority_of_the_chain_must_be_valid(mount: Mount, authority: pki.Authority) -> None:
    middle = authority.below("middle", days=1)
    Shown(middle.server("leaf"), (middle,), authority).put(mount)
    later = replace(World().runtime, wall=lambda: datetime.now(UTC) + timedelta(days=2))
    certificate = Certificate(mount.cert, mount.key, runtime=later)
    assert certificate.problem() is None
    assert certificate.distrusted(authority.bundle()) is not None


def test_old_protocols_are_refused(mount: Mount, authority: pki.Authority) -> None:
    mount.put(authority.server("leaf"))
    context = Certificate(mount.cert, mount.key, runtime=World().runtime).context
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert served(context, authority, ssl.TLSVersion.TLSv1_2) == "leaf"
