"""What the two Secrets hold, read into values: usable parts, and a fault for each part that is not. Pure."""

import enum
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from certs import keys, x509
from certs.objects import Secret
from certs.x509 import Certificate, Pair


class Fault(enum.StrEnum):
    """Why something is replaced or renewed. The value is the sentence for people, the name the code."""

    MISSING = "there is no such Secret"
    WRONG_TYPE = "the Secret has another type than kubernetes.io/tls"
    IMMUTABLE = "the Secret is marked immutable"
    UNREADABLE = "certificate or key is absent, cannot be read, or they do not belong together"
    NOT_A_CA = "the certificate may not sign others"
    NOT_A_SERVER = "the certificate may not be used by a server"
    NOT_VALID_NOW = "the certificate has expired or is not valid yet"
    WRONG_NAMES = "the certificate lacks a name of the webhook"
    UNTRUSTED = "no CA of ours signed the certificate"
    OLD_SIGNER = "the CA that signed the certificate is being replaced"
    RENEWAL = "the certificate has reached its time of renewal"
    ASKED = "somebody asked for it by annotation"


@dataclass(frozen=True, slots=True)
class Authority:
    """The CAs: who signs, who will, and who did."""

    current: Pair | None = None
    """Signs leaves."""
    staged: Pair | None = None
    """Will sign as soon as everybody has trusted it for long enough."""
    previous: tuple[Certificate, ...] = ()
    """Signed leaves that may still be served; trusted, but without keys."""
    seen: Mapping[str, datetime] = field(default_factory=dict)
    """Fingerprint of each certificate in place (CAs in the bundle, the leaf in its Secret) and since when."""

    @property
    def trusted(self) -> tuple[Certificate, ...]:
        """Every CA that belongs into the bundle."""
        pairs = (pair.cert for pair in (self.current, self.staged) if pair)
        return tuple(dict.fromkeys((*pairs, *self.previous)))


@dataclass(frozen=True, slots=True)
class CaContent:
    """The Secret of the CA as read."""

    authority: Authority
    faults: tuple[Fault, ...] = ()
    untidy: bool = False
    """It holds something that is not in `authority`, or in another place."""
    asked: bool = False

    @property
    def usable(self) -> bool:
        """Whether there is a key to sign with, now or soon."""
        return self.authority.current is not None or self.authority.staged is not None


@dataclass(frozen=True, slots=True)
class LeafContent:
    """The Secret of the leaf as read; `pair` is there if certificate and key belong together."""

    pair: Pair | None = None
    faults: tuple[Fault, ...] = ()
    shown: tuple[Certificate, ...] = ()
    """What a server shows beside the leaf: CAs between it and one that is trusted. Never of our making."""
    asked: bool = False
    external: bool = False


def read_ca(secret: Secret | None, now: datetime) -> CaContent:
    """Keep what can be used. A CA whose key is lost is still trusted: a leaf of it may be in use."""
    if secret is None:
        return CaContent(Authority(), (Fault.MISSING,))
    data = secret.data
    current, current_fault = _signer(data, keys.CURRENT_CERT, keys.CURRENT_KEY, now)
    staged, _ = _signer(data, keys.STAGED_CERT, keys.STAGED_KEY, now)
    texts = [data.get(keys.PREVIOUS_CERTS, b"")]
    if current is None:
        texts.insert(0, data.get(keys.CURRENT_CERT, b""))
    signing = {pair.cert for pair in (current, staged) if pair}
    previous = tuple(cert for cert in _authorities(texts, now) if cert not in signing)
    authority = Authority(current, staged, previous, _seen(secret.metadata.annotations.get(keys.SEEN, ""), now))
    stored = {name: data[name] for name in ca_data(authority) if data.get(name)}
    untidy = stored != {name: value for name, value in ca_data(authority).items() if value is not None}
    begun = staged is not None and not data.get(keys.CURRENT_CERT) and not data.get(keys.CURRENT_KEY)
    faults = (current_fault,) if current_fault and not begun else ()
    if secret.immutable:
        faults = (Fault.IMMUTABLE, *faults)
    return CaContent(authority, faults, untidy, secret.metadata.annotations.get(keys.ROTATE) == "ca")


def ca_data(authority: Authority) -> dict[str, bytes | None]:
    """How an authority is written: every data key of ours, None for those that go."""
    current, staged = authority.current, authority.staged
    return {
        keys.CURRENT_CERT: current.cert.pem if current else None,
        keys.CURRENT_KEY: current.key if current else None,
        keys.STAGED_CERT: staged.cert.pem if staged else None,
        keys.STAGED_KEY: staged.key if staged else None,
        keys.PREVIOUS_CERTS: x509.bundle(authority.previous) or None,
    }


def seen_text(seen: Mapping[str, datetime]) -> str:
    """How the record of what was seen is written."""
    return json.dumps({fingerprint: at.astimezone(UTC).isoformat() for fingerprint, at in sorted(seen.items())})


def read_leaf(secret: Secret | None, names: Sequence[str], now: datetime) -> LeafContent:
    """All that is wrong with the leaf in itself; whether anybody trusts it is another question."""
    if secret is None:
        return LeafContent(None, (Fault.MISSING,))
    chain = secret.data.get(keys.LEAF_CERT, b"")
    pair = x509.read_pair(chain, secret.data.get(keys.LEAF_KEY, b""))
    annotations = secret.metadata.annotations
    return LeafContent(
        pair,
        tuple(_leaf_faults(secret, pair, names, now)),
        x509.read(chain)[0][1:],
        asked=annotations.get(keys.ROTATE) == "leaf",
        external=bool(annotations.get(keys.CERT_MANAGER)),
    )


def _leaf_faults(secret: Secret, pair: Pair | None, names: Sequence[str], now: datetime) -> Iterator[Fault]:
    if secret.type != keys.LEAF_TYPE:
        yield Fault.WRONG_TYPE
    if secret.immutable:
        yield Fault.IMMUTABLE
    if pair is None:
        yield Fault.UNREADABLE
        return
    if not pair.cert.is_server:
        yield Fault.NOT_A_SERVER
    if not x509.valid(pair.cert, now):
        yield Fault.NOT_VALID_NOW
    if not pair.cert.names.issuperset(names):
        yield Fault.WRONG_NAMES


def _signer(data: Mapping[str, bytes], cert: str, key: str, now: datetime) -> tuple[Pair | None, Fault | None]:
    pair = x509.read_signer(data.get(cert, b""), data.get(key, b""))
    if pair is None:
        return None, Fault.UNREADABLE
    if not pair.cert.is_authority:
        return None, Fault.NOT_A_CA
    return (pair, None) if x509.valid(pair.cert, now) else (None, Fault.NOT_VALID_NOW)


def _authorities(texts: Iterable[bytes], now: datetime) -> tuple[Certificate, ...]:
    found = (cert for text in texts for cert in x509.read(text)[0])
    return tuple(dict.fromkeys(cert for cert in found if cert.is_authority and x509.valid(cert, now)))


def salvage(bundles: Iterable[bytes], now: datetime) -> tuple[Certificate, ...]:
    """The CAs that a published bundle still makes the apiserver trust."""
    return _authorities(bundles, now)


def _seen(text: str, now: datetime) -> dict[str, datetime]:
    """The record; what cannot be read or lies in the future was not seen."""
    try:
        entries = json.loads(text or "{}").items()
        times = {str(fingerprint): datetime.fromisoformat(at) for fingerprint, at in entries}
        return {fingerprint: at for fingerprint, at in times.items() if at <= now}
    except (ValueError, TypeError, AttributeError):
        return {}
