"""`status`: who leads, what the mode is, the last pass, moves, budgets and rests."""

from __future__ import annotations

from console import look
from console.ending import Ending
from console.session import Session
from console.views import overview


def run(session: Session) -> Ending:
    """Print it."""
    seen = look.take(session)
    told = overview.of(seen)
    session.show(told, overview.pages(told, session.now, wide=session.wide))
    if not seen.installed:
        session.warn("spotshift is not installed in this cluster; what is shown is the cluster and the defaults")
        return Ending.FAILED
    return Ending.INCOMPLETE if seen.assumed else Ending.DONE
