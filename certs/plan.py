"""The decision: from the objects as they are and the time to the one next step. Pure; holds every rule of rotation.

A new CA is staged, published beside the old one, and only when it has been in place for the overlap does it sign.
The old CA leaves the bundle only when the leaf of the new one has been in place for the overlap. Each step is one
guarded write, so a crash between two of them leaves a state from which the same rules go on.
"""

import enum
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from certs import material, trust, x509
from certs.material import Authority, CaContent, Fault, LeafContent
from certs.objects import World
from certs.settings import Settings
from certs.trust import Target
from certs.x509 import Certificate


class Do(enum.StrEnum):
    """The steps, in the order in which they are considered."""

    REMOVE = "remove a Secret that cannot be changed"
    STAGE = "make a new CA"
    TIDY = "write the Secret of the CA without what cannot be used"
    ADOPT = "keep trusting the CA of the leaf in use"
    RECORD = "note what is in place and since when"
    PUBLISH = "publish the bundle"
    PROMOTE = "let the new CA sign"
    SIGN = "sign a new leaf"
    RETIRE = "stop trusting the old CA"


@dataclass(frozen=True, slots=True)
class Step:
    """One write. `authority` is what the Secret of the CA should hold, for the steps that write it."""

    do: Do
    why: str
    authority: Authority | None = None
    secret: str = ""
    """Name of the Secret, for REMOVE."""


