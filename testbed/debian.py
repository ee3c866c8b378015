"""Programs of the Debian archive, unpacked into the cache and not installed, which takes no rights."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from testbed import cache, pins

TIMEOUT_SECONDS = 300


class Missing(RuntimeError):
    """The archive cannot be asked, or does not have it."""


def unpacked(packages: Sequence[str], environ: Mapping[str, str]) -> Path:
    """The folder in which these packages lie as they would under `/`, the first one giving its name."""
    base = pins.cache_dir(environ) / packages[0]
    if not base.exists():
        with cache.room(base) as folder:
            if not base.exists():  # else another process was quicker
                _download(packages, folder)
                for package in folder.glob("*.deb"):
                    subprocess.run(["dpkg-deb", "-x", str(package), str(folder)], check=True)
                    package.unlink()
                folder.chmod(0o755)  # what is temporary is for nobody else
                folder.rename(base)
    return base


def _download(packages: Sequence[str], folder: Path) -> None:
    said = ""
    for prepare in ([], ["apt-get", "update"]):  # a machine that was never updated knows no package
        if prepare:
            _ran(prepare, folder)
        code, said = _ran(["apt-get", "download", *packages], folder)
        if code == 0:
            return
    raise Missing(f"install {packages[0]}: it is not on PATH, and the Debian archive did not give it\n{said}")


def _ran(command: Sequence[str], folder: Path) -> tuple[int, str]:
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, timeout=TIMEOUT_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as failed:
        return 1, str(failed)
    return done.returncode, done.stderr
