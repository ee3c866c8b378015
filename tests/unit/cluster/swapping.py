"""A settings file that changes while a program starts."""

from pathlib import Path, PosixPath
from typing import Any

import yaml

from policy.settings import API_VERSION

HEAD = f"apiVersion: {API_VERSION}\nkind: Policy\n"


class Swapping(PosixPath):
    """A mounted ConfigMap: the link leads to the next version as soon as the first one was opened."""

    def open(self, *how: Any, **more: Any) -> Any:
        """The version of now."""
        opened = super().open(*how, **more)
        coming = self.with_name("coming")
        if coming.is_symlink():
            coming.replace(self)
        return opened


def mounted(folder: Path, first: str, then: str) -> Swapping:
    """What a document begins with is added to both versions."""
    for name, text, link in (("v1.yaml", first, "settings.yaml"), ("v2.yaml", then, "coming")):
        (folder / name).write_text(HEAD + text)
        (folder / link).symlink_to(name)
    return Swapping(folder / "settings.yaml")


def kubeconfig(folder: Path) -> Path:
    """Of a server at which nobody listens."""
    path = folder / "kubeconfig"
    body = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "it", "cluster": {"server": "http://127.0.0.1:1"}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "users": [{"name": "it", "user": {}}],
        "current-context": "it",
    }
    path.write_text(yaml.safe_dump(body))
    return path
