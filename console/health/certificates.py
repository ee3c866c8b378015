"""Whether the certificates of the webhook are good, and trusted: the certs program's own findings."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from certs import findings, objects, plan, store
from certs.settings import Settings
from cluster import errors
from cluster.client import Client
from console import ages
from console.health.finding import Finding, Level
from policy import names

CHECK: Final = "certificates"


def check(client: Client, namespace: str, now: datetime) -> Iterator[Finding]:
    """Reads two Secrets; nothing of their keys is kept or shown."""
    settings = Settings(namespace=namespace)
    try:
        world = objects.observe(
            store.Store(client, settings), ca_secret=settings.ca_secret, leaf_secret=settings.leaf_secret
        )
    except errors.Forbidden as denied:
        yield Finding(CHECK, Level.UNKNOWN, denied.message)
        return
    decision = plan.decide(world, settings, now)
    found = findings.findings(world, decision, settings)
    advice = f"kubectl -n {namespace} logs deployment/{names.CERTS}; docs/certificates.md has every state"
    yield from (Finding(CHECK, Level.FAILED, str(it), advice) for it in found)
    if not found:
        lives = ", ".join(
            f"{role} for {ages.length(cert.not_after - now)}" for role, cert in findings.certificates(decision)
        )
        yield Finding(CHECK, Level.OK, f"valid and trusted: {lives}")
