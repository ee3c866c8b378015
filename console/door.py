"""The way in: log in by kubectl's rules, and say in a sentence what keeps a person from what they asked for.

Both the plugin and anything else that shows the cluster to people come in here. Every ApiError that reaches a person
goes through `told`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cluster import auth, errors
from cluster.client import Client
from cluster.resources import PODMIGRATIONS

AGENT: Final = "kubectl-spotshift"
NOT_INSTALLED: Final = (
    "this cluster knows no PodMigrations: spotshift is not installed in it; "
    "kubectl apply -k manifests/overlays/production does that"
)


class Unusable(Exception):
    """What stops a command; every line is one thing that is wrong."""


@dataclass(frozen=True, slots=True)
class Door:
    """A cluster, as the person who asks may see it."""

    client: Client
    server: str
    namespace: str
    """Of the context, or `default`."""


@contextmanager
def opened(
    environ: Mapping[str, str], home: Path, *, kubeconfig: Path | None, context: str | None, timeout: float
) -> Iterator[Door]:
    """Log in; closed again after the block."""
    try:
        connection = auth.as_kubectl(environ, home, kubeconfig=kubeconfig, context=context)
        client = Client(connection, rate_limit=None, user_agent=AGENT, timeout=timeout)
    except auth.LoginError as wrong:
        raise Unusable(f"{wrong}; use --kubeconfig and --context, or KUBECONFIG") from wrong
    try:
        yield Door(client, connection.server, connection.namespace or "default")
    except errors.ApiError as error:
        late = (
            f"; --request-timeout is {timeout:g}s"
            if isinstance(error, errors.Unreachable) and error.timed_out
            else ""
        )
        raise Unusable(told(error, connection.server) + late) from error
    finally:
        client.close()


def told(error: errors.ApiError, server: str) -> str:
    """What an error means to the person at the terminal."""
    match error:
        case errors.Unreachable():
            return f"the cluster at {server} does not answer: {error.message}"
        case errors.Unauthorized():
            return f"the cluster at {server} does not accept who you are: {error.message}"
        case errors.Forbidden():
            return f"you are not allowed to do this: {error.message}"
        case errors.NotFound():
            return f"not found: {error.message}"
        case errors.Throttled():
            return f"the cluster at {server} is busy, try again in a moment: {error.message}"
        case _:
            return f"the cluster at {server} refused: {error}"


def is_installed(client: Client) -> bool:
    """Whether the server knows PodMigrations. It asks for rights first, so who may not list them cannot tell, and is
    not told that they are missing.
    """
    try:
        next(client.pages(PODMIGRATIONS, page_size=1), None)
    except errors.NotFound:
        return False
    except errors.Forbidden:
        return True
    return True
