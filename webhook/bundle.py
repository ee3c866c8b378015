"""The CA bundle that API servers verify us by, as published in the webhook configuration. Reads only."""

from collections.abc import Iterator

import msgspec

from cluster.client import Client
from cluster.meta import ObjectMeta, Part
from cluster.reflector import Reflector
from cluster.resources import MUTATINGWEBHOOKCONFIGURATIONS
from cluster.runtime import Runtime
from cluster.source import ClusterSource, Source


class ClientConfig(Part, frozen=True):
    """How API servers reach a webhook."""

    ca_bundle: bytes = b""


class Hook(Part, frozen=True):
    """One webhook of a configuration."""

    client_config: ClientConfig = ClientConfig()


class Configuration(Part, frozen=True):
    """A MutatingWebhookConfiguration, as far as it tells whom to trust."""

    metadata: ObjectMeta = ObjectMeta()
    webhooks: tuple[Hook, ...] = msgspec.field(default=())


class PublishedBundle:
    """What the configuration of a name says about trust, kept up to date."""

    def __init__(self, source: Source[Configuration], name: str, *, runtime: Runtime) -> None:
        self._name = name
        # One object: a list is as good as a stream.
        self._reflector = Reflector(source, lambda _: None, runtime=runtime, streaming=False)

    def start(self) -> None:
        """Begin to watch."""
        self._reflector.start()

    def stop(self) -> None:
        """End the watch."""
        self._reflector.stop(0)

    def problem(self) -> str | None:
        """For readiness."""
        waiting = self._reflector.problem()
        if waiting is not None:
            return waiting
        found = self._reflector.store.get(("", self._name))
        return None if found and found.webhooks else f"there is no webhook in the configuration {self._name}"

    def bundles(self) -> Iterator[bytes]:
        """One for each webhook of the configuration."""
        found = self._reflector.store.get(("", self._name))
        return (hook.client_config.ca_bundle for hook in (found.webhooks if found else ()))


def source(client: Client, name: str) -> ClusterSource[Configuration]:
    """The one configuration and no other."""
    return ClusterSource(client, MUTATINGWEBHOOKCONFIGURATIONS, Configuration, field_selector=f"metadata.name={name}")
