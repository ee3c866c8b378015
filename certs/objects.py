"""The two kinds of object that certs works on, as far as it reads them, and the door through which it does.

`Api` is the seam: `certs.store` is the real one, tests have one with the same rules in memory.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from cluster.meta import ObjectMeta, Part


class Secret(Part, frozen=True):
    """A Secret. Whoever prints it sees the names of its parts."""

    metadata: ObjectMeta = ObjectMeta()
    type: str = ""
    immutable: bool = False
    data: Mapping[str, bytes] = {}

    def __repr__(self) -> str:
        """Never the content."""
        return f"Secret({self.metadata.name!r}, {self.type!r}, {sorted(self.data)})"


class ServiceReference(Part, frozen=True):
    """Where a webhook inside the cluster is."""

    name: str = ""
    namespace: str = ""


class ClientConfig(Part, frozen=True):
    """How the apiserver reaches one webhook and whom it trusts there."""

    ca_bundle: bytes = b""
    service: ServiceReference | None = None
    url: str = ""


class Webhook(Part, frozen=True):
    """One entry of a configuration."""

    name: str = ""
    client_config: ClientConfig = ClientConfig()


class Configuration(Part, frozen=True):
    """A MutatingWebhookConfiguration."""

    metadata: ObjectMeta = ObjectMeta()
    webhooks: tuple[Webhook, ...] = ()


@dataclass(frozen=True, slots=True)
class World:
    """The three objects as they were found; None where there is none."""

    configuration: Configuration | None
    ca: Secret | None
    leaf: Secret | None


class Api(Protocol):
    """What certs may do to a cluster. Every method raises `cluster.errors.ApiError` and nothing else."""

    def configuration(self) -> Configuration | None:
        """The webhook configuration."""

    def secret(self, name: str) -> Secret | None:
        """One of the two Secrets."""

    def create_secret(self, name: str, body: Mapping[str, Any]) -> None:
        """Create; AlreadyExists if somebody was faster."""

    def patch_secret(self, found: Secret, body: Mapping[str, Any]) -> None:
        """Merge into the Secret if it is still as found, else Conflict or NotFound."""

    def remove_secret(self, found: Secret) -> None:
        """Delete the Secret if it is still as found, else Conflict or NotFound."""

    def patch_configuration(self, found: Configuration, operations: Sequence[Mapping[str, Any]]) -> None:
        """Apply JSON patch operations if the configuration is still as found, else Conflict or NotFound."""


def observe(api: Api, *, ca_secret: str, leaf_secret: str) -> World:
    """Read all three, the configuration first.

    The order matters: a CA is in its Secret before it is in the configuration, so Secrets read after the
    configuration explain everything that is in it. A write to the configuration that was decided on them fails if
    anybody wrote to it since.
    """
    configuration = api.configuration()
    ca = api.secret(ca_secret)
    return World(configuration, ca, api.secret(leaf_secret))
