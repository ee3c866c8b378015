"""`explain pod` and `explain node`: why something is moved or is not, and what is the matter with a node."""

from __future__ import annotations

from console import look
from console.door import Unusable
from console.ending import Ending
from console.look import Look
from console.session import Session
from console.views import node_list, node_story
from descheduler import explanation, tables
from policy.mistakes import names_like


def run(session: Session) -> Ending:
    """Print it."""
    options = session.options
    seen = look.take(session)
    if seen.held:
        session.warn(seen.held)
    (_pod if options.kind == "pod" else _node)(session, seen)
    return Ending.INCOMPLETE if seen.assumed else Ending.DONE


def _pod(session: Session, seen: Look) -> None:
    key = (session.namespace, session.options.name)
    pod = seen.state.pods.get(key)
    if pod is None:
        elsewhere = sorted(namespace for namespace, name in seen.state.pods if name == key[1])
        if not elsewhere:
            look.check_namespace(key[0], seen)
        known = [name for _, name in seen.state.by_namespace.get(key[0], {})]
        hint = f"it is in namespace {', '.join(elsewhere)}, use -n" if elsewhere else names_like(key[1], known)
        raise Unusable(f"there is no running or waiting pod {key[0]}/{key[1]}" + (f" ({hint})" if hint else ""))
    told = explanation.of_pod(pod, seen.gathered, seen.settings, seen.now)
    told["held"] = seen.held or None
    told["assumed"] = list(seen.assumed)
    session.show(told, tables.of_pod(told, verbose=session.wide, more="-o wide"))


def _node(session: Session, seen: Look) -> None:
    name = session.options.name
    found = next((it for it in node_list.see(seen) if it.node.name == name), None)
    if found is None:
        hint = names_like(name, seen.state.nodes)
        raise Unusable(f"there is no node {name}" + (f" ({hint})" if hint else ""))
    told = node_story.of(found, seen)
    session.show(told, node_story.pages(told, found, seen.now))
