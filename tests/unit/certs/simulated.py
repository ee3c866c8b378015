"""A cluster in memory with the apiserver's rules for versions, and builders of what stands in it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import jsonpatch
import msgspec

from certs import keys, reconcile, x509
from certs.material import Authority, ca_data, seen_text
from certs.objects import ClientConfig, Configuration, Secret, ServiceReference, Webhook
from certs.settings import Settings
from certs.x509 import Pair
from cluster import errors
from cluster.meta import ObjectMeta

EPOCH = datetime(2026, 11, 16, 3, 0, 0, tzinfo=UTC)
OVERLAP = timedelta(minutes=2)
SETTINGS = Settings(overlap=OVERLAP)
AT_ONCE = Settings(overlap=OVERLAP, at_once=True)


@dataclass(slots=True)
class Clock:
    """Moves only when told to."""

    now: datetime = EPOCH

    def __call__(self) -> datetime:
        return self.now

    def advance(self, length: timedelta) -> None:
        self.now += length


@dataclass(slots=True)
class Write:
    """One accepted write, with what was in place after it."""

    at: datetime
    what: str
    secrets: Mapping[str, Secret]
    configuration: Configuration | None


@dataclass(slots=True)
class Cluster:
    """Implements `objects.Api`: every object has a version, and a write on an old one conflicts."""

    clock: Clock = field(default_factory=Clock)
    secrets: dict[str, Secret] = field(default_factory=dict)
    webhooks: Configuration | None = None
    history: list[Write] = field(default_factory=list)
    version: int = 100

    def configuration(self) -> Configuration | None:
        return self.webhooks

    def secret(self, name: str) -> Secret | None:
        return self.secrets.get(name)

    def create_secret(self, name: str, body: Mapping[str, Any]) -> None:
        if name in self.secrets:
            raise errors.AlreadyExists(f"secrets {name} already exists", status=409)
        metadata = body["metadata"]
        meta = ObjectMeta(name=name, uid=f"uid-{self.version}", **metadata)
        self.put(name, Secret(metadata=meta, type=body["type"], data=body["data"]))
        self._note(f"create {name}")

    def patch_secret(self, found: Secret, body: Mapping[str, Any]) -> None:
        here = self._same(found)
        if here.immutable and "data" in body:
            raise errors.Invalid("field is immutable when `immutable` is set", status=422)
        metadata = body.get("metadata", {})
        meta = msgspec.structs.replace(
            here.metadata,
            labels=_merged(here.metadata.labels, metadata.get("labels", {})),
            annotations=_merged(here.metadata.annotations, metadata.get("annotations", {})),
        )
        data = _merged(here.data, body.get("data", {}))
        self.put(here.metadata.name, msgspec.structs.replace(here, metadata=meta, data=data))
        self._note(f"patch {here.metadata.name}")

    def remove_secret(self, found: Secret) -> None:
        self._same(found)
        del self.secrets[found.metadata.name]
        self._note(f"remove {found.metadata.name}")

    def patch_configuration(self, found: Configuration, operations: Sequence[Mapping[str, Any]]) -> None:
        if self.webhooks is None:
            raise errors.NotFound("not found", status=404)
        document = msgspec.json.decode(msgspec.json.encode(self.webhooks))
        patched = msgspec.convert(jsonpatch.apply_patch(document, list(operations)), Configuration)
        if patched.metadata.resource_version != self.webhooks.metadata.resource_version:
            raise errors.Conflict("the object has been modified", status=409)
        self.configure(patched)
        self._note("publish")

    # ---- what anybody may do behind the back of certs

    def put(self, name: str, secret: Secret) -> None:
        self.version += 1
        meta = msgspec.structs.replace(
            secret.metadata,
            name=name,
            uid=secret.metadata.uid or f"uid-{self.version}",
            resource_version=str(self.version),
        )
        self.secrets[name] = msgspec.structs.replace(secret, metadata=meta)

    def change(self, name: str, **fields: Any) -> None:
        if name in self.secrets:
            self.put(name, msgspec.structs.replace(self.secrets[name], **fields))

    def drop(self, name: str) -> None:
        self.secrets.pop(name, None)

    def annotate(self, name: str, key: str, value: str) -> None:
        if name not in self.secrets:
            return
        meta = self.secrets[name].metadata
        self.change(name, metadata=msgspec.structs.replace(meta, annotations={**meta.annotations, key: value}))

    def configure(self, configuration: Configuration | None) -> None:
        self.version += 1
        if configuration is not None:
            meta = msgspec.structs.replace(configuration.metadata, resource_version=str(self.version))
            configuration = msgspec.structs.replace(configuration, metadata=meta)
        self.webhooks = configuration

    def wipe(self, bundle: bytes = b"") -> None:
        assert self.webhooks
        entries = (
            msgspec.structs.replace(
                entry, client_config=msgspec.structs.replace(entry.client_config, ca_bundle=bundle)
            )
            for entry in self.webhooks.webhooks
        )
        self.configure(msgspec.structs.replace(self.webhooks, webhooks=tuple(entries)))

    def bundle(self) -> bytes:
        assert self.webhooks
        return self.webhooks.webhooks[0].client_config.ca_bundle

    def _same(self, found: Secret) -> Secret:
        here = self.secrets.get(found.metadata.name)
        if here is None:
            raise errors.NotFound("not found", status=404)
        if here.metadata.resource_version != found.metadata.resource_version:
            raise errors.Conflict("the object has been modified", status=409)
        return here

    def _note(self, what: str) -> None:
        self.history.append(Write(self.clock(), what, dict(self.secrets), self.webhooks))


def configuration(*services: str, bundle: bytes = b"", name: str = SETTINGS.configuration) -> Configuration:
    """One webhook for each service of our namespace; our own service if none is named."""
    entries = tuple(
        Webhook(
            name=f"{index}.{service}.example.com",
            client_config=ClientConfig(
                ca_bundle=bundle, service=ServiceReference(name=service, namespace=SETTINGS.namespace)
            ),
        )
        for index, service in enumerate(services or (SETTINGS.service,))
    )
    return Configuration(metadata=ObjectMeta(name=name, resource_version="7"), webhooks=entries)


def authority(at: datetime = EPOCH, life: timedelta = SETTINGS.ca_life) -> Pair:
    return x509.issue_authority(SETTINGS.service, at=at, life=life)


def leaf(
    signer: Pair, at: datetime = EPOCH, life: timedelta = SETTINGS.leaf_life, names: Iterable[str] = SETTINGS.names
) -> Pair:
    return x509.issue_leaf(signer, names, at=at, life=life)


def ca_secret(content: Authority, **annotations: str) -> Secret:
    data = {key: value for key, value in ca_data(content).items() if value is not None}
    notes = {
        keys.SEEN: seen_text(content.seen),
        **{f"spotshift.dev/{key}": text for key, text in annotations.items()},
    }
    meta = ObjectMeta(name=SETTINGS.ca_secret, uid="u1", resource_version="5", annotations=notes)
    return Secret(metadata=meta, type=keys.CA_TYPE, data=data)


def leaf_secret(pair: Pair, **annotations: str) -> Secret:
    notes = {f"spotshift.dev/{key}": text for key, text in annotations.items()}
    meta = ObjectMeta(name=SETTINGS.leaf_secret, uid="u2", resource_version="6", annotations=notes)
    data = {keys.LEAF_CERT: pair.cert.pem, keys.LEAF_KEY: pair.key}
    return Secret(metadata=meta, type=keys.LEAF_TYPE, data=data)


def settle(cluster: Cluster, settings: Settings = SETTINGS) -> list[str]:
    """Run until idle; the names of the steps taken."""
    taken: list[str] = []

    def told(done: reconcile.Pass) -> None:
        if done.outcome is reconcile.Outcome.DONE and done.decision.step:
            taken.append(done.decision.step.do.name)

    last = reconcile.settle(cluster, settings, cluster.clock, told)
    assert last.outcome is reconcile.Outcome.IDLE, taken
    return taken


def installed(settings: Settings = AT_ONCE) -> Cluster:
    """A cluster some time after its first installation."""
    cluster = Cluster()
    cluster.configure(configuration())
    settle(cluster, settings)
    cluster.clock.advance(2 * OVERLAP)
    cluster.history.clear()
    return cluster


def _merged(here: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**here, **changes}
    return {key: value for key, value in merged.items() if value is not None}
