"""`python -m webhook serve`, and `python -m webhook review FILE`: what would the webhook do to my pod, and why.

FILE holds pods, workloads with a pod template, or AdmissionReviews, in YAML or JSON; `-` is standard input.
Exit codes: 0 every decision is printed, 1 a file cannot be read or understood, 2 wrong usage, 3 a patch of
ours would not apply, which is a defect to report.
"""

import signal

if __name__ == "__main__":  # an interrupt while the rest is loaded has nothing to clean up
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import argparse
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from policy import documents, settings_load
from policy.mistakes import InvalidSettings
from policy.printing import printed
from policy.settings import Settings
from serving import options as serve_options
from webhook import explain, mutate, review, snapshot
from webhook.reasons import Result
from webhook.review import BadRequest
from webhook.view import View


class Unusable(Exception):
    """A file that stops the command; every line says what is wrong with it."""


def main(arguments: list[str]) -> int:
    options = _parser().parse_args(arguments)
    return int(options.run(options))


def _review(options: argparse.Namespace) -> int:
    try:
        settings = _settings(options.settings)
        view = _view(options.cluster_dump, settings)
        reports = list(_reports(options.file, view, assume=options.cluster_dump is None))
    except Unusable as unusable:
        for line in str(unusable).splitlines():
            print(f"error: {line}", file=sys.stderr)
        return 1
    wrong = any(report["decision"] == Result.PATCH_UNAPPLICABLE for report in reports)
    told = "---\n".join(documents.write(report) for report in reports)
    return printed(lambda: print(told, end=""), 3 if wrong else 0)


def _serve(options: argparse.Namespace) -> int:
    from webhook import serve  # a review needs no server

    return serve.run(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m webhook", description="The admission webhook of spotshift.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_serve(commands.add_parser("serve", help="answer admission reviews until SIGTERM"))
    command = commands.add_parser("review", help="print the decision for a pod, and why", description=__doc__)
    command.set_defaults(run=_review)
    command.add_argument(
        "file", metavar="FILE", help="pods, workloads or AdmissionReviews in YAML or JSON; - is stdin"
    )
    command.add_argument("--settings", metavar="FILE", help="settings document; without it the defaults hold")
    command.add_argument(
        "--cluster-dump",
        metavar="FILE",
        help="objects of a cluster, from: kubectl get -A -o json namespaces,nodes,priorityclasses,deployments,"
        "replicasets,statefulsets,jobs,cronjobs,pods,podmigrations; without it an ordinary cluster is assumed",
    )
    return parser


def _add_serve(command: argparse.ArgumentParser) -> None:
    command.set_defaults(run=_serve)
    serve_options.add(command, port=8443, what="POST /mutate", tls_needed=True)
    command.add_argument(
        "--bundle-from", metavar="CONFIG", help="not ready unless this MutatingWebhookConfiguration trusts --cert"
    )


def _reports(name: str, view: View, *, assume: bool) -> Iterator[dict[str, documents.Plain]]:
    now = datetime.now(UTC)
    try:
        listed = explain.documents(_text(name))
        if not listed:
            raise Unusable(f"{name}: there is no object in it")
        for document in listed:
            body, seen = explain.request(document, view, assume=assume)
            parsed = review.parse(body)
            if isinstance(parsed, BadRequest):
                raise Unusable(f"{name}: {parsed.message}")
            decision = mutate.decide(parsed, seen, now)
            placed = (explain.PLACED,) if explain.was_placed(document) else ()
            yield explain.report(parsed, decision, (*(explain.ASSUMED if assume else ()), *placed))
    except (explain.NotReviewable, msgspec.ValidationError) as refused:
        raise Unusable(f"{name}: {refused}") from refused


def _settings(name: str | None) -> Settings:
    if name is None:
        return Settings()
    try:
        return settings_load.load(_text(name))
    except InvalidSettings as invalid:
        raise Unusable("\n".join(f"{name}: {mistake}" for mistake in invalid.mistakes)) from invalid


def _view(name: str | None, settings: Settings) -> View:
    if name is None:
        return explain.assumed_cluster(settings)
    try:
        return snapshot.of_objects(explain.documents(_text(name)), settings)
    except (explain.NotReviewable, snapshot.NotUnderstood) as refused:
        raise Unusable(f"{name}: {refused}") from refused


def _text(name: str) -> str:
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text()
    except OSError as unreadable:
        raise Unusable(f"{name}: {unreadable.strerror}") from unreadable
    except UnicodeDecodeError as undecodable:
        raise Unusable(f"{name}: not UTF-8 text") from undecodable


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
