"""One pass: look, decide, do one step. A world that changed meanwhile is an outcome, not an error.

`settle` runs passes until there is nothing to do now, which is what both the loop and the installation do.
"""

import enum
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from certs import act, objects, plan
from certs.objects import Api, World
from certs.plan import Decision
from certs.settings import Settings
from certs.x509 import Certificate
from cluster import errors

Clock = Callable[[], datetime]

MAX_PASSES = 30
"""Passes without a rest. The longest repair takes nine steps; more of them mean that somebody undoes our work."""


class Outcome(enum.StrEnum):
    """How a pass ended."""

    DONE = "one step was taken; look again"
    LOST = "somebody else was faster; look again"
    IDLE = "nothing to do now"


@dataclass(frozen=True, slots=True)
class Pass:
    """What was seen, decided and done."""

    world: World
    decision: Decision
    outcome: Outcome
    issued: Certificate | None = None


def once(api: Api, settings: Settings, clock: Clock) -> Pass:
    """Raises ApiError when the cluster cannot be read or written; the next pass finds whatever was half done."""
    world = objects.observe(api, ca_secret=settings.ca_secret, leaf_secret=settings.leaf_secret)
    decision = plan.decide(world, settings, clock())
    if decision.step is None:
        return Pass(world, decision, Outcome.IDLE)
    try:
        issued = act.perform(api, world, decision, settings)
    except (errors.Conflict, errors.NotFound):
        return Pass(world, decision, Outcome.LOST)
    return Pass(world, decision, Outcome.DONE, issued)


def settle(api: Api, settings: Settings, clock: Clock, told: Callable[[Pass], None]) -> Pass:
    """Pass after pass until one is idle; each is told about. The last one is returned, idle or not."""
    for _ in range(MAX_PASSES - 1):
        done = once(api, settings, clock)
        told(done)
        if done.outcome is Outcome.IDLE:
            return done
    done = once(api, settings, clock)
    told(done)
    return done
