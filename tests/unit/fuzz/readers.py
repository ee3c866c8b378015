"""Everything that reads the state of a cluster without asking anybody: none of it may raise, whatever users wrote."""

from dataclasses import replace
from datetime import UTC, datetime

from console.views import drains, move_list, node_list, node_story, overview
from console.web.picture import Painter
from descheduler import explanation, gauges, maintenance, memory, misread, plan, report
from descheduler.gathered import Gathered
from descheduler.guards import Context
from descheduler.migration import leftovers, machine
from descheduler.migration.judge import Judge
from descheduler.state import ClusterState
from policy import keys
from policy.settings import Settings
from tests.unit.console import looks

NOW = datetime(2026, 11, 16, 6, tzinfo=UTC)
KEYS = keys.under()


def read(state: ClusterState, settings: Settings, *, steps: bool = True) -> None:
    """As a pass of the leader, a look of the console and a page of the dashboard do it. `steps`: the status of every
    migration was written by us, which a policy sees to, so each has a next step.
    """
    context = Context(state, settings, KEYS, NOW, memory.cooldowns(state.migrations.values(), settings, NOW))
    made = plan.make(state, settings, NOW)
    list(gauges.read(state, made, settings, NOW))
    list(maintenance.mistakes(context))
    maintenance.look(context)
    memory.expired(state.migrations.values(), settings, NOW)
    list(leftovers.find(state, KEYS))
    list(misread.find(context))
    for pod in list(state.pods.values())[:3]:
        explanation.of_pod(pod, Gathered(state, 1), settings, NOW)
    judge = Judge(lambda: settings, lambda: "", holder="me")
    for migration in state.migrations.values() if steps else ():
        machine.step(migration, judge(migration, state, NOW), NOW)
    report.of_plan(made, Gathered(state, 1))
    _shown(state, settings, made)


def _shown(state: ClusterState, settings: Settings, made: plan.Plan) -> None:
    look = replace(looks.of(settings=settings), gathered=Gathered(state, 1), now=NOW)
    seen = node_list.see(look)
    list(node_list.pages(seen, look, wide=True))
    for one in seen:
        list(node_story.pages(node_story.of(one, look), one, NOW))
    list(overview.pages(overview.of(look, seen), NOW, wide=True))
    move_list.table(list(state.migrations.values()), NOW, namespaces=True, wide=True)
    found = [drains.read(it.node, KEYS) for it in state.nodes.values() if it.node is not None]
    list(drains.pages([it for it in found if it is not None], NOW, wide=True))
    Painter().paint(look, made)
