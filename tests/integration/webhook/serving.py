"""The webhook on the real control plane: the shipped rights and configuration, and the real command as a process."""

import base64
import contextlib
import http.client
import os
import shutil
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import urllib3
import yaml
from cryptography import x509

from testbed import access, ports
from testbed.api import Api, ApiError, Object
from testbed.bed import ControlPlane
from testbed.pki import Pair
from testbed.waiting import eventually

ROOT = Path(__file__).parents[3]
MANIFESTS = ROOT / "manifests" / "base"
ACCOUNT = "spotshift-webhook"


@dataclass(slots=True)
class Serving:
    """One `python -m webhook serve`."""

    process: subprocess.Popen[str]
    port: int
    probes: int
    folder: Path
    ca: str

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}/mutate"

    def get(self, path: str) -> tuple[int, str]:
        try:
            answer = urllib3.request("GET", f"http://127.0.0.1:{self.probes}{path}", retries=False, timeout=5)
        except urllib3.exceptions.HTTPError as failure:
            return 0, str(failure)
        return answer.status, answer.data.decode()

    def connection(self, ca: str | None = None) -> http.client.HTTPSConnection:
        """Not opened yet; `ca` is trusted in the place of the test bed's."""
        context = ssl.create_default_context(cadata=ca or self.ca)
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=10, context=context)

    def post(self, body: bytes, *, method: str = "POST", path: str = "/mutate", **headers: str) -> tuple[int, bytes]:
        with contextlib.closing(self.connection()) as connection:
            sent = {
                "Content-Type": "application/json",
                **{name.replace("_", "-"): it for name, it in headers.items()},
            }
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            return answer.status, answer.read()

    def shown(self) -> str:
        """The name in the certificate that a new connection gets."""
        with contextlib.closing(self.connection()) as connection:
            connection.connect()
            shown: bytes = connection.sock.getpeercert(binary_form=True) or b""
        return x509.load_der_x509_certificate(shown).subject.rfc4514_string().removeprefix("CN=")

    def certify(self, pair: Pair) -> None:
        """Swap the certificate as a kubelet swaps a mounted Secret."""
        place(self.folder / "tls", pair)

    def ask_to_end(self) -> None:
        self.process.send_signal(signal.SIGTERM)


def place(folder: Path, pair: Pair) -> None:
    """A mounted Secret: a folder of links through one link that is swapped."""
    data = folder / f"..{pair.cert.stem}"
    data.mkdir(parents=True)
    shutil.copy(pair.cert, data / "tls.crt")
    shutil.copy(pair.key, data / "tls.key")
    (folder / "..new").symlink_to(data.name)
    (folder / "..new").rename(folder / "..data")
    for name in ("tls.crt", "tls.key"):
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(Path("..data") / name)


@contextlib.contextmanager
def started(bed: ControlPlane, namespace: str, folder: Path, *more: str) -> Iterator[Serving]:
    """Start a process; killed at the end if the test did not stop it."""
    folder.mkdir()
    place(folder / "tls", bed.layout.ca.server(f"first-{namespace}-{folder.name}"))
    (folder / "settings.yaml").write_text("apiVersion: spotshift.dev/v1alpha1\nkind: Policy\n")
    taken = ports.free(("listen", "probes"))
    command = [
        *(sys.executable, "-m", "webhook", "serve"),
        f"--kubeconfig={access.kubeconfig(bed, ACCOUNT, namespace)}",
        f"--listen=127.0.0.1:{taken['listen']}",
        f"--probes=127.0.0.1:{taken['probes']}",
        f"--settings={folder / 'settings.yaml'}",
        f"--cert={folder / 'tls' / 'tls.crt'}",
        f"--key={folder / 'tls' / 'tls.key'}",
        *more,
    ]
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    with (
        (folder / "log").open("w") as output,
        subprocess.Popen(
            command, env=env, text=True, stdout=output, stderr=output, start_new_session=True
        ) as process,
    ):
        serving = Serving(process, taken["listen"], taken["probes"], folder, bed.layout.ca.bundle().decode())
        try:
            yield serving
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def until_ready(serving: Serving) -> None:
    eventually(lambda: (serving.get("/readyz"), serving.log), until=lambda it: it[0][0] == 200, what="readiness")


@contextlib.contextmanager
def rights(kube: Api, namespace: str) -> Iterator[None]:
    """The shipped account and rights, moved into the namespace of the test."""
    account, role, binding = yaml.safe_load_all((MANIFESTS / "webhook" / "rbac.yaml").read_text())
    account["metadata"]["namespace"] = namespace
    name = f"{role['metadata']['name']}-{namespace}"
    role["metadata"]["name"] = binding["metadata"]["name"] = binding["roleRef"]["name"] = name
    binding["subjects"][0]["namespace"] = namespace
    for rule in role["rules"]:
        if "resourceNames" in rule:
            rule["resourceNames"] = [namespace]
    kube.create("serviceaccounts", account, namespace)
    kube.create("clusterroles", role)
    kube.create("clusterrolebindings", binding)
    yield
    kube.delete("clusterrolebindings", name)
    kube.delete("clusterroles", name)


def hook_name(namespace: str) -> str:
    return f"{namespace}.webhook.spotshift.dev"


@contextlib.contextmanager
def configured(
    bed: ControlPlane, kube: Api, namespace: str, url: str, *, bundle: bytes | None = None
) -> Iterator[Object]:
    """The shipped configuration, led to the process and narrowed to the namespace of the test.

    It trusts the CA of the test bed, or `bundle`; an empty one leaves that to certs.
    """
    body: Object = yaml.safe_load((MANIFESTS / "webhook" / "configuration.yaml").read_text())
    body["metadata"]["name"] = namespace
    body["webhooks"][0]["name"] = hook_name(namespace)  # by which the API server counts
    trusted = bed.layout.ca.bundle() if bundle is None else bundle
    body["webhooks"][0]["clientConfig"] = {"url": url, "caBundle": base64.b64encode(trusted).decode()}
    only = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [namespace]}
    body["webhooks"][0]["namespaceSelector"]["matchExpressions"].append(only)
    yield kube.create("mutatingwebhookconfigurations", body)
    with contextlib.suppress(ApiError):
        kube.delete("mutatingwebhookconfigurations", namespace)
