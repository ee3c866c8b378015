"""Every state of the Secrets and the bundle, at every interesting time, and the one step that follows."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import msgspec
import pytest

from certs import keys, plan, x509
from certs.material import Authority, Fault
from certs.objects import Configuration, Secret, World
from certs.plan import Do
from certs.settings import Settings
from certs.x509 import Pair
from tests.unit.certs.simulated import (
    AT_ONCE,
    EPOCH,
    OVERLAP,
    SETTINGS,
    authority,
    ca_secret,
    configuration,
    leaf,
    leaf_secret,
)

OLD, NEW, FOREIGN = authority(), authority(), authority()
L_OLD, L_NEW, L_FOREIGN = leaf(OLD), leaf(NEW), leaf(FOREIGN)
LONG_AGO, JUST_NOW, NOW = EPOCH, EPOCH + timedelta(hours=1), EPOCH + timedelta(hours=1, seconds=1)
SECOND = timedelta(seconds=1)


def seen(*pairs: Pair, at: datetime = LONG_AGO) -> dict[str, datetime]:
    return {pair.cert.fingerprint: at for pair in pairs}


def published(*pairs: Pair) -> Configuration:
    return configuration(bundle=x509.bundle(pair.cert for pair in pairs))


STEADY = Authority(current=OLD, seen=seen(OLD, L_OLD))
STAGED = replace(STEADY, staged=NEW)
PROMOTED = Authority(current=NEW, previous=(OLD.cert,), seen=seen(OLD, NEW, L_OLD))
MOVED = replace(PROMOTED, seen=seen(OLD, NEW, L_NEW))
FRESH = replace(STAGED, seen=seen(OLD, L_OLD) | seen(NEW, at=JUST_NOW))
FRESHLY_MOVED = replace(MOVED, seen=seen(OLD, NEW) | seen(L_NEW, at=JUST_NOW))
WITHOUT_LEAF = replace(STEADY, seen=seen(OLD))
CA_STEADY, LEAF_OLD, HOOKS_OLD, HOOKS_BOTH = (
    ca_secret(STEADY),
    leaf_secret(L_OLD),
    published(OLD),
    published(OLD, NEW),
)


@dataclass(frozen=True, slots=True)
class Case:
    """A world that is steady but for what is given."""

    do: Do | None
    why: str = ""
    ca: Secret | None = CA_STEADY
    leaf: Secret | None = LEAF_OLD
    hooks: Configuration | None = HOOKS_OLD
    now: datetime = NOW
    settings: Settings = SETTINGS
    wait: timedelta | None = None

    def decide(self) -> plan.Decision:
        return plan.decide(World(self.hooks, self.ca, self.leaf), self.settings, self.now)


def changed(secret: Secret, **fields: object) -> Secret:
    return msgspec.structs.replace(secret, **fields)


def with_data(secret: Secret, **data: bytes) -> Secret:
    return changed(secret, data={**secret.data, **{key.replace("_", "."): value for key, value in data.items()}})


RENEWS_LEAF = L_OLD.cert.not_after - x509.lookahead(L_OLD.cert)
RENEWS_CA = OLD.cert.not_after - x509.lookahead(OLD.cert)
LATE_LEAF = leaf(OLD, RENEWS_CA - SECOND)
STEADY_LATE = Authority(current=OLD, seen=seen(OLD, LATE_LEAF))

CASES = {
    # nothing to do
    "steady": Case(None),
    "steady without a configuration": Case(None, ca=ca_secret(replace(STEADY, seen=seen(L_OLD))), hooks=None),
    "configuration of somebody else": Case(
        None, ca=ca_secret(replace(STEADY, seen=seen(L_OLD))), hooks=configuration("other"),
    ),
    "just before renewal of the leaf": Case(None, now=RENEWS_LEAF - SECOND),
    "just before renewal of the CA": Case(
        None, ca=ca_secret(STEADY_LATE), leaf=leaf_secret(LATE_LEAF), now=RENEWS_CA - SECOND,
    ),
    "external by flag, all broken": Case(None, ca=None, leaf=None, settings=replace(SETTINGS, external=True)),
    "external by annotation, expired": Case(
        None,
        leaf=changed(
            LEAF_OLD,
            metadata=msgspec.structs.replace(LEAF_OLD.metadata, annotations={keys.CERT_MANAGER: "webhook"}),
        ),
        now=L_OLD.cert.not_after,
    ),
    # first installation
    "nothing at all": Case(Do.STAGE, Fault.MISSING, ca=None, leaf=None, hooks=None),
    "first CA, no configuration": Case(Do.PROMOTE, ca=ca_secret(Authority(staged=NEW)), leaf=None, hooks=None),
    "first CA, not published": Case(
        Do.PUBLISH, ca=ca_secret(Authority(staged=NEW)), leaf=None, hooks=configuration(),
    ),
    "first CA, published, not noted": Case(
        Do.RECORD, ca=ca_secret(Authority(staged=NEW)), leaf=None, hooks=published(NEW),
    ),
    "first CA, waiting": Case(
        None, ca=ca_secret(Authority(staged=NEW, seen=seen(NEW, at=JUST_NOW))), leaf=None, hooks=published(NEW),
        wait=OVERLAP - SECOND,
    ),
    "first CA, not waiting": Case(
        Do.PROMOTE, ca=ca_secret(Authority(staged=NEW, seen=seen(NEW, at=JUST_NOW))), leaf=None, hooks=published(NEW),
        settings=AT_ONCE,
    ),
    "first leaf": Case(
        Do.SIGN, Fault.MISSING, ca=ca_secret(Authority(current=NEW, seen=seen(NEW, at=JUST_NOW))), leaf=None,
        hooks=published(NEW), settings=AT_ONCE,
    ),
    # the leaf
    "leaf due": Case(Do.SIGN, Fault.RENEWAL, now=RENEWS_LEAF),
    "leaf expired": Case(Do.SIGN, Fault.NOT_VALID_NOW, now=L_OLD.cert.not_after),
    "leaf gone": Case(Do.SIGN, Fault.MISSING, leaf=None, ca=ca_secret(WITHOUT_LEAF)),
    "leaf empty": Case(Do.SIGN, Fault.UNREADABLE, leaf=changed(LEAF_OLD, data={}), ca=ca_secret(WITHOUT_LEAF)),
    "leaf half written": Case(
        Do.SIGN, Fault.UNREADABLE, leaf=with_data(LEAF_OLD, tls_key=L_NEW.key), ca=ca_secret(WITHOUT_LEAF),
    ),
    "leaf of the wrong type": Case(Do.REMOVE, Fault.WRONG_TYPE, leaf=changed(LEAF_OLD, type="Opaque")),
    "leaf immutable": Case(Do.REMOVE, Fault.IMMUTABLE, leaf=changed(LEAF_OLD, immutable=True)),
    "leaf asked for": Case(Do.SIGN, Fault.ASKED, leaf=leaf_secret(L_OLD, rotate="leaf")),
    "leaf asked for in words we do not know": Case(None, leaf=leaf_secret(L_OLD, rotate="now")),
    "a CA in the place of the leaf": Case(
        Do.SIGN, Fault.NOT_A_SERVER, leaf=leaf_secret(OLD), ca=ca_secret(WITHOUT_LEAF),
    ),
    "leaf of a stranger": Case(
        Do.SIGN, Fault.UNTRUSTED, leaf=leaf_secret(L_FOREIGN),
        ca=ca_secret(replace(STEADY, seen=seen(OLD, L_FOREIGN)))
    ),
    # the bundle
    "bundle wiped": Case(Do.RECORD, hooks=configuration()),
    "bundle wiped and noted": Case(
        Do.PUBLISH, hooks=configuration(), ca=ca_secret(replace(STEADY, seen=seen(L_OLD))),
    ),
    "bundle with a stranger": Case(Do.PUBLISH, hooks=published(OLD, FOREIGN)),
    "bundle with junk": Case(Do.PUBLISH, hooks=configuration(bundle=b"junk" + OLD.cert.pem)),
    "one of two webhooks wiped": Case(
        Do.RECORD,
        hooks=msgspec.structs.replace(
            HOOKS_OLD, webhooks=(*HOOKS_OLD.webhooks, *configuration().webhooks)
        ),
    ),
    # rotation of the CA
    "CA due": Case(Do.STAGE, Fault.RENEWAL, ca=ca_secret(STEADY_LATE), leaf=leaf_secret(LATE_LEAF), now=RENEWS_CA),
    "CA asked for": Case(Do.STAGE, Fault.ASKED, ca=ca_secret(STEADY, rotate="ca")),
    "CA asked for on the wrong Secret": Case(None, leaf=leaf_secret(L_OLD, rotate="ca")),
    "staged, not published": Case(Do.PUBLISH, ca=ca_secret(STAGED)),
    "staged, published, not noted": Case(Do.RECORD, ca=ca_secret(STAGED), hooks=HOOKS_BOTH),
    "staged, noted just now": Case(None, ca=ca_secret(FRESH), hooks=HOOKS_BOTH, wait=OVERLAP - SECOND),
    "staged, the overlap is not shortened for a leaf that works": Case(
        None, ca=ca_secret(FRESH), hooks=HOOKS_BOTH, wait=OVERLAP - SECOND, settings=AT_ONCE,
    ),
    "staged, leaf breaks: the old CA signs": Case(
        Do.SIGN, Fault.MISSING, leaf=None, hooks=HOOKS_BOTH,
        ca=ca_secret(replace(STAGED, seen=seen(OLD) | seen(NEW, at=JUST_NOW))),
    ),
    "staged, overlap over": Case(
        Do.PROMOTE, ca=ca_secret(replace(STAGED, seen=seen(OLD, NEW, L_OLD))), hooks=HOOKS_BOTH,
    ),
    "staged, wiped during the overlap": Case(Do.RECORD, ca=ca_secret(FRESH), hooks=HOOKS_OLD),
    "staged, noted in the future": Case(
        Do.RECORD, ca=ca_secret(replace(STAGED, seen=seen(OLD, L_OLD) | seen(NEW, at=NOW + SECOND))),
        hooks=HOOKS_BOTH,
    ),
    "staged, asked again": Case(None, ca=ca_secret(FRESH, rotate="ca"), hooks=HOOKS_BOTH, wait=OVERLAP - SECOND),
    "promoted": Case(Do.SIGN, Fault.OLD_SIGNER, ca=ca_secret(PROMOTED), hooks=HOOKS_BOTH),
    "promoted, restored a moment ago": Case(
        None, ca=ca_secret(replace(PROMOTED, seen=seen(L_OLD) | seen(OLD, NEW, at=JUST_NOW))),
        hooks=HOOKS_BOTH, wait=OVERLAP - SECOND,
    ),
    "leaf moved, not noted": Case(Do.RECORD, ca=ca_secret(PROMOTED), leaf=leaf_secret(L_NEW), hooks=HOOKS_BOTH),
    "leaf moved just now": Case(
        None, ca=ca_secret(FRESHLY_MOVED), leaf=leaf_secret(L_NEW), hooks=HOOKS_BOTH, wait=OVERLAP - SECOND,
    ),
    "leaf moved, overlap over": Case(Do.RETIRE, ca=ca_secret(MOVED), leaf=leaf_secret(L_NEW), hooks=HOOKS_BOTH),
    "old CA retired, still published": Case(
        Do.PUBLISH, ca=ca_secret(Authority(current=NEW, seen=seen(NEW, L_NEW))), leaf=leaf_secret(L_NEW),
        hooks=HOOKS_BOTH,
    ),
    "moved, asked again": Case(
        None, ca=ca_secret(FRESHLY_MOVED, rotate="ca"),
        leaf=leaf_secret(L_NEW), hooks=HOOKS_BOTH, wait=OVERLAP - SECOND,
    ),
    # a damaged Secret of the CA
    "CA gone": Case(Do.STAGE, Fault.MISSING, ca=None),
    "CA empty": Case(Do.STAGE, Fault.UNREADABLE, ca=changed(CA_STEADY, data={})),
    "CA expired": Case(Do.STAGE, Fault.NOT_VALID_NOW, now=OLD.cert.not_after),
    "CA that may not sign": Case(Do.STAGE, Fault.NOT_A_CA, ca=ca_secret(Authority(current=L_OLD))),
    "CA half written": Case(Do.STAGE, Fault.UNREADABLE, ca=with_data(CA_STEADY, ca_key=NEW.key)),
    "CA immutable": Case(Do.REMOVE, Fault.IMMUTABLE, ca=changed(CA_STEADY, immutable=True)),
    "staged CA half written": Case(Do.TIDY, ca=with_data(ca_secret(STAGED), next_key=b"junk")),
    "junk among the previous": Case(Do.TIDY, ca=with_data(CA_STEADY, previous_crt=b"junk")),
    "current lost, staged there": Case(Do.TIDY, Fault.UNREADABLE, ca=with_data(ca_secret(STAGED), ca_key=b"junk")),
    "CA replaced by a stranger's": Case(Do.ADOPT, ca=ca_secret(Authority(current=FOREIGN, seen=seen(OLD, L_OLD)))),
    "stranger's CA beside the adopted": Case(
        Do.PUBLISH, ca=ca_secret(Authority(current=FOREIGN, previous=(OLD.cert,), seen=seen(OLD, L_OLD))),
    ),
    "record destroyed": Case(
        Do.RECORD,
        ca=changed(
            CA_STEADY,
            metadata=msgspec.structs.replace(CA_STEADY.metadata, annotations={keys.SEEN: "[1, {"}),
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_step(case: Case) -> None:
    decision = case.decide()
    step = decision.step
    assert (step.do if step else None) is case.do, step
    if step and case.why:
        assert step.why == case.why
    assert decision.wait_until == (case.now + case.wait if case.wait else None)


def test_every_step_and_every_fault_has_a_case() -> None:
    assert {case.do for case in CASES.values() if case.do} == set(Do)
    assert {case.why for case in CASES.values() if case.why} == set(Fault) - {Fault.WRONG_NAMES}


NAMES = [pytest.param(name, id=name) for name in SETTINGS.names]


@pytest.mark.parametrize("missing", NAMES)
def test_every_name_counts(missing: str) -> None:
    short = leaf(OLD, names=[name for name in SETTINGS.names if name != missing])
    case = Case(Do.SIGN, leaf=leaf_secret(short), ca=ca_secret(replace(STEADY, seen=seen(OLD, short))))
    step = case.decide().step
    assert step
    assert (step.do, step.why) == (Do.SIGN, Fault.WRONG_NAMES)


LOST: dict[str, Callable[[], Secret | None]] = {
    "gone": lambda: None,
    "empty": lambda: changed(ca_secret(STEADY), data={}),
    "key lost": lambda: with_data(ca_secret(STEADY), ca_key=b"junk"),
}


@pytest.mark.parametrize("lost", LOST.values(), ids=LOST.keys())
def test_a_new_ca_after_a_loss_keeps_the_published_one_trusted(lost: Callable[[], Secret | None]) -> None:
    step = Case(Do.STAGE, ca=lost()).decide().step
    assert step
    assert step.authority
    assert step.authority.previous == (OLD.cert,)


def test_an_expired_previous_ca_goes_by_itself() -> None:
    short = authority(life=timedelta(minutes=30))
    both = Authority(current=OLD, previous=(short.cert,), seen=seen(OLD, L_OLD))
    case = Case(Do.TIDY, ca=ca_secret(both), hooks=published(OLD, short))
    step = case.decide().step
    assert step
    assert step.do is Do.TIDY
    assert step.authority
    assert step.authority.trusted == (OLD.cert,)


def test_a_leaf_cut_short_by_its_ca_is_not_signed_again_and_again() -> None:
    ending = authority(life=timedelta(minutes=5))
    cut = leaf(ending)
    now = EPOCH + timedelta(minutes=4, seconds=50)
    state = plan.read(World(published(ending), ca_secret(Authority(current=ending)), leaf_secret(cut)), SETTINGS, now)
    assert plan.why_sign(state, SETTINGS) is None
