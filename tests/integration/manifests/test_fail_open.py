"""The one metric that alerts take from somebody else: the API server counts what our webhook did not answer."""

import re
from pathlib import Path

import yaml

from testbed import objects, ports
from testbed.api import Api
from testbed.waiting import eventually

CONFIGURATION = Path(__file__).parents[3] / "manifests" / "base" / "webhook" / "configuration.yaml"


def test_the_api_server_counts_it_under_our_name(kube: Api, namespace: str) -> None:
    made = yaml.safe_load(CONFIGURATION.read_text())
    (webhook,) = made["webhooks"]
    made["metadata"]["name"] = namespace
    nobody = ports.free(["nobody"])["nobody"]
    webhook["clientConfig"] = {"url": f"https://127.0.0.1:{nobody}/mutate"}
    webhook["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    kube.create("mutatingwebhookconfigurations", made)
    try:

        def counted() -> bool:
            kube.create("pods", objects.pod("any"), namespace, dry_run=True)
            page = kube.request("GET", "/metrics")["text"]
            name = re.escape(webhook["name"])
            found = rf'^apiserver_admission_webhook_fail_open_count\{{name="{name}",type="admit"\}} [1-9]'
            return re.search(found, page, re.MULTILINE) is not None

        eventually(counted, what="the count of the API server")
    finally:
        kube.delete("mutatingwebhookconfigurations", namespace)
