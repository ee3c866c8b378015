"""The real `objects.Api`: two Secrets and one webhook configuration, by name and through the guarded verbs only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from certs.objects import Configuration, Secret
from certs.settings import Settings
from cluster import errors, resources
from cluster.client import Client
from cluster.meta import PartialObjectMetadata
from cluster.source import ClusterSource

MANAGER = "spotshift-certs"
"""Field manager, so that everybody sees who owns the bundle."""
PATIENCE_SECONDS = 10.0
"""For one request: all three reads and the write of a pass fit well into one interval."""


@dataclass(frozen=True, slots=True)
class Store:
    """Works through one client."""

    client: Client
    settings: Settings

    def configuration(self) -> Configuration | None:
        """The webhook configuration."""
        try:
            return self.client.get(
                resources.MUTATINGWEBHOOKCONFIGURATIONS,
                self.settings.configuration,
                type=Configuration,
                timeout=PATIENCE_SECONDS,
            )
        except errors.NotFound:
            return None

    def secret(self, name: str) -> Secret | None:
        """One Secret."""
        try:
            return self.client.get(
                resources.SECRETS, name, namespace=self.settings.namespace, type=Secret, timeout=PATIENCE_SECONDS
            )
        except errors.NotFound:
            return None

    def create_secret(self, name: str, body: Mapping[str, Any]) -> None:
        """Create; the answer is decoded without its content."""
        metadata = {**body.get("metadata", {}), "name": name}
        try:
            self.client.create(
                resources.SECRETS,
                {"apiVersion": "v1", "kind": "Secret", **body, "metadata": metadata},
                namespace=self.settings.namespace,
                type=PartialObjectMetadata,
                field_manager=MANAGER,
                timeout=PATIENCE_SECONDS,
            )
        except errors.NotFound as absent:
            # Not a race that another look would resolve: the namespace itself is not there.
            raise errors.Invalid(absent.message, status=absent.status, reason=absent.reason) from absent

    def patch_secret(self, found: Secret, body: Mapping[str, Any]) -> None:
        """Merge, guarded by UID and version: a Secret of the same name may be another one by now."""
        identity = {"uid": found.metadata.uid, "resourceVersion": found.metadata.resource_version}
        self.client.merge_patch(
            resources.SECRETS,
            found.metadata.name,
            {**body, "metadata": {**body.get("metadata", {}), **identity}},
            namespace=self.settings.namespace,
            type=PartialObjectMetadata,
            field_manager=MANAGER,
            timeout=PATIENCE_SECONDS,
        )

    def remove_secret(self, found: Secret) -> None:
        """Delete, guarded by UID and version."""
        self.client.delete(
            resources.SECRETS,
            found.metadata.name,
            namespace=self.settings.namespace,
            uid=found.metadata.uid,
            resource_version=found.metadata.resource_version,
            timeout=PATIENCE_SECONDS,
        )

    def patch_configuration(self, found: Configuration, operations: Sequence[Mapping[str, Any]]) -> None:
        """The operations carry their own guard."""
        self.client.json_patch(
            resources.MUTATINGWEBHOOKCONFIGURATIONS,
            found.metadata.name,
            operations,
            type=PartialObjectMetadata,
            field_manager=MANAGER,
            timeout=PATIENCE_SECONDS,
        )


def sources(client: Client, settings: Settings) -> tuple[ClusterSource[PartialObjectMetadata], ...]:
    """What to listen to: metadata of the three objects, one watch each, because rights are given by name."""
    secrets = tuple(
        ClusterSource(
            client,
            resources.SECRETS,
            PartialObjectMetadata,
            namespace=settings.namespace,
            field_selector=f"metadata.name={name}",
            metadata_only=True,
        )
        for name in (settings.ca_secret, settings.leaf_secret)
    )
    configuration = ClusterSource(
        client,
        resources.MUTATINGWEBHOOKCONFIGURATIONS,
        PartialObjectMetadata,
        field_selector=f"metadata.name={settings.configuration}",
        metadata_only=True,
    )
    return (*secrets, configuration)
