"""A mounted Secret or ConfigMap as a kubelet keeps it: a reader sees all of the old version or all of the new one.

Every file is a link through `..data`, which leads to a folder of one version; a new version is a new folder, and one
rename makes it current.
"""

import contextlib
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

CURRENT, NEXT = "..data", "..data_tmp"


def write(folder: Path, files: Mapping[str, bytes], *, mode: int = 0o644) -> bool:
    """Make the files current; False if they were. What a killed writer left behind is cleaned up."""
    if (folder / CURRENT).is_symlink() and read(folder) == files:
        return False
    folder.mkdir(parents=True, exist_ok=True)
    version = Path(tempfile.mkdtemp(prefix="..", dir=folder))
    for path, content in files.items():
        target = version / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch(mode=0o600)
        target.write_bytes(content)
        target.chmod(mode)
    (folder / NEXT).unlink(missing_ok=True)
    (folder / NEXT).symlink_to(version.name)
    (folder / NEXT).rename(folder / CURRENT)
    _show(folder, {Path(path).parts[0] for path in files})
    for old in folder.glob("..*"):
        if old.name not in (CURRENT, version.name):
            shutil.rmtree(old)
    return True


def read(folder: Path) -> dict[str, bytes]:
    """The current files by their path."""
    current = (folder / CURRENT).resolve()
    with contextlib.suppress(FileNotFoundError):
        return {str(path.relative_to(current)): path.read_bytes() for path in current.rglob("*") if path.is_file()}
    return {}


def _show(folder: Path, names: set[str]) -> None:
    for name in names:
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(f"{CURRENT}/{name}")
    for path in folder.iterdir():
        if not path.name.startswith("..") and path.name not in names:
            path.unlink()
