"""Carries out one step: one write, guarded by the version of what the decision was made on. Decides nothing."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from certs import keys, material, trust, x509
from certs.material import Authority
from certs.objects import Api, Secret, World
from certs.plan import Decision, Do, Step
from certs.settings import Settings
from certs.x509 import Certificate
from cluster import errors

LABELS = {
    "app.kubernetes.io/name": "spotshift",
    "app.kubernetes.io/part-of": "spotshift",
    "app.kubernetes.io/component": "certs",
    "app.kubernetes.io/managed-by": "spotshift-certs",
}


def perform(api: Api, world: World, decision: Decision, settings: Settings) -> Certificate | None:
    """Do what was decided; the certificate, if one was issued. A changed world raises Conflict or NotFound."""
    step, now = decision.step, decision.state.now
    if step is None:
        return None
    if step.do is Do.PUBLISH:
        _publish(api, world, decision)
        return None
    if step.do is Do.REMOVE:
        _remove(api, world, step, settings)
        return None
    if step.do is Do.SIGN:
        return _sign(api, world, decision, step, settings)
    if step.do is Do.STAGE:
        return _stage(api, world, step, settings, now)
    _write_ca(api, world, step, step.authority, settings, now)
    return None


def ask(api: Api, world: World, kind: str) -> None:
    """Put a person's wish for a rotation on the Secret it concerns."""
    found = world.ca if kind == "ca" else world.leaf
    if found is None:
        raise errors.Conflict(f"there is no Secret of the {kind} any more")
    api.patch_secret(found, {"metadata": {"annotations": {keys.ROTATE: kind}}})


def _publish(api: Api, world: World, decision: Decision) -> None:
    if world.configuration is None:
        raise errors.NotFound("there is no webhook configuration to publish to")
    state = decision.state
    wrong = trust.wrong(state.targets, state.authority.trusted)
    version = world.configuration.metadata.resource_version
    api.patch_configuration(world.configuration, trust.operations(version, wrong, state.authority.trusted))


def _remove(api: Api, world: World, step: Step, settings: Settings) -> None:
    found = world.ca if step.secret == settings.ca_secret else world.leaf
    if found is not None:
        api.remove_secret(found)


def _stage(api: Api, world: World, step: Step, settings: Settings, now: datetime) -> Certificate:
    pair = x509.issue_authority(settings.service, at=now, life=settings.ca_life)
    authority = replace(step.authority or Authority(), staged=pair)
    _write_ca(api, world, step, authority, settings, now)
    return pair.cert


def _sign(api: Api, world: World, decision: Decision, step: Step, settings: Settings) -> Certificate | None:
    signer = decision.state.authority.current
    if signer is None:
        return None
    now = decision.state.now
    pair = x509.issue_leaf(signer, settings.names, at=now, life=settings.leaf_life)
    data = {keys.LEAF_CERT: pair.cert.pem, keys.LEAF_KEY: pair.key, keys.LEAF_SIGNER: signer.cert.pem}
    annotations = {keys.CAUSE: _cause(step, now), keys.ROTATE: None}
    _write(api, world.leaf, settings.leaf_secret, keys.LEAF_TYPE, data, annotations)
    return pair.cert


def _write_ca(
    api: Api, world: World, step: Step, authority: Authority | None, settings: Settings, now: datetime
) -> None:
    if authority is None:
        return
    annotations: dict[str, str | None] = {keys.SEEN: material.seen_text(authority.seen)}
    if step.do is not Do.RECORD:
        annotations[keys.CAUSE] = _cause(step, now)
    if step.do is Do.STAGE:
        annotations[keys.ROTATE] = None
    _write(api, world.ca, settings.ca_secret, keys.CA_TYPE, material.ca_data(authority), annotations)


def _write(
    api: Api,
    found: Secret | None,
    name: str,
    kind: str,
    data: dict[str, Any],
    annotations: dict[str, Any],
) -> None:
    """Create, or merge our parts and leave everybody else's alone. None removes a part."""
    if found is not None:
        api.patch_secret(found, {"metadata": {"labels": LABELS, "annotations": annotations}, "data": data})
        return
    metadata = {"labels": LABELS, "annotations": {key: text for key, text in annotations.items() if text is not None}}
    content = {key: value for key, value in data.items() if value is not None}
    api.create_secret(name, {"type": kind, "metadata": metadata, "data": content})


def _cause(step: Step, now: datetime) -> str:
    return f"{now.isoformat(timespec='seconds')} {step.do}: {step.why}"
