"""The settings that the product gets, one document after the other; one of them is full of mistakes."""

from typing import Any, Final

import yaml

HEAD: Final = {"apiVersion": "spotshift.dev/v1alpha1", "kind": "Policy"}
USUAL: Final[dict[str, Any]] = {
    **HEAD,
    "reschedulingInterval": "2s",
    "enabledStrategies": ["SpotInterruption", "NodeMaintenance", "LoadBalancing", "SpotMix", "SpotReclaim"],
    # What takes minutes in production takes seconds here, so that a run of minutes sees it often.
    "limits": {"minPodAge": "2s"},
    "migrations": {"readyTimeout": "20s"},
    "backoff": {"initial": "10s", "max": "40s"},
    "history": {"historyTTL": "1h"},
    "strategies": {
        "SpotInterruption": {"notReadyAfter": "10s"},
        "NodeMaintenance": {"jobTimeout": "5s", "maxNodes": 2},
        "SpotMix": {"coolDown": "20s"},
        "SpotReclaim": {"minStay": "5s", "coolDown": "20s"},
    },
}
DOCUMENTS: Final[dict[str, str]] = {
    "usual": yaml.safe_dump(USUAL),
    "eager": yaml.safe_dump({**USUAL, "reschedulingInterval": "1s", "imbalanceThreshold": 5}),
    "slow": yaml.safe_dump({**USUAL, "migrations": {"readyTimeout": "20s", "workers": 1, "hintPropagation": "3s"}}),
    "unguided": yaml.safe_dump({**USUAL, "migrations": {"readyTimeout": "20s", "coordination": "unguided"}}),
    "evicting": yaml.safe_dump({**USUAL, "migrations": {"readyTimeout": "20s", "singleReplicaFallback": "evict"}}),
    "without temporary budgets": yaml.safe_dump(
        {**USUAL, "migrations": {"readyTimeout": "20s", "temporaryPdb": {"enabled": False}}}
    ),
    "drains only": yaml.safe_dump({**USUAL, "enabledStrategies": ["NodeMaintenance"]}),
    "observing": yaml.safe_dump({**USUAL, "mode": "observe"}),
    "broken": "kind: Policy\nreschedulingInterval: soon\nenabledStrategies: {}\nlimit: {perNode: none}\n",
}