@dataclass(frozen=True, slots=True)
class State:
    """The objects, read."""

    ca: CaContent
    leaf: LeafContent
    targets: tuple[Target, ...]
    now: datetime

    @property
    def authority(self) -> Authority:
        """The CAs as the Secret has them."""
        return self.ca.authority

    @property
    def leaf_works(self) -> bool:
        """Whether the leaf would be accepted by whoever trusts all our CAs."""
        leaf = self.leaf
        if leaf.pair is None or set(leaf.faults) & _BREAKING:
            return False
        return self.signer(self.authority.trusted) is not None

    def signer(self, authorities: Iterable[Certificate]) -> Certificate | None:
        """The one of these that makes the leaf trusted."""
        pair = self.leaf.pair
        return None if pair is None else trust.signer(authorities, pair.cert, self.now, shown=self.leaf.shown)

    def verified(self, targets: Iterable[Target]) -> bool:
        """Whether an apiserver that calls any of these webhooks accepts the leaf."""
        pair = self.leaf.pair
        return pair is not None and trust.verifies(targets, pair.cert, self.now, shown=self.leaf.shown)


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do now, and if that is nothing, until when something is being waited for."""

    state: State
    step: Step | None = None
    wait_until: datetime | None = None
    external: bool = False
    """Somebody else makes the certificates, so there is never a step."""

    @property
    def settled(self) -> bool:
        """Nothing to do and nothing under way."""
        return self.step is None and self.wait_until is None


_BREAKING = frozenset({Fault.MISSING, Fault.UNREADABLE, Fault.NOT_A_SERVER, Fault.NOT_VALID_NOW, Fault.WRONG_NAMES})


def read(world: World, settings: Settings, now: datetime) -> State:
    """The objects as values. `now` must be read after the objects: what they show happened before it."""
    return State(
        material.read_ca(world.ca, now),
        material.read_leaf(world.leaf, settings.names, now),
        trust.targets(world.configuration, settings.names),
        now,
    )


def decide(world: World, settings: Settings, now: datetime) -> Decision:
    """The first rule that has something to say."""
    state = read(world, settings, now)
    if settings.external or state.leaf.external:
        return Decision(state, external=True)
    waits: list[datetime] = []
    for step in _steps(state, settings, waits):
        return Decision(state, step)
    return Decision(state, wait_until=min(waits) if waits else None)


def _steps(state: State, settings: Settings, waits: list[datetime]) -> Iterator[Step]:
    """Every step that is due, the most urgent first; times that are waited for go to `waits`."""
    yield from _remove(state, settings)
    yield from _replace_lost(state)
    yield from _repair(state)
    yield from _record(state)
    yield from _publish(state)
    yield from _promote(state, settings, waits)
    yield from _sign(state, settings, waits)
    yield from _retire(state, settings, waits)
    yield from _rotate(state)


def _remove(state: State, settings: Settings) -> Iterator[Step]:
    """Type and immutability cannot be changed, so such a Secret is made anew; its pods keep what they mounted."""
    if Fault.IMMUTABLE in state.ca.faults:
        yield Step(Do.REMOVE, Fault.IMMUTABLE, secret=settings.ca_secret)
    for fault in (Fault.WRONG_TYPE, Fault.IMMUTABLE):
        if fault in state.leaf.faults:
            yield Step(Do.REMOVE, fault, secret=settings.leaf_secret)


def _replace_lost(state: State) -> Iterator[Step]:
    """No key is left to sign with. What the apiserver trusts now goes on being trusted until the leaf has moved."""
    if not state.ca.usable:
        kept = material.salvage((target.bundle for target in state.targets), state.now)
        authority = replace(state.authority, previous=tuple(dict.fromkeys((*state.authority.previous, *kept))))
        yield Step(Do.STAGE, state.ca.faults[0], authority)


def _repair(state: State) -> Iterator[Step]:
    if state.ca.untidy:
        why = state.ca.faults[0] if state.ca.faults else Fault.NOT_VALID_NOW
        yield Step(Do.TIDY, why, state.authority)
    if state.leaf.pair and state.signer(state.authority.trusted) is None:
        published = material.salvage((target.bundle for target in state.targets), state.now)
        signer = state.signer(published)
        if signer:
            previous = (*state.authority.previous, signer)
            yield Step(Do.ADOPT, Fault.UNTRUSTED, replace(state.authority, previous=previous))


def _record(state: State) -> Iterator[Step]:
    """Before the bundle is touched, so that a CA that was wiped from it has to serve its time again."""
    present = trust.everywhere(state.targets) & {cert.fingerprint for cert in state.authority.trusted}
    if state.leaf.pair:
        present |= {state.leaf.pair.cert.fingerprint}
    seen = {fingerprint: state.authority.seen.get(fingerprint, state.now) for fingerprint in sorted(present)}
    if seen != dict(state.authority.seen):
        yield Step(Do.RECORD, "something came or went", replace(state.authority, seen=seen))


def _publish(state: State) -> Iterator[Step]:
    wrong = trust.wrong(state.targets, state.authority.trusted)
    if wrong:
        yield Step(Do.PUBLISH, "the bundle differs in " + ", ".join(target.name for target in wrong))


def _promote(state: State, settings: Settings, waits: list[datetime]) -> Iterator[Step]:
    authority = state.authority
    if authority.staged is None:
        return
    ripe = _trusted_from(state, settings, authority.staged.cert.fingerprint)
    if state.now < ripe:
        waits.append(ripe)
        return
    retired = (authority.current.cert,) if authority.current else ()
    after = replace(authority, current=authority.staged, staged=None, previous=(*retired, *authority.previous))
    yield Step(Do.PROMOTE, "the new CA has been published long enough", after)


def _sign(state: State, settings: Settings, waits: list[datetime]) -> Iterator[Step]:
    signer = state.authority.current
    reason = why_sign(state, settings)
    if signer is None or reason is None:
        return
    ripe = _trusted_from(state, settings, signer.cert.fingerprint)
    if state.now >= ripe:
        yield Step(Do.SIGN, reason)
    waits.append(ripe)


def _retire(state: State, settings: Settings, waits: list[datetime]) -> Iterator[Step]:
    """The leaf of the current CA has been in its Secret for the overlap, so no pod serves an older one."""
    authority, leaf = state.authority, state.leaf.pair
    moved = leaf and authority.current and state.leaf_works and x509.signed_by(leaf.cert, authority.current.cert)
    if not authority.previous or not leaf or not moved:
        return
    ripe = authority.seen.get(leaf.cert.fingerprint, state.now) + settings.overlap
    if state.now >= ripe:
        yield Step(Do.RETIRE, "no leaf of it is in use", replace(authority, previous=()))
    waits.append(ripe)


def _rotate(state: State) -> Iterator[Step]:
    """One rotation at a time: not while another one is under way."""
    authority = state.authority
    if authority.current is None or authority.staged or authority.previous:
        return
    if state.ca.asked:
        yield Step(Do.STAGE, Fault.ASKED, authority)
    if not x509.valid(authority.current.cert, state.now + x509.lookahead(authority.current.cert)):
        yield Step(Do.STAGE, Fault.RENEWAL, authority)


def why_sign(state: State, settings: Settings) -> Fault | None:
    """Why the leaf should be replaced by one of the current CA; None if it should not."""
    signer, leaf = state.authority.current, state.leaf.pair
    if state.leaf.faults:
        return state.leaf.faults[0]
    if signer is None or leaf is None or not x509.signed_by(leaf.cert, signer.cert):
        return Fault.OLD_SIGNER if state.leaf_works else Fault.UNTRUSTED
    if state.leaf.asked:
        return Fault.ASKED
    due = not x509.valid(leaf.cert, state.now + x509.lookahead(leaf.cert))
    # A leaf that already lasts as long as its CA does not get better by being signed again.
    gains = min(state.now + settings.leaf_life, signer.cert.not_after) > leaf.cert.not_after
    return Fault.RENEWAL if due and gains else None


def _trusted_from(state: State, settings: Settings, fingerprint: str) -> datetime:
    """When a CA may sign: after the overlap in the bundle, or at once where nobody can be hurt."""
    nobody_calls = not state.targets
    if nobody_calls or (settings.at_once and not state.leaf_works):
        return state.now
    return state.authority.seen.get(fingerprint, state.now) + settings.overlap
