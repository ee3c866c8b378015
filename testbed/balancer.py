"""What kube-proxy is in a cluster: every new connection to a Service goes to the next process that is ready."""

import asyncio
import contextlib
import dataclasses
import itertools
import json
from collections.abc import Sequence
from pathlib import Path

from testbed import kubelet
from testbed.pods import Probe
from testbed.services import Route, Target

READ_BYTES = 65536


def write(path: Path, routes: Sequence[Route]) -> None:
    staging = path.with_suffix(".new")
    staging.write_text(json.dumps([dataclasses.asdict(route) for route in routes], indent=1))
    staging.replace(path)


def read(path: Path) -> list[Route]:
    """The routes written last; none if there are none yet."""
    if not path.exists():
        return []
    return [
        Route(route["name"], route["listen"], tuple(_target(**target) for target in route["targets"]))
        for route in json.loads(path.read_text())
    ]


async def serve(routes: Sequence[Route]) -> None:
    """Listen on every route, for ever."""
    async with contextlib.AsyncExitStack() as stack:
        for route in routes:
            server = await asyncio.start_server(_Balancer(route.targets).accept, "127.0.0.1", route.listen)
            await stack.enter_async_context(server)
        await asyncio.get_running_loop().create_future()


class _Balancer:
    """Takes turns between the targets of one route."""

    def __init__(self, targets: Sequence[Target]) -> None:
        self._targets = targets
        self._turn = itertools.count()

    async def accept(self, near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        """Pass one connection on until either side ends it; with nobody ready it is closed at once."""
        with contextlib.closing(back):
            opened = await self._open()
            if opened is None:
                return
            far, forth = opened
            with contextlib.closing(forth):
                ways = [asyncio.ensure_future(_pass_on(near, forth)), asyncio.ensure_future(_pass_on(far, back))]
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        first = next(self._turn)
        for step in range(len(self._targets)):
            target = self._targets[(first + step) % len(self._targets)]
            if await asyncio.to_thread(kubelet.is_ready, target.probe):
                with contextlib.suppress(OSError):
                    return await asyncio.open_connection("127.0.0.1", target.port)
        return None


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while chunk := await reader.read(READ_BYTES):
            writer.write(chunk)
            await writer.drain()


def _target(port: int, probe: dict[str, object] | None) -> Target:
    return Target(port, Probe(**probe) if probe else None)  # type: ignore[arg-type]
