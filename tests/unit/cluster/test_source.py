"""Sources of several clients may be made at the same time."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
PROGRAM = """
import sys, threading
from cluster import decode, meta

line = b'{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"5","ownerReferences":[{"kind":"x"}]}}}'
start, seen = threading.Barrier(8), []

def read():
    start.wait()
    kind, item = decode.Decoders().of(meta.PartialObjectMetadata).decode_event(line)
    seen.append((kind, item.metadata.resource_version))

sys.setswitchinterval(1e-6)
threads = [threading.Thread(target=read) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert seen == [("ADDED", "5")] * 8, seen
"""
RUNS = 5
"""Without the lock around the making of decoders three runs in five ended in a crash of the interpreter."""


def test_decoders_made_by_many_threads_at_once() -> None:
    runs = [subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, check=False).returncode for _ in range(RUNS)]
    assert runs == [0] * RUNS
