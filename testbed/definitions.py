"""Custom resources of a test bed."""

from typing import Any

from testbed import api
from testbed.waiting import eventually


def established(kube: api.Api, name: str) -> None:
    """Wait until objects of this definition can be made. `kubectl wait` fails on one that has no conditions yet."""
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"

    def conditions() -> list[dict[str, Any]]:
        found: dict[str, Any] = kube.request("GET", path).get("status", {})
        return list(found.get("conditions") or ())

    eventually(
        conditions,
        until=lambda found: any((it["type"], it["status"]) == ("Established", "True") for it in found),
        timeout=60,
        what=f"the definition {name}",
    )
