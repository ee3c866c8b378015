"""Keys and certificates of one test bed. They live as long as its folder and protect nothing real."""

import base64
import datetime
import ipaddress
import json
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALID_DAYS = 365
TOKEN_BYTES = 32
_SERVER, _CLIENT = ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH
LOOPBACK = ("localhost", "127.0.0.1")


@dataclass(frozen=True, slots=True)
class User:
    """Who somebody is to the API server."""

    name: str
    group: str = ""


@dataclass(frozen=True, slots=True)
class Pair:
    """Where a certificate and its key are."""

    cert: Path
    key: Path


@dataclass(frozen=True, slots=True)
class Authority:
    """A CA that can issue more certificates into its folder."""

    directory: Path
    name: str

    @property
    def pair(self) -> Pair:
        return _pair(self.directory, self.name)

    def server(self, name: str, names: Iterable[str] = ()) -> Pair:
        """A serving certificate for loopback and the given names or addresses."""
        return self._issue(name, _subject(name), (*LOOPBACK, *names), _SERVER)

    def client(self, name: str, *, user: str, groups: Iterable[str] = ()) -> Pair:
        """A client certificate: the apiserver reads the user from CN and the groups from O."""
        return self._issue(name, _subject(user, groups), (), _CLIENT)

    def below(
        self, name: str, *, ca: bool = True, path_length: int | None = None, days: int = VALID_DAYS
    ) -> "Authority":
        """A CA that this one signs; without `ca` it only claims to be one."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_subject(f"testbed-{name}"), self._subject(), key, days)
        constraints = x509.BasicConstraints(ca=ca, path_length=path_length)
        _write(self.directory, name, key, self._sign(builder.add_extension(constraints, critical=True)))
        return Authority(self.directory, name)

    def bundle(self) -> bytes:
        return self.pair.cert.read_bytes()

    def _issue(self, name: str, subject: x509.Name, names: Iterable[str], usage: x509.ObjectIdentifier) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(subject, self._subject(), key).add_extension(
            x509.ExtendedKeyUsage([usage]), critical=False
        )
        alternatives = [_general_name(text) for text in names]
        if alternatives:
            builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        return _write(self.directory, name, key, self._sign(builder))

    def _subject(self) -> x509.Name:
        return x509.load_pem_x509_certificate(self.bundle()).subject

    def _sign(self, builder: x509.CertificateBuilder) -> x509.Certificate:
        signer = serialization.load_pem_private_key(self.pair.key.read_bytes(), password=None)
        assert isinstance(signer, ec.EllipticCurvePrivateKey)  # noqa: S101 - we made it
        return builder.sign(signer, hashes.SHA256())


def authority(directory: Path, name: str) -> Authority:
    """Create a self-signed CA in `directory`."""
    directory.mkdir(parents=True, exist_ok=True)
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _subject(f"testbed-{name}")
    builder = _builder(subject, subject, key).add_extension(
        x509.BasicConstraints(ca=True, path_length=None), critical=True
    )
    _write(directory, name, key, builder.sign(key, hashes.SHA256()))
    return Authority(directory, name)


def signing_key(directory: Path, name: str) -> Pair:
    """The key pair that signs ServiceAccount tokens: `key` is private, `cert` the public half."""
    key = ec.generate_private_key(ec.SECP256R1())
    pair = Pair(directory / f"{name}.pub", directory / f"{name}.key")
    pair.cert.write_bytes(
        key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    _write_secret(pair.key, _pem(key))
    return pair


def kubeconfig(path: Path, *, server: str, ca: bytes, user: Mapping[str, str]) -> Path:
    """Write a kubeconfig with one cluster, one user and one context named `testbed`."""
    encoded = base64.b64encode(ca).decode()
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "testbed", "cluster": {"server": server, "certificate-authority-data": encoded}}],
        "users": [{"name": "testbed", "user": dict(user)}],
        "contexts": [{"name": "testbed", "context": {"cluster": "testbed", "user": "testbed"}}],
        "current-context": "testbed",
    }
    _write_secret(path, json.dumps(document, indent=1).encode())  # JSON is YAML
    return path


def tokens(path: Path, users: Iterable[User]) -> dict[User, str]:
    """Write a token for each user into a file as the API server reads it, and return them."""
    made = {user: secrets.token_urlsafe(TOKEN_BYTES) for user in users}
    lines = (",".join(filter(None, (token, user.name, user.name, user.group))) for user, token in made.items())
    _write_secret(path, "\n".join(lines).encode())
    return made


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, days: int = VALID_DAYS
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(days=days))
    )


def _subject(common_name: str, organisations: Iterable[str] = ()) -> x509.Name:
    names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in organisations]
    return x509.Name([*names, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _general_name(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _write(directory: Path, name: str, key: ec.EllipticCurvePrivateKey, cert: x509.Certificate) -> Pair:
    pair = _pair(directory, name)
    pair.cert.write_bytes(cert.public_bytes(serialization.Encoding.PEM))
    _write_secret(pair.key, _pem(key))
    return pair


def _pair(directory: Path, name: str) -> Pair:
    return Pair(directory / f"{name}.crt", directory / f"{name}.key")


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def _write_secret(path: Path, content: bytes) -> None:
    path.touch(mode=0o600)
    path.write_bytes(content)
