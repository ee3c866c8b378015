"""What may be set, with its unit, its default and why that default. Checked as a whole, all mistakes at once."""

import ipaddress
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from policy import durations

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_SECOND: Final = timedelta(seconds=1)


class InvalidSettings(ValueError):
    """Settings that contradict each other; one line for each mistake."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that certs needs to be told."""

    namespace: str = "spotshift-system"
    service: str = "spotshift-webhook"
    """Service in front of the webhook; the apiserver verifies `service.namespace.svc`."""
    configuration: str = "spotshift-webhook"
    """Name of the MutatingWebhookConfiguration."""
    ca_secret: str = "spotshift-ca"  # noqa: S105 - a name
    leaf_secret: str = "spotshift-webhook-tls"  # noqa: S105 - a name
    cluster_domain: str = "cluster.local"
    extra_names: tuple[str, ...] = ()
    """Further DNS names or addresses of the webhook, for apiservers that reach it by URL."""
    ca_life: timedelta = timedelta(days=365)
    leaf_life: timedelta = timedelta(days=30)
    """A stolen key is good for a month at most; at two thirds there are ten days left to notice a failure."""
    overlap: timedelta = timedelta(minutes=2)
    """How long old and new are both in place. The kubelet brings a changed Secret into a pod within 30 to 100 s;
    an apiserver sees a changed configuration within seconds.
    """
    interval: timedelta = timedelta(minutes=1)
    """A look at the clock and the cluster even if nothing was heard; also bounds the effect of a suspended host."""
    at_once: bool = False
    """Do not wait for the overlap while no usable leaf exists: then nothing works that could break."""
    external: bool = False
    """Somebody else makes the certificates: look and report, never write."""

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        mistakes = tuple(_mistakes(self))
        if mistakes:
            raise InvalidSettings("\n".join(mistakes))

    @property
    def host(self) -> str:
        """The name that an apiserver verifies when it calls the Service."""
        return f"{self.service}.{self.namespace}.svc"

    @property
    def names(self) -> tuple[str, ...]:
        """Everything the leaf must be good for."""
        short = (self.service, f"{self.service}.{self.namespace}")
        return (*short, self.host, f"{self.host}.{self.cluster_domain}", *map(canonical, self.extra_names))

    def flat(self) -> dict[str, str | bool]:
        """Every setting as text, for the first line of the log."""
        return {
            "namespace": self.namespace,
            "service": self.service,
            "configuration": self.configuration,
            "caSecret": self.ca_secret,
            "leafSecret": self.leaf_secret,
            "names": " ".join(self.names),
            "caLife": durations.text_of(self.ca_life),
            "leafLife": durations.text_of(self.leaf_life),
            "overlap": durations.text_of(self.overlap),
            "interval": durations.text_of(self.interval),
            "now": self.at_once,
            "external": self.external,
        }


def _mistakes(settings: Settings) -> Iterator[str]:
    for label, value in (
        ("namespace", settings.namespace),
        ("service", settings.service),
        ("configuration", settings.configuration),
        ("ca-secret", settings.ca_secret),
        ("leaf-secret", settings.leaf_secret),
        ("cluster-domain", settings.cluster_domain),
    ):
        if not _is_name(value):
            yield f"{label}: {value!r} is not accepted, use a DNS name such as spotshift-webhook"
    for value in settings.extra_names:
        if not _is_name(value) and not _is_address(value):
            yield f"extra-name: {value!r} is not accepted, use a DNS name or an address such as 127.0.0.1"
    if settings.ca_secret == settings.leaf_secret:
        yield f"ca-secret and leaf-secret are both {settings.ca_secret!r}, use two Secrets"
    if settings.overlap < timedelta(0) or settings.interval < _SECOND:
        yield "overlap must not be negative, and interval at least 1s"
    # A third of the life is left when renewal begins; two overlaps and a failed try must fit into it.
    if settings.leaf_life < max(12 * settings.overlap, _SECOND):
        yield f"leaf-life: use at least twelve times the overlap, {durations.text_of(12 * settings.overlap)}"
    # A CA signs until a third of its life is left, and a leaf must not outlive its CA.
    if settings.ca_life < 3 * settings.leaf_life:
        yield f"ca-life: use at least three times leaf-life, {durations.text_of(3 * settings.leaf_life)}"


def _is_name(value: str) -> bool:
    return len(value) <= 253 and _NAME.fullmatch(value) is not None


def _is_address(value: str) -> bool:
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return False
    return True


def canonical(host: str) -> str:
    """A host as it stands in a certificate; an IPv6 address has many spellings."""
    return str(ipaddress.ip_address(host)) if _is_address(host) else host.lower()
