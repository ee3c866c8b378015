"""The certificate follows its files: real files, real handshakes."""

import socket
import ssl
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Thread

import pytest
from cryptography import x509

from serving.tls import Certificate
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


@pytest.mark.parametrize("spoil", [_garbage, _foreign_key, _half, _gone])
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


def test_old_protocols_are_refused(mount: Mount, authority: pki.Authority) -> None:
    mount.put(authority.server("leaf"))
    context = Certificate(mount.cert, mount.key, runtime=World().runtime).context
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert served(context, authority, ssl.TLSVersion.TLSv1_2) == "leaf"
