"""The settings of the product while the demo plays: few strategies at a time, and nobody waits until pods are old."""

from typing import Any

import yaml

from testbed.api import Api

SYSTEM, NAME = "spotshift-system", "spotshift-settings"
POLICY: dict[str, Any] = {
    "apiVersion": "spotshift.dev/v1alpha1",
    "kind": "Policy",
    "reschedulingInterval": "1s",  # 30s by default
    "limits": {"minPodAge": "0s"},  # 5m by default
    "history": {"perWorkload": 100},  # 10 by default; the summary at the end wants them all
}


def apply(client: Api, **more: Any) -> None:
    """Put these into force, beside what holds for the whole demo; programs follow within a second or two."""
    text = yaml.safe_dump({**POLICY, **more}, sort_keys=False)
    client.patch("configmaps", NAME, {"data": {"settings.yaml": text}}, SYSTEM)
