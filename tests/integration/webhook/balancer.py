"""What a Service is to an API server: one address, and for each new connection a replica that is ready by then."""

import contextlib
import select
import socket
import threading
from collections.abc import Iterator, Sequence

from tests.integration.webhook.serving import Serving


@contextlib.contextmanager
def balanced(replicas: Sequence[Serving]) -> Iterator[str]:
    """The URL of the webhook behind the balancer."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_accept, args=(listener, replicas), daemon=True)
        thread.start()
        yield f"https://127.0.0.1:{listener.getsockname()[1]}/mutate"
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def _accept(listener: socket.socket, replicas: Sequence[Serving]) -> None:
    with contextlib.suppress(OSError):
        while True:
            near = listener.accept()[0]
            threading.Thread(target=_serve, args=(near, replicas), daemon=True).start()


def _serve(near: socket.socket, replicas: Sequence[Serving]) -> None:
    """One connection, until either side ends it."""
    with near:
        ready = next((it for it in replicas if it.get("/readyz")[0] == 200), None)
        if ready is None:
            return
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", ready.port)) as far:
            other = {near: far, far: near}
            while True:
                for source in select.select([near, far], [], [])[0]:
                    chunk = source.recv(65536)
                    if not chunk:
                        return
                    other[source].sendall(chunk)
