"""What `bench.decode` measures, each in a process of its own: `python -m bench.measured NAME ...` prints JSON.

Resident memory is that of the whole process. `kept` is what the decoded objects add to it once the bytes are gone,
counted from before the bytes were read, with everything that is imported already in place. Times are processor time
of the process, which is what decoding costs and which other work on the machine disturbs least.
"""

from __future__ import annotations

import argparse
import gc
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

Figures = dict[str, float]
MIB = 1 << 20


def resident() -> float:
    """Resident memory of this process in MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / MIB


def peak() -> float:
    """The most this process ever had, in MiB; `ru_maxrss` would count the parent it was forked from."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024


def official(body: Path) -> Figures:
    """The official client: text to V1PodList."""
    from kubernetes import client

    api = client.ApiClient()
    api.deserialize('{"items": []}', "V1PodList", "application/json")  # imports the models
    return _decode(body, lambda data: api.deserialize(data.decode(), "V1PodList", "application/json"))


def ours(body: Path) -> Figures:
    """Our decoder: bytes to interned pods."""
    from cluster.objects import Decoders, Pod

    decoder = Decoders().of(Pod)
    return _decode(body, decoder.decode_list_page)


def _decode(body: Path, decode: Callable[[bytes], Any]) -> Figures:
    gc.collect()
    before = resident()
    data = body.read_bytes()
    started = time.process_time()
    kept = decode(data)
    seconds = time.process_time() - started
    del data
    gc.collect()
    figures = {"seconds": seconds, "kept_mib": resident() - before, "peak_mib": peak(), "pods": len(kept.items)}
    started = time.process_time()
    gc.collect()
    return figures | {"gc_ms": (time.process_time() - started) * 1000}


def fleet(server: str) -> Figures:
    """A whole cluster through the client, in pages, kept by key as a store keeps it; `kubernetes` is imported too."""
    import kubernetes.client
    import urllib3

    from cluster import auth, resources, tokens
    from cluster.client import Client
    from cluster.objects import Pod

    assert kubernetes.client is not None
    client = Client(auth.Connection(server, urllib3.PoolManager(), tokens.Anonymous()), timeout=120)
    before, started = resident(), time.process_time()
    store: dict[tuple[str, str], Pod] = {}
    for page in client.pages(resources.PODS, type=Pod):
        store.update((pod.metadata.key, pod) for pod in page.items)
    seconds = time.process_time() - started
    specs = {id(pod.spec) for pod in store.values()}
    gc.collect()
    return {
        "seconds": seconds,
        "before_mib": before,
        "resident_mib": resident(),
        "peak_mib": peak(),
        "pods": len(store),
        "specs": len(specs),
    }


def events(lines: Path) -> Figures:
    """Watch events of known templates, decoded and interned, in microseconds each."""
    from cluster.objects import Decoders, Pod

    decoder = Decoders().of(Pod)
    data = lines.read_bytes().splitlines()
    held = [decoder.decode_event(line) for line in data]
    started = time.process_time()
    for index, line in enumerate(data):
        held[index] = decoder.decode_event(line)
    seconds = time.process_time() - started
    return {"microseconds": seconds / len(data) * 1e6, "bytes": sum(map(len, data)) / len(data)}


def main() -> None:
    """Run one measurement."""
    measurements = {"official": official, "ours": ours, "events": events}
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=[*measurements, "fleet"])
    parser.add_argument("source", help="a file, or the URL of a server")
    parser.add_argument("--no-gc", action="store_true")
    asked = parser.parse_args()
    if asked.no_gc:
        gc.disable()
    figures = fleet(asked.source) if asked.name == "fleet" else measurements[asked.name](Path(asked.source))
    print(msgspec.json.encode(figures).decode())


if __name__ == "__main__":
    main()
