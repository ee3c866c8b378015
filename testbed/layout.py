"""Where the files of one test bed are, and how each component is started from them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from testbed import pki
from testbed.binaries import Binaries
from testbed.objects import PREFIX

CONFIG = Path(__file__).parent / "config"
PORTS = (
    "etcd",
    "etcd-peer",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kwok",
    "metrics-server",
)
VANISHED = f"{PREFIX}vanished"
"""Label of a node whose kubelet is gone: nobody renews its lease or looks after its pods."""
USERS = {
    "admin": pki.User("admin", "system:masters"),
    "kwok": pki.User("kwok", "system:masters"),
    "metrics-server": pki.User("metrics-server", "system:masters"),
    "kube-controller-manager": pki.User("system:kube-controller-manager"),
    "kube-scheduler": pki.User("system:kube-scheduler"),
}
"""Who logs in with which kubeconfig. By token: the API server verifies a client certificate anew with each request,
which takes it a twentieth of its time.
"""
SERVICE_NAMES = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "10.0.0.1")

_NO_CONTROLLERS = (
    # These need a cloud, a real kubelet or a signer that a machine without containers does not have.
    "-persistentvolume-attach-detach-controller",
    "-persistentvolume-expander-controller",
    "-certificatesigningrequest-signing-controller",
)


@dataclass(frozen=True, slots=True)
class Layout:
    """The files of one test bed, all below one folder."""

    home: Path

    @property
    def certificates(self) -> Path:
        return self.home / "pki"

    @property
    def logs(self) -> Path:
        return self.home / "logs"

    @property
    def kubeconfig(self) -> Path:
        return self.home / "kubeconfig"

    @property
    def audit_log(self) -> Path:
        return self.logs / "audit.log"

    @property
    def ca(self) -> pki.Authority:
        return pki.Authority(self.certificates, "ca")

    @property
    def tokens(self) -> Path:
        """Who has which token, for the API server."""
        return self.certificates / "tokens.csv"

    def token_of(self, user: str) -> str:
        """What one of `USERS` logs in with."""
        lines = (line.split(",") for line in self.tokens.read_text().splitlines())
        return next(token for token, name, *_ in lines if name == USERS[user].name)

    def log(self, name: str) -> Path:
        return self.logs / f"{name}.log"

    def kubeconfig_of(self, user: str) -> Path:
        return self.certificates / f"{user}.kubeconfig"


def prepare(layout: Layout, ports: Mapping[str, int]) -> None:
    """Write certificates, kubeconfigs and configuration files."""
    layout.logs.mkdir(parents=True, exist_ok=True)
    ca = pki.authority(layout.certificates, "ca")
    front = pki.authority(layout.certificates, "front-proxy-ca")
    ca.server("kube-apiserver", SERVICE_NAMES)
    for name in ("kube-controller-manager", "kube-scheduler", "kwok"):
        ca.server(name)
    ca.server("metrics-server", ("metrics-server.kube-system.svc",))
    front.client("front-proxy-client", user="front-proxy-client")
    pki.signing_key(layout.certificates, "service-accounts")
    server = f"https://127.0.0.1:{ports['kube-apiserver']}"
    tokens = pki.tokens(layout.tokens, USERS.values())
    for name, user in USERS.items():
        entry = {"token": tokens[user]}
        pki.kubeconfig(layout.kubeconfig_of(name), server=server, ca=ca.bundle(), user=entry)
    layout.kubeconfig.unlink(missing_ok=True)
    layout.kubeconfig.symlink_to(layout.kubeconfig_of("admin").relative_to(layout.home))
    (layout.home / "scheduler.yaml").write_text(scheduler_configuration(layout))


def scheduler_configuration(layout: Layout) -> str:
    """The scheduler's own, before anybody gave it another."""
    text = (CONFIG / "scheduler.yaml").read_text()
    return text.replace("@KUBECONFIG@", str(layout.kubeconfig_of("kube-scheduler")))


def commands(layout: Layout, ports: Mapping[str, int], binaries: Binaries) -> dict[str, list[str]]:
    """The command line of every component, in the order they must be started."""
    arguments = {
        "etcd": _etcd(layout, ports),
        "kube-apiserver": _apiserver(layout, ports),
        "kube-controller-manager": _controller_manager(layout, ports),
        "kube-scheduler": _scheduler(layout, ports),
        "kwok": _kwok(layout, ports),
        "metrics-server": _metrics_server(layout, ports),
    }
    return {name: [str(binaries[name]), *rest] for name, rest in arguments.items()}


