# ruff: noqa: E501 - the catalogue is a table, one row per line
"""Every log line the product can write: its level, its constant message, its fields and what it means.

The catalogue is closed. A line that is not here cannot be written, and a field that an entry does not name cannot be
attached to it, so whoever builds an alert or a parser can read this file (or the page made from it) and be done.
Decides nothing and touches nothing.
"""

import enum
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

FIELDS: Final[dict[str, str]] = {
    "address": "host:port that is listened on or talked to",
    "attempt": "which try this is, counted from 1",
    "avoidNode": "node the replacement is asked to stay away from",
    "budget": "name of a PodDisruptionBudget",
    "cause": "short code of what made this happen",
    "certificate": "which certificate, by its role and never its content",
    "code": "HTTP status of the answer",
    "component": "which program writes: webhook, descheduler, certs, extender or console",
    "count": "how many",
    "delaySeconds": "seconds until the next try",
    "detail": "one sentence for a person",
    "dropped": "how many were given up",
    "error": "type and first line of an error, scrubbed",
    "expiresAt": "RFC 3339 time",
    "field": "path of one field",
    "holder": "identity that holds the lease",
    "identity": "identity of this process in the election",
    "logger": "name of the library that spoke",
    "mode": "how a pod is moved: Evict, Surge or Recreate",
    "migration": "name of a PodMigration",
    "moves": "how many moves the plan holds",
    "name": "name of the object the line is about",
    "namespace": "namespace of the object the line is about",
    "newPod": "name of the replacement",
    "node": "name of a node",
    "objects": "how many objects are known",
    "onTarget": "whether the replacement landed where it was asked to",
    "passId": "number of the pass within this process",
    "pod": "name of the pod that is moved or admitted",
    "preferredNode": "node the replacement is asked to go to",
    "reason": "code of a refusal or of an outcome",
    "refusals": "how many proposals the plan refused",
    "resource": "plural name of a Kubernetes resource",
    "seconds": "how long it took, in seconds",
    "settings": "every effective setting, flattened to dotted names",
    "signal": "name of a node signal or of a process signal",
    "sourceNode": "node the pod leaves",
    "step": "step of the migration",
    "strategy": "name of the strategy that wants the move",
    "targetNode": "node the replacement is meant for or sits on",
    "traceback": "stack of an unexpected error, scrubbed",
    "transitions": "how often the lease changed hands",
    "uid": "UID of the object the line is about",
    "version": "version of the program or of an object",
    "workload": "kind/name of the controller of a pod",
}
"""Every key a line may carry, with its meaning: one name for one thing in all programs."""

EVERYWHERE: Final = frozenset({"component", "identity", "passId", "migration", "namespace", "pod", "resource"})
"""Keys that may be bound once to a logger and then stand on every line it writes."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One kind of line."""

    level: int
    message: str
    fields: tuple[str, ...]
    meaning: str


def _debug(message: str, fields: str, meaning: str) -> Entry:
    return Entry(logging.DEBUG, message, tuple(fields.split()), meaning)


def _info(message: str, fields: str, meaning: str) -> Entry:
    return Entry(logging.INFO, message, tuple(fields.split()), meaning)


def _warn(message: str, fields: str, meaning: str) -> Entry:
    return Entry(logging.WARNING, message, tuple(fields.split()), meaning)


def _error(message: str, fields: str, meaning: str) -> Entry:
    return Entry(logging.ERROR, message, tuple(fields.split()), meaning)


