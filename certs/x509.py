"""Certificates and keys as values: issue, read, compare. The only module of the product that knows `cryptography`.

Decides nothing about when. What cannot be read is None or left out, never an exception with content in its text.
"""

import functools
import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from cryptography import exceptions, x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

BACKDATE: Final = timedelta(hours=1)
"""Certificates begin to be valid this long before they are made, for clocks that are behind ours."""

_BLOCK: Final = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_USAGES: Final = (
    "digital_signature",
    "content_commitment",
    "key_encipherment",
    "data_encipherment",
    "key_agreement",
    "key_cert_sign",
    "crl_sign",
    "encipher_only",
    "decipher_only",
)
_BAD: Final = (
    ValueError,
    TypeError,
    exceptions.UnsupportedAlgorithm,
    x509.DuplicateExtension,
    x509.InvalidVersion,
    x509.UnsupportedGeneralNameType,
)
"""What the library raises about a certificate or key that it does not understand; half of it has no common base."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """One certificate; equal to another when it is the same one."""

    fingerprint: str
    """SHA-256 in hex."""
    pem: bytes = field(compare=False, repr=False)
    serial: int = field(compare=False)
    not_before: datetime = field(compare=False)
    not_after: datetime = field(compare=False)
    names: frozenset[str] = field(compare=False)
    is_authority: bool = field(compare=False)
    """May sign others: CA:TRUE, and keyCertSign if it says at all what its key is for; apiservers ask no more."""
    path_length: int | None = field(compare=False)
    """How many authorities may stand between it and a leaf; None is any number."""
    is_server: bool = field(compare=False)
    """May be shown by a server: serverAuth and not a CA."""
    parsed: x509.Certificate = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its private key."""

    cert: Certificate
    key: bytes = field(compare=False, repr=False)


def valid(cert: Certificate, at: datetime) -> bool:
    """Whether the certificate is valid at that time; renewal asks the same about a later one."""
    return cert.not_before <= at < cert.not_after


def lookahead(cert: Certificate) -> timedelta:
    """How long before its end a certificate is renewed: a third of its life and up to a twentieth more.

    The serial decides how much more, so that many installations made together do not renew together.
    """
    life = max(cert.not_after - cert.not_before - BACKDATE, timedelta(0))
    return life / 3 + life / 20 * (cert.serial % 1000 / 1000)


def read(text: bytes) -> tuple[tuple[Certificate, ...], bool]:
    """All certificates of a PEM text, and whether there was nothing else in it."""
    blocks = _BLOCK.findall(text)
    found = tuple(cert for cert in map(_parse, blocks) if cert is not None)
    return found, len(found) == len(blocks) and not _BLOCK.sub(b"", text).strip()


def read_pair(cert: bytes, key: bytes) -> Pair | None:
    """The first certificate of a text, if this is its key. Those from elsewhere may have keys of any kind."""
    found, _ = read(cert)
    return Pair(found[0], key) if found and _belongs(key, found[0]) else None


def read_signer(cert: bytes, key: bytes) -> Pair | None:
    """The same for what we sign with, which is a key of our own kind."""
    return read_pair(cert, key) if _load_key(key) is not None else None


@functools.lru_cache(maxsize=256)
def signed_by(cert: Certificate, authority: Certificate) -> bool:
    """Whether the authority's key signed the certificate and the authority may sign."""
    if not authority.is_authority:
        return False
    try:
        cert.parsed.verify_directly_issued_by(authority.parsed)
    except (*_BAD, exceptions.InvalidSignature):
        return False
    return True


def bundle(authorities: Iterable[Certificate]) -> bytes:
    """One text for a set of authorities, the same whatever order they come in."""
    return b"".join(cert.pem for cert in sorted(set(authorities), key=lambda cert: cert.fingerprint))


def issue_authority(name: str, *, at: datetime, life: timedelta) -> Pair:
    """A new CA that may sign leaves and nothing below them. Its subject is its own: verifiers look up by subject."""
    key = ec.generate_private_key(ec.SECP256R1())
    serial = x509.random_serial_number()
    subject = _subject(f"{name[:40]}-ca-{serial:x}"[:63])
    public = key.public_key()
    builder = (
        _builder(subject, subject, public, serial, at)
        .not_valid_after(at + life)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage("key_cert_sign"), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(public), critical=False)
    )
    return _pair(key, builder.sign(key, hashes.SHA256()))


def issue_leaf(authority: Pair, names: Iterable[str], *, at: datetime, life: timedelta) -> Pair:
    """A new serving certificate with a new key; it does not outlive its CA."""
    signer = _load_key(authority.key)
    if signer is None:
        raise ValueError("the key of the CA cannot be used")
    wanted = tuple(names)
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = authority.cert.parsed
    builder = (
        _builder(_subject(wanted[0][:63]), issuer.subject, key.public_key(), x509.random_serial_number(), at)
        .not_valid_after(min(at + life, authority.cert.not_after))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage("digital_signature"), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_general_name(name) for name in wanted]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    return _pair(key, builder.sign(signer, hashes.SHA256()))


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, serial: int, at: datetime
) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
    return builder.serial_number(serial).not_valid_before(at - BACKDATE)


def _pair(key: ec.EllipticCurvePrivateKey, cert: x509.Certificate) -> Pair:
    pkcs8 = serialization.PrivateFormat.PKCS8
    pem = key.private_bytes(serialization.Encoding.PEM, pkcs8, serialization.NoEncryption())
    return Pair(_value(cert), pem)


@functools.lru_cache(maxsize=256)  # every pass reads the same few certificates again; keys are never kept
def _parse(block: bytes) -> Certificate | None:
    try:
        return _value(x509.load_pem_x509_certificate(block))
    except _BAD:
        return None


def _value(cert: x509.Certificate) -> Certificate:
    is_ca, length, usage, server, names = False, None, None, False, frozenset[str]()
    for extension in cert.extensions:
        found = extension.value
        if isinstance(found, x509.BasicConstraints):
            is_ca, length = found.ca, found.path_length
        elif isinstance(found, x509.KeyUsage):
            usage = found
        elif isinstance(found, x509.ExtendedKeyUsage):
            server = ExtendedKeyUsageOID.SERVER_AUTH in found
        elif isinstance(found, x509.SubjectAlternativeName):
            dns, addresses = found.get_values_for_type(x509.DNSName), found.get_values_for_type(x509.IPAddress)
            names = frozenset(dns) | frozenset(map(str, addresses))
    return Certificate(
        fingerprint=cert.fingerprint(hashes.SHA256()).hex(),
        pem=cert.public_bytes(serialization.Encoding.PEM),
        serial=cert.serial_number,
        not_before=cert.not_valid_before_utc,
        not_after=cert.not_valid_after_utc,
        names=names,
        is_authority=is_ca and (usage is None or usage.key_cert_sign),
        path_length=length,
        is_server=server and not is_ca,
        parsed=cert,
    )


def _load_key(pem: bytes) -> ec.EllipticCurvePrivateKey | None:
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except _BAD:
        return None
    return key if isinstance(key, ec.EllipticCurvePrivateKey) and key.curve.name == "secp256r1" else None


def _belongs(key: bytes, cert: Certificate) -> bool:
    try:
        return serialization.load_pem_private_key(key, password=None).public_key() == cert.parsed.public_key()
    except _BAD:  # a certificate can be read although its key is of a kind that nobody knows
        return False


def _usage(chosen: str) -> x509.KeyUsage:
    return x509.KeyUsage(**{name: name == chosen for name in _USAGES})


def _subject(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _general_name(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)
