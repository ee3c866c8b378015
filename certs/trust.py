"""What the webhook configuration makes the apiserver trust, and the patch that makes it right. Pure.

A webhook is ours if the name that the apiserver verifies there is one of the names on our leaf. Nothing but
`caBundle` of such webhooks is ever touched.
"""

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from certs import settings, x509
from certs.objects import ClientConfig, Configuration
from certs.x509 import Certificate
from cluster import chains


@dataclass(frozen=True, slots=True)
class Target:
    """One webhook of ours."""

    index: int
    name: str
    bundle: bytes


def targets(configuration: Configuration | None, names: Sequence[str]) -> tuple[Target, ...]:
    """The webhooks of ours, in the order of the configuration."""
    if configuration is None:
        return ()
    return tuple(
        Target(index, webhook.name, webhook.client_config.ca_bundle)
        for index, webhook in enumerate(configuration.webhooks)
        if _host(webhook.client_config) in names
    )


def everywhere(found: Iterable[Target]) -> frozenset[str]:
    """Fingerprints of the certificates that are in the bundle of each webhook."""
    bundles = [frozenset(cert.fingerprint for cert in x509.read(target.bundle)[0]) for target in found]
    return frozenset.intersection(*bundles) if bundles else frozenset()


def wrong(found: Iterable[Target], authorities: Iterable[Certificate]) -> tuple[Target, ...]:
    """The webhooks whose bundle is not exactly these authorities."""
    wanted = x509.bundle(authorities)
    return tuple(target for target in found if target.bundle != wanted)


def operations(
    resource_version: str, found: Iterable[Target], authorities: Iterable[Certificate]
) -> list[dict[str, Any]]:
    """JSON patch operations on these webhooks.

    The version makes the server answer Conflict if anything changed since; the names are tested as well, because an
    index means nothing once somebody has sorted the list.
    """
    value = base64.b64encode(x509.bundle(authorities)).decode()
    patch: list[dict[str, Any]] = [{"op": "add", "path": "/metadata/resourceVersion", "value": resource_version}]
    for target in found:
        path = f"/webhooks/{target.index}"
        patch.append({"op": "test", "path": f"{path}/name", "value": target.name})
        patch.append({"op": "add", "path": f"{path}/clientConfig/caBundle", "value": value})
    return patch


def verifies(found: Iterable[Target], leaf: Certificate, now: datetime, *, shown: Sequence[Certificate] = ()) -> bool:
    """Whether an apiserver that calls any of these webhooks accepts the leaf, with what is shown beside it."""
    return all(signer(x509.read(target.bundle)[0], leaf, now, shown=shown) is not None for target in found)


def signer(
    authorities: Iterable[Certificate], leaf: Certificate, now: datetime, *, shown: Sequence[Certificate] = ()
) -> Certificate | None:
    """The one of these authorities that makes the leaf trusted, by itself or through the certificates shown."""

    def signs(authority: Certificate, cert: Certificate, below: int) -> bool:
        room = authority.path_length is None or below <= authority.path_length
        return room and x509.valid(authority, now) and x509.signed_by(cert, authority)

    return chains.anchor(leaf, shown=shown, trusted=tuple(authorities), signs=signs)


def _host(config: ClientConfig) -> str:
    if config.service:
        return f"{config.service.name}.{config.service.namespace}.svc"
    try:
        return settings.canonical(urlsplit(config.url).hostname or "")
    except ValueError:
        return ""