def _etcd(layout: Layout, ports: Mapping[str, int]) -> list[str]:
    client, peer = f"http://127.0.0.1:{ports['etcd']}", f"http://127.0.0.1:{ports['etcd-peer']}"
    return [
        "--name=testbed",
        f"--data-dir={layout.home / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=testbed={peer}",
        "--unsafe-no-fsync=true",  # nothing here outlives the machine
        "--auto-compaction-retention=1",
        "--quota-backend-bytes=4294967296",
    ]


def _apiserver(layout: Layout, ports: Mapping[str, int]) -> list[str]:
    pairs = layout.certificates
    return [
        f"--etcd-servers=http://127.0.0.1:{ports['etcd']}",
        "--bind-address=127.0.0.1",
        "--advertise-address=192.0.2.1",  # documentation range: a loopback address is refused here
        f"--secure-port={ports['kube-apiserver']}",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--allow-privileged=true",
        "--authorization-mode=Node,RBAC",
        # On top of the defaults: what kubeadm adds, and the one that confines a namespace to a set of nodes.
        "--enable-admission-plugins=NodeRestriction,PodNodeSelector",
        f"--tls-cert-file={pairs / 'kube-apiserver.crt'}",
        f"--tls-private-key-file={pairs / 'kube-apiserver.key'}",
        f"--client-ca-file={pairs / 'ca.crt'}",
        f"--token-auth-file={layout.tokens}",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-key-file={pairs / 'service-accounts.pub'}",
        f"--service-account-signing-key-file={pairs / 'service-accounts.key'}",
        f"--requestheader-client-ca-file={pairs / 'front-proxy-ca.crt'}",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={pairs / 'front-proxy-client.crt'}",
        f"--proxy-client-key-file={pairs / 'front-proxy-client.key'}",
        f"--audit-policy-file={CONFIG / 'audit.yaml'}",
        f"--audit-log-path={layout.audit_log}",
        "--profiling=false",
    ]


def _controller_manager(layout: Layout, ports: Mapping[str, int]) -> list[str]:
    return [
        f"--kubeconfig={layout.kubeconfig_of('kube-controller-manager')}",
        *_secured("kube-controller-manager", layout, ports),
        "--leader-elect=false",
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={layout.certificates / 'service-accounts.key'}",
        f"--root-ca-file={layout.certificates / 'ca.crt'}",
        f"--controllers=*,{','.join(_NO_CONTROLLERS)}",
        "--kube-api-qps=200",
        "--kube-api-burst=400",
        # A test should not wait a quarter of a minute for each look of the autoscaler.
        "--horizontal-pod-autoscaler-sync-period=5s",
        "--horizontal-pod-autoscaler-cpu-initialization-period=10s",
        "--horizontal-pod-autoscaler-initial-readiness-delay=5s",
    ]


def _scheduler(layout: Layout, ports: Mapping[str, int]) -> list[str]:
    return [f"--config={layout.home / 'scheduler.yaml'}", *_secured("kube-scheduler", layout, ports)]


def _secured(name: str, layout: Layout, ports: Mapping[str, int]) -> list[str]:
    return [
        "--bind-address=127.0.0.1",
        f"--secure-port={ports[name]}",
        f"--tls-cert-file={layout.certificates / name}.crt",
        f"--tls-private-key-file={layout.certificates / name}.key",
        "--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics",
    ]


def _kwok(layout: Layout, ports: Mapping[str, int]) -> list[str]:
    return [
        f"--kubeconfig={layout.kubeconfig_of('kwok')}",
        f"--config={CONFIG / 'kwok.yaml'}",
        # Every node but those that vanished. A label: kwok does not notice that an annotation ceased to match.
        f"--manage-nodes-with-label-selector={VANISHED}!=true",
        "--cidr=10.64.0.1/16",
        "--node-ip=127.0.0.1",
        f"--node-port={ports['kwok']}",
        f"--server-address=127.0.0.1:{ports['kwok']}",
        f"--tls-cert-file={layout.certificates / 'kwok.crt'}",
        f"--tls-private-key-file={layout.certificates / 'kwok.key'}",
        "--node-lease-duration-seconds=40",
    ]


def _metrics_server(layout: Layout, ports: Mapping[str, int]) -> list[str]:
    kubeconfig = layout.kubeconfig_of("metrics-server")
    return [
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--bind-address=127.0.0.1",
        f"--secure-port={ports['metrics-server']}",
        f"--tls-cert-file={layout.certificates / 'metrics-server.crt'}",
        f"--tls-private-key-file={layout.certificates / 'metrics-server.key'}",
        "--kubelet-insecure-tls",
        "--kubelet-use-node-status-port",
        "--kubelet-preferred-address-types=InternalIP",
        "--metric-resolution=10s",  # its minimum
        "--kubelet-request-timeout=5s",
    ]
