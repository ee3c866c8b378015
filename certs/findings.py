"""What is wrong, for people and probes: every finding at once, each with a code and a sentence. Pure."""

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from certs import keys, trust, x509
from certs.material import Fault
from certs.objects import Secret, World
from certs.plan import Decision, State
from certs.settings import Settings
from certs.x509 import Certificate


class Where(enum.StrEnum):
    """What a finding is about."""

    CA = "ca"
    LEAF = "leaf"
    BUNDLE = "bundle"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be."""

    where: Where
    code: str
    sentence: str

    def __str__(self) -> str:
        """One line."""
        return f"{self.where}: {self.sentence} ({self.code})"


def findings(world: World, decision: Decision, settings: Settings) -> tuple[Finding, ...]:
    """Everything, most basic first."""
    state = decision.state
    external = decision.external
    found = [] if external else [Finding(Where.CA, fault.name, fault) for fault in state.ca.faults]
    found += _leaf(state, external=external)
    found += _bundle(world, state, settings, external=external)
    found += _wishes(world)
    return tuple(found)


def unready(decision: Decision) -> str | None:
    """For readiness: why calls of the webhook fail, or would as soon as there is a configuration."""
    state = decision.state
    if state.leaf.pair is None or state.leaf.faults:
        return state.leaf.faults[0] if state.leaf.faults else Fault.UNREADABLE
    if not state.verified(state.targets):
        return "the published bundle does not verify the leaf"
    return None


def report(world: World, decision: Decision, settings: Settings) -> Iterator[str]:
    """The state in lines for a terminal."""
    state = decision.state
    for role, cert in certificates(decision):
        yield f"{role:<9} {_life(cert, state.now)}  sha256 {cert.fingerprint[:16]}"
    for target in state.targets:
        count = len(x509.read(target.bundle)[0])
        yield f"bundle    {target.name}: {count} certificate{'' if count == 1 else 's'}"
    for finding in findings(world, decision, settings):
        yield f"problem   {finding}"
    if decision.step:
        yield f"next      {decision.step.do}: {decision.step.why}"
    elif decision.wait_until:
        yield f"next      a rotation is under way, its next step is due at {_text(decision.wait_until)}"


def certificates(decision: Decision) -> Iterator[tuple[str, Certificate]]:
    """Every certificate there is, with its role."""
    authority, leaf = decision.state.authority, decision.state.leaf.pair
    if authority.current:
        yield "ca", authority.current.cert
    if authority.staged:
        yield "next ca", authority.staged.cert
    for cert in authority.previous:
        yield "old ca", cert
    if leaf:
        yield "leaf", leaf.cert


def _leaf(state: State, *, external: bool) -> Iterator[Finding]:
    for fault in state.leaf.faults:
        yield Finding(Where.LEAF, fault.name, fault)
    if state.leaf.pair and not external and state.signer(state.authority.trusted) is None:
        yield Finding(Where.LEAF, Fault.UNTRUSTED.name, Fault.UNTRUSTED)


def _bundle(world: World, state: State, settings: Settings, *, external: bool) -> Iterator[Finding]:
    if world.configuration is None:
        sentence = f"there is no MutatingWebhookConfiguration {settings.configuration}"
        yield Finding(Where.BUNDLE, "CONFIGURATION_MISSING", sentence)
    elif not state.targets:
        yield Finding(Where.BUNDLE, "NO_WEBHOOK", f"no webhook in {settings.configuration} leads to {settings.host}")
    for target in state.targets:
        if not external and trust.wrong((target,), state.authority.trusted):
            yield Finding(Where.BUNDLE, "DIFFERS", f"the caBundle of {target.name} is not what it should be")
        if state.leaf.pair and not state.verified((target,)):
            yield Finding(Where.BUNDLE, "REJECTS_LEAF", f"the caBundle of {target.name} does not verify the leaf")


def _wishes(world: World) -> Iterator[Finding]:
    for where, secret, accepted in ((Where.CA, world.ca, "ca"), (Where.LEAF, world.leaf, "leaf")):
        wish = _wish(secret)
        if wish not in {None, accepted}:
            sentence = f"annotation {keys.ROTATE} is ignored, the only value accepted on this Secret is {accepted}"
            yield Finding(where, "UNKNOWN_WISH", sentence)


def _wish(secret: Secret | None) -> str | None:
    return secret.metadata.annotations.get(keys.ROTATE) if secret else None


def _life(cert: Certificate, now: datetime) -> str:
    left = cert.not_after - now
    day = timedelta(days=1)
    rough = f"{left // day} d" if abs(left) >= 2 * day else f"{left // timedelta(minutes=1)} min"
    return f"until {_text(cert.not_after)} ({rough})"


def _text(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