# fmt: off
class Log(enum.Enum):
    """The closed set. `Log.X.name` is the machine-readable `event` of a line; one line per entry keeps it a table."""

    # processes
    STARTING = _info("starting", "version settings", "First line of a process: its version and every effective setting.")
    STOPPING = _info("stopping", "signal", "A signal or a fatal error asked the process to end; work in flight is finished or handed over.")
    STOPPED = _info("stopped", "seconds", "Last line of a process.")
    LISTENING = _info("listening", "address", "An HTTP endpoint is open.")
    SETTINGS_RELOADED = _info("settings reloaded", "settings", "The settings file changed and the new version is in force.")
    SETTINGS_REJECTED = _error("settings rejected, the old ones stay in force", "count detail field", "The settings file changed and the new version has mistakes.")
    INTERNAL_ERROR = _error("unexpected error", "error traceback detail", "A defect of ours: caught at the edge of a request or a pass and counted.")
    LIBRARY = _warn("message of a library", "logger detail", "A library we use wrote a warning or an error.")
    LOG_REFUSED = _error("a log line was refused", "detail", "A caller used an unknown event, an unknown field or a value that must not be logged.")

    # passes of the descheduler
    PASS_STARTED = _debug("pass started", "cause objects", "A reconcile pass begins: at the start, after a change, after an interruption or after the interval.")
    PASS_FINISHED = _info("pass finished", "seconds moves refusals", "A reconcile pass ended well. One that finds nothing is told with `--log-level=debug` only.")
    PASS_FAILED = _error("pass failed", "seconds error", "A reconcile pass ended with an error; the next one starts from the cluster as it is.")
    PROPOSAL_REFUSED = _debug("proposal refused", "strategy node reason detail workload", "The planner said no, and why. Once for each pod and set of reasons, as its Event.")
    VALUE_IGNORED = _warn("value not accepted", "name detail", "A label or annotation holds a value that means nothing. Once for each, as its Event.")
    USAGE_MEASURED = _info("usage is measured", "cause", "`metrics` or `prometheus` answers, and what it measures is used from now on.")
    USAGE_UNKNOWN = _info("usage is not measured", "error", "Nobody whom the settings name measures what nodes use, or no longer; `error` is of the last one asked. It is asked again.")
    STRATEGY_LEFT_OUT = _error("strategy left out", "strategy detail", "A third-party strategy cannot be used or failed while it was asked; all others go on. Once for each cause, as its Event.")
    OBSERVE_ONLY = _warn("observing only", "cause", "The emergency stop or the mode holds back every new side effect, from now on.")

    # one migration
    MIGRATION_STARTED = _info("migration started", "strategy mode sourceNode targetNode workload", "The machine took up a PodMigration.")
    HINT_PUBLISHED = _info("hint published", "preferredNode avoidNode", "From now on the webhook tells the replacement where to go.")
    TEMPORARY_PDB_CREATED = _info("temporary budget created", "budget workload", "The workload had no budget of its own, so it got one for the time of the move.")
    TEMPORARY_PDB_REMOVED = _info("temporary budget removed", "budget cause", "The last open migration ended, or the user brought a budget.")
    EVICTED = _info("evicted", "sourceNode strategy", "The eviction of the pod was accepted.")
    SURGED = _info("scaled up for the move", "workload count", "One replica more until the new pod is available; `count` is the number from now on.")
    SURGE_ENDED = _info("scaled back after the move", "workload count", "The additional replica is taken back; `count` is the number from now on.")
    COPY_CREATED = _info("copy created", "newPod preferredNode", "A pod without a controller got its copy.")
    REPLACEMENT_READY = _info("replacement ready", "newPod targetNode onTarget seconds", "The new pod is Ready.")
    CLEANED_UP = _info("cleaned up", "seconds", "What the migration put on pods and workload is gone again, so long after its end.")
    RETRIED = _info("retried", "step attempt delaySeconds error", "A step failed and is tried again; `error` names the budget that refused an eviction.")
    ROLLED_BACK = _warn("rolled back", "step reason", "What the migration itself had changed was reversed: marks, a copy, a raised number of replicas.")
    TIMED_OUT = _warn("timed out", "step seconds", "A step did not reach its goal in its time.")
    MIGRATION_FINISHED = _info("migration finished", "reason sourceNode targetNode onTarget seconds", "Completed: the workload runs elsewhere.")
    MIGRATION_FAILED = _warn("migration failed", "reason step attempt detail", "Failed for good; the workload cools down.")
    MIGRATION_CANCELLED = _info("migration cancelled", "reason step detail", "The cause is gone, or somebody deleted the object.")
    COOLING_DOWN = _info("workload cools down", "workload reason delaySeconds", "Its last move did not help: it is left alone for a while.")

    # nodes
    NODE_SIGNAL = _info("node signal", "node signal expiresAt", "A node carries a new maintenance, interruption or rebalance signal.")
    NODE_SIGNAL_GONE = _info("node signal gone", "node signal", "The signal was taken back, and the node is still there.")
    NODE_CORDONED = _info("node cordoned", "node cause", "We made the node unschedulable and marked it as ours.")
    NODE_UNCORDONED = _info("node uncordoned", "node cause", "We took our own cordon back.")
    NODE_DRAINED = _info("node drained", "node seconds", "Nothing that we may move is left.")

    REQUEST_FAILED = _warn("request failed", "name error", "A node or a budget could not be written; it is tried again.")

    # admission
    ADMITTED = _debug("pod admitted", "workload preferredNode avoidNode count seconds", "The answer for one pod: `count` operations, and the nodes of the moves that it may be the replacement of.")

    # certificates
    CERTIFICATE_ISSUED = _info("certificate issued", "certificate expiresAt", "A CA or leaf certificate was signed.")
    CERTIFICATE_LOADED = _info("certificate loaded", "certificate expiresAt", "A server took a new certificate without a restart.")
    CERTIFICATE_REJECTED = _error("certificate rejected, the old one stays", "certificate error", "The file on disk cannot be used.")
    BUNDLE_PUBLISHED = _info("bundle published", "count", "The webhook configuration trusts this many CAs.")

    # the door to the cluster
    LEADER_GAINED = _info("leadership gained", "transitions", "This process leads from now on.")
    LEADER_LOST = _warn("leadership lost", "reason holder", "The term ended without our wish; the work of the term was told to stop.")
    LEADER_RELEASED = _info("leadership released", "seconds", "The lease was handed back, so another can take it at once.")
    LEADER_OBSERVED = _info("leader observed", "holder transitions", "Somebody else holds the lease.")
    LEASE_RETRYING = _warn("lease request failed", "error attempt delaySeconds", "A request for the lease failed, or there was no thread for the work of a term; tried again.")
    LEASE_WORKER_STUCK = _error("work of the last term did not stop", "seconds", "No new term is begun until it has; liveness should restart the process.")
    REFLECTOR_SYNCED = _info("synced", "objects seconds version", "The first complete list is in the store.")
    REFLECTOR_RELISTED = _info("listed again", "cause objects count seconds version", "The watch could not go on from where it was; `count` real changes were found.")
    REFLECTOR_RETRYING = _warn("watch interrupted", "error attempt delaySeconds", "The list or watch failed and is tried again.")
    REFLECTOR_DENIED = _error("list or watch denied", "error code delaySeconds", "Credentials or rights are missing, or the server has just started and does not know them yet; tried again, ever more slowly.")
    REFLECTOR_PAGED = _info("streaming list not available", "cause", "The server does not offer it, so pages are used from now on; or streams broke off, so this one list comes in pages.")
    OBJECT_UNREADABLE = _error("object left out, it cannot be decoded", "name uid", "One object is not what the API promises; it is treated as absent and the others are not affected. Told once per object.")
    HANDLER_FAILED = _error("handler failed", "error traceback", "The receiver of a change raised; the watch goes on.")
    EVENTS_DROPPED = _warn("events dropped", "dropped cause", "Kubernetes Events could not be delivered or were too many.")
# fmt: on


def markdown() -> str:
    """The page for people, made from the table above and nothing else."""
    return "\n".join(_page())


def _page() -> Iterator[str]:
    yield "# Log lines"
    yield ""
    yield "Every line the programs can write. `event` is the key to filter on; messages never change."
    yield "This page is generated from `telemetry/catalogue.py` by `python -m telemetry docs`."
    yield ""
    yield "| event | level | message | fields | meaning |"
    yield "|---|---|---|---|---|"
    for entry in Log:
        names = " ".join(f"`{name}`" for name in entry.value.fields)
        level = logging.getLevelName(entry.value.level).lower()
        yield f"| `{entry.name}` | {level} | {entry.value.message} | {names} | {entry.value.meaning} |"
    yield ""
    yield "Every line also carries `time`, `level`, `event` and `message`, and may carry "
    yield " ".join(f"`{name}`" for name in sorted(EVERYWHERE)) + "."
    yield ""
    yield "## Fields"
    yield ""
    yield "| field | meaning |"
    yield "|---|---|"
    for name, meaning in sorted(FIELDS.items()):
        yield f"| `{name}` | {meaning} |"
    yield ""
