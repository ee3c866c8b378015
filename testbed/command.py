"""The commands of `python -m testbed`: a control plane of your own on loopback, and the product in it."""

import argparse
import asyncio
import functools
import io
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import yaml
from rich.console import Console

from testbed import (
    balancer,
    bed,
    binaries,
    build,
    cache,
    chart,
    dependencies,
    ending,
    extras,
    folder,
    golang,
    install,
    kubelet,
    pins,
    process,
    progress,
    remains,
    rights,
    scheduling,
    sources,
)

ROOT = Path(__file__).parent.parent
DEFAULT_DIR = Path(".testbed/dev")
EXPECTED = (
    folder.Refused,
    bed.DidNotStart,
    cache.NoCache,
    build.BuildFailed,
    golang.NoToolchain,
    sources.NotApplied,
)
"""Failures that the user can do something about: told in words, without a traceback."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    run: Callable[[argparse.Namespace], int] = options.run
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without ● still gets its picture
    try:
        ending.listen()
        return run(options)
    except EXPECTED as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as asked:
        what, code = ending.of(asked)
        print(f"{what}; {INTERRUPTED.get(run, 'everything this command started is stopped')}", file=sys.stderr)
        return code


def _up(options: argparse.Namespace) -> int:
    found = _binaries()
    if lost := bed.ended(options.dir):
        what = f"the control plane in {options.dir} has lost {', '.join(lost)}"
        print(f"{what}: a new one takes its place, without what was in it", file=sys.stderr)
    running = bed.up(options.dir, found, nodes=options.nodes, spot=options.spot)
    print(f"kubectl: {found['kubectl']}")
    print(f"KUBECONFIG={running.kubeconfig}")
    return 0


def _install(options: argparse.Namespace) -> int:
    source = options.manifests
    if options.chart:
        helm = extras.find("helm", os.environ, tell=lambda line: print(line, file=sys.stderr))
        source = sources.Chart(helm, options.chart)
    install.install(bed.attach(options.dir), source, tell=lambda line: print(line, flush=True))
    return 0


def _render(options: argparse.Namespace) -> int:
    print(sources.rendered(_binaries()["kubectl"], options.folder), end="")
    return 0


def _chart(_: argparse.Namespace) -> int:
    kubectl = _binaries()["kubectl"]
    manifests = install.MANIFESTS.parent
    written = chart.files(manifests, pins.product(), functools.partial(sources.kustomized, kubectl))
    chart.write(manifests / "chart", written)
    print(f"{manifests / 'chart'}: {len(written)} files")
    return 0


def _scheduler(options: argparse.Namespace) -> int:
    running = bed.attach(options.dir)
    listen = {route.name: route.listen for route in balancer.read(install.routes_file(running))}
    extenders = scheduling.restart(running, options.config, listen)
    print(f"kube-scheduler restarted; it asks {', '.join(extenders) if extenders else 'no extender'}")
    return 0


def _status(options: argparse.Namespace) -> int:
    running = bed.attach(options.dir)
    status, ports = install.status(running), install.ports_of(running)
    width = max(26, *map(len, status))
    for name, pid in status.items():
        print(f"{name:<{width}} {'pid ' + str(pid) if pid else 'not running':<12} {ports.get(name, '')}".rstrip())
    print(f"KUBECONFIG={running.kubeconfig}")
    return 0 if all(status.values()) else 1


def _logs(options: argparse.Namespace) -> int:
    running = bed.attach(options.dir)
    names = sorted(path.stem for path in running.layout.logs.glob("*.log"))
    if options.component and options.component not in names:
        raise folder.Refused(f"component: {options.component!r} has no log; there are {', '.join(names)}")
    for name in [options.component] if options.component else names:
        print(f"==> {name} <==\n{running.tail(name, options.tail)}")
    return 0


def _down(options: argparse.Namespace) -> int:
    homes = [path for path in DEFAULT_DIR.parent.glob("*/") if path.is_dir()] if options.all else [options.dir]
    for home in homes:
        stopped = bed.down(home)
        print(f"{home}: stopped {', '.join(stopped)}" if stopped else f"{home}: nothing was running")
    return 0


INTERRUPTED: Mapping[Callable[[argparse.Namespace], int], str] = {_down: "run it again to stop what is left"}
"""What is said of commands that start nothing."""


def _guard(options: argparse.Namespace) -> int:
    """Wait for the owner to end, in whatever way, and clean up after it."""
    process.wait_for_end(options.owner)
    bed.down(options.dir)
    return 0


def _kubelet(options: argparse.Namespace) -> int:
    kubelet.run(bed.attach(options.dir), tell=lambda line: print(line, flush=True))
    return 0


def _kube_proxy(options: argparse.Namespace) -> int:
    asyncio.run(balancer.serve(balancer.read(install.routes_file(bed.attach(options.dir)))))
    return 0


def _demo(options: argparse.Namespace) -> int:
    from testbed import demo, picture

    # A file has no width of its own, and rich would take 80 columns for it.
    columns = None if sys.stdout.isatty() or "COLUMNS" in os.environ else picture.WIDE
    return demo.run(_binaries(), console=Console(highlight=False, width=columns), pause_seconds=options.pause)


def _rights(options: argparse.Namespace) -> int:
    """What the manifests grant beside what the last run of the tests used of it."""
    if not options.file.exists():
        raise folder.Refused(
            f"{options.file}: there is no such file; a run of the tests with a control plane writes it"
        )
    roles = sorted(path for path in options.manifests.rglob("rbac.yaml") if "chart" not in path.parts)
    documents = [document for path in roles for document in yaml.safe_load_all(path.read_text())]
    given, used = rights.roles(documents), remains.read(options.file.read_text())
    print(rights.matrix(given, used))
    left, asked = rights.unused(given, used), rights.exceeded(given, used)
    for role, (verb, resource) in left:
        print(f"never used: {role} grants {verb} {resource}", file=sys.stderr)
    for account, (verb, resource) in asked:
        print(f"not granted: {account} asked to {verb} {resource}", file=sys.stderr)
    return int(bool(left or asked))


def _audit(options: argparse.Namespace) -> int:
    """What we depend on. Where the index is, pip knows."""
    from pip._internal.models.index import PyPI

    url = options.index or PyPI.pypi_url
    found = dependencies.audit(dependencies.all_pins(ROOT), None if options.offline else dependencies.online(url))
    print(found)
    return int(bool(found.wrong))


def _show_binaries(options: argparse.Namespace) -> int:
    if options.list:
        wanted = pins.versions()
        for component in binaries.COMPONENTS:
            print(f"{component.name} v{wanted[component.project]}")
        return 0
    found = _binaries()
    print(f"control plane: Kubernetes v{pins.versions()['kubernetes']} in {found['kube-apiserver'].parent}")
    return 0


def _binaries() -> binaries.Binaries:
    for line in binaries.passed_over(os.environ):
        print(line, file=sys.stderr)
    report = progress.BuildProgress(Console(stderr=True))
    try:
        return binaries.ensure(os.environ, report=report)
    finally:
        report.close()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m testbed", description="A control plane of your own on loopback.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text)
        sub.set_defaults(run=run)
        if name not in ("binaries", "demo", "render", "chart", "rights", "audit"):
            sub.add_argument("--dir", type=Path, default=DEFAULT_DIR, help="folder of the test bed (%(default)s)")
        return sub

    start = command("up", _up, "start a control plane; the last line printed is its KUBECONFIG")
    start.add_argument("--nodes", type=_count, default=3, metavar="N", help="on-demand nodes (%(default)s)")
    start.add_argument("--spot", type=_count, default=3, metavar="N", help="spot nodes (%(default)s)")
    product = command(
        "install", _install, "apply the product's manifests, run its Deployments and wait until they are ready"
    )
    product.add_argument("--manifests", type=Path, default=install.MANIFESTS, help="a kustomize folder")
    product.add_argument("--chart", type=Path, help="a Helm chart instead; helm is built if there is none (minutes)")
    scheduler = command("scheduler", _scheduler, "restart kube-scheduler with another configuration")
    scheduler.add_argument("--config", type=Path, help="a KubeSchedulerConfiguration; without it, the one of `up`")
    command("status", _status, "list the components; exit 1 if one does not run")
    logs = command("logs", _logs, "print the end of the logs")
    logs.add_argument("component", nargs="?", help="only this one")
    logs.add_argument("--tail", type=_count, default=20, metavar="N", help="lines (%(default)s)")
    stop = command("down", _down, "stop a control plane, crashed or not, and remove its files")
    stop.add_argument("--all", action="store_true", help=f"every test bed below {DEFAULT_DIR.parent}")
    guard = command("guard", _guard, "take a control plane down when its owner ends (used by tests and `demo`)")
    guard.add_argument("--owner", type=int, required=True, metavar="PID")
    command("kubelet", _kubelet, "keep the volumes of installed processes up to date (used by `install` itself)")
    command("kube-proxy", _kube_proxy, "lead Services to installed processes (used by `install` itself)")
    show = command("demo", _demo, "show the main job on a control plane of its own, then remove it")
    show.add_argument("--pause", type=_seconds, default=None, help="seconds to stay on the last picture")
    rendered = command("render", _render, "print the objects of a kustomize folder, without a cluster")
    rendered.add_argument("folder", type=Path)
    command("chart", _chart, "write manifests/chart anew from the kustomize manifests")
    asked = command("rights", _rights, "what the product may beside what it used in the last run; exit 1 if too much")
    asked.add_argument("--manifests", type=Path, default=install.MANIFESTS.parent, help="where its roles are")
    asked.add_argument("--file", type=Path, default=DEFAULT_DIR.parent / "rights.json", help="what was used")
    audited = command("audit", _audit, "look for holes, withdrawn files and licences in what we depend on")
    audited.add_argument("--index", metavar="URL", help="the JSON interface of another package index")
    audited.add_argument("--offline", action="store_true", help="without an index: pins, versions and licences only")
    built = command("binaries", _show_binaries, "find or build the binaries")
    built.add_argument("--list", action="store_true", help="only name them with their versions")
    return parser


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 3600:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0 to 3600")
    return value


def _count(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = -1
    if not 0 <= value <= 5000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 to 5000")
    return value
