"""`nodes`: every node with its capacity type, load and state."""

from __future__ import annotations

import argparse

from console import look
from console.ending import Ending
from console.session import Session
from console.views import node_list
from console.views.node_list import Seen


def run(session: Session) -> Ending:
    """Print them."""
    options = session.options
    seen = look.take(session)
    chosen = [it for it in node_list.see(seen) if _is_wanted(it, options)]
    if options.sort != "name":
        chosen.sort(key=lambda it: it.node.load() if options.sort == "load" else len(it.node.pods))
    session.show(node_list.of(chosen, seen), node_list.pages(chosen, seen, wide=session.wide))
    return Ending.INCOMPLETE if seen.assumed else Ending.DONE


def _is_wanted(seen: Seen, options: argparse.Namespace) -> bool:
    if options.capacity and str(seen.node.capacity) != options.capacity:
        return False
    return not options.state or any(str(state) in options.state for state in seen.states)
