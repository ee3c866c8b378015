import pytest

from policy import keys, settings_load
from policy.mistakes import InvalidSettings, Mistake
from policy.settings import Settings

HEAD = "apiVersion: spotshift.dev/v1alpha1\nkind: Policy\n"
NEVER = "a list that is never open"


def mistakes(text: str) -> tuple[Mistake, ...]:
    with pytest.raises(InvalidSettings) as caught:
        settings_load.load(text)
    assert len(str(caught.value).splitlines()) == len(caught.value.mistakes)
    return caught.value.mistakes


ARGS = "pluginConfig: [{name: Rescheduler, args: {labelPrefix: example.com/, mode: enfroce}}]\n"
FOUND = {
    "beside another mistake": (f"{HEAD}mode: enfroce\nlabelPrefix: example.com/\n", "example.com/"),
    "beside an unknown key": (f"{HEAD}x: 1\nlabelPrefix: example.com/\n", "example.com/"),
    "beside a rule that is broken": (f"{HEAD}windows: [{{}}]\nlabelPrefix: example.com/\n", "example.com/"),
    "of another kind": ("kind: Polices\nlabelPrefix: example.com/\n", "example.com/"),
    "of a plugin": (HEAD + ARGS, "example.com/"),
    "none": (f"{HEAD}mode: enfroce\n", keys.DEFAULT_PREFIX),
    "none, in broken YAML": (f"{HEAD}mode: [\n# labelPrefix: example.com/\n", keys.DEFAULT_PREFIX),
    "none, in nothing": ("", keys.DEFAULT_PREFIX),
}


@pytest.mark.parametrize(("text", "prefix"), FOUND.values(), ids=FOUND.keys())
def test_the_prefix_is_found_whatever_else_is_wrong(text: str, prefix: str) -> None:
    assert mistakes(text)
    assert settings_load.standing_in(text) == Settings(label_prefix=prefix)


NOT_FOUND = {
    "wrong itself": (
        f"{HEAD}labelPrefix: example.com\n",
        "labelPrefix: 'example.com' is not accepted, use a DNS name",
    ),
    "no text": (f"{HEAD}labelPrefix:\n", "labelPrefix: null is not accepted, use text"),
    "two of them": (
        f"{HEAD}labelPrefix: a.com/\nlabelPrefix: b.com/\n",
        "labelPrefix: a second value on line 4 is not accepted, use each key once",
    ),
    "of a plugin": (HEAD + ARGS.replace(".com/", ".com"), "pluginConfig[0].args.labelPrefix: 'example.com' is not"),
    "in broken YAML": (
        f"{HEAD}labelPrefix: example.com/\nmode: [\n",
        "labelPrefix: a value in a document that cannot be read is not accepted, use a DNS name",
    ),
    "in the whole object": (
        "kind: ConfigMap\ndata: {settings.yaml: 'labelPrefix: example.com/'}\n",
        "labelPrefix: a value in a document that cannot be read is not accepted, use a DNS name",
    ),
}


@pytest.mark.parametrize(("text", "told"), NOT_FOUND.values(), ids=NOT_FOUND.keys())
def test_a_prefix_that_cannot_be_told_is_not_guessed(text: str, told: str) -> None:
    with pytest.raises(InvalidSettings) as caught:
        settings_load.standing_in(text)
    assert str(caught.value).startswith(told)


TEN = """\
apiVersion: spotshift.dev/v1
kind: Policy
reschedulingInterval: 30
cpuTreshold: 70
memoryThreshold: 180
maxReschedulePods: "10"
enabledStrategies: [LoadBalancing, NodeMaintenence]
windows: [{type: allow, from: 22:00, timeZone: Europe/Berln}]
placement: {spot: perfer}
excludedNamespaces: [Kube_System]
history: {historyTTL: 1h}
"""


def test_ten_mistakes_are_ten_messages_in_one_go() -> None:
    found = {mistake.path: mistake for mistake in mistakes(TEN)}
    assert set(found) == {
        "apiVersion",
        "reschedulingInterval",
        "cpuTreshold",
        "memoryThreshold",
        "maxReschedulePods",
        "enabledStrategies[1]",
        "windows[0].timeZone",
        "placement.spot",
        "excludedNamespaces[0]",
        "history.historyTTL",
    }
    wanted = "'spotshift.dev/v1alpha1'"  # all that is accepted, so no hint says it again
    assert found["apiVersion"] == Mistake("apiVersion", "'spotshift.dev/v1'", wanted)
    assert found["cpuTreshold"].hint == "did you mean 'cpuThreshold'?"
    assert found["placement.spot"].hint == "did you mean 'prefer'?"
    assert found["enabledStrategies[1]"].hint == "did you mean 'NodeMaintenance'?"
    assert found["reschedulingInterval"].hint == "add a unit"
    assert found["maxReschedulePods"].hint == "remove the quotes"
    assert found["memoryThreshold"] == Mistake("memoryThreshold", "180", "a number from 0 to 100")
    assert found["history.historyTTL"].accepted == "at least backoff.max, which is 6h"


@pytest.mark.parametrize(
    ("body", "path", "value", "accepted"),
    [
        ("mode: dry-run", "mode", "'dry-run'", "'enforce' or 'observe'"),
        ("mode: null", "mode", "null", "'enforce' or 'observe'"),
        ("labelPrefix: example.org", "labelPrefix", "'example.org'", "'/'"),
        ("reschedulingInterval: 500ms", "reschedulingInterval", "'500ms'", "from 1s to 24h"),
        ("reschedulingInterval: -30s", "reschedulingInterval", "'-30s'", "a duration"),
        ("reschedulingInterval: 30 s", "reschedulingInterval", "'30 s'", "a duration"),
        ("cpuThreshold: true", "cpuThreshold", "true", "a number"),
        ("cpuThreshold: .nan", "cpuThreshold", "'.nan'", "a number"),
        ("cpuThreshold: -1", "cpuThreshold", "-1", "from 0 to 100"),
        ("maxReschedulePods: 10.0", "maxReschedulePods", "10.0", "a whole number"),
        ("maxReschedulePods: 0", "maxReschedulePods", "0", "from 1"),
        ("enabledStrategies: LoadBalancing", "enabledStrategies", "'LoadBalancing'", "a list"),
        ("excludedNamespaces: {a: 1}", "excludedNamespaces", "a mapping", "a list"),
        ("limits: 5", "limits", "5", "a mapping"),
        ("limits: {perPod: 5}", "limits.perPod", "an unknown key", "a known key"),
        ("limits: {xyzzy: 5}", "limits.xyzzy", "an unknown key", "perNode, perNamespace"),
        ("windows: [{from: 08:00}]", "windows[0].type", "nothing", "'allow' or 'deny'"),
        ("windows: [{type: allow, days: []}]", "windows[0].days", "a list of 0", "a list"),
        ("windows: [{type: allow, days: [Monday]}]", "windows[0].days[0]", "'Monday'", "'Mon'"),
        ("windows: [{type: allow, to: 25:00}]", "windows[0].to", "'25:00'", "a time of day"),
        ("windows: [{type: deny, from: 08:00, to: 08:00}]", "windows[0]", "from 08:00 to 08:00", "different"),
        ("windows: [{type: deny}]", "windows", NEVER, "some open time"),
        (
            "windows: [{type: deny, to: 12:00}, {type: deny, from: 12:00}]",
            "windows",
            NEVER,
            "some open time",
        ),
        (
            "windows: [{type: allow, from: 09:00, to: 10:00}, {type: deny, from: 08:00, to: 11:00}]",
            "windows",
            NEVER,
            "some open time",
        ),
        ("placement: {spotWeight: 101}", "placement.spotWeight", "101", "from 1 to 100"),
        ("placement: {criticalNamespaces: ['-*']}", "placement.criticalNamespaces[0]", "'-*'", "namespace"),
        ("placement: {priorityClasses: {batch: A b}}", "placement.priorityClasses.batch", "'A b'", "Class"),
        ("migrations: {workers: 0}", "migrations.workers", "0", "from 1 to 64"),
        ("migrations: {temporaryPdb: {enabled: yes}}", "migrations.temporaryPdb.enabled", "'yes'", "true or"),
        ("migrations: {gracePeriodSeconds: -1}", "migrations.gracePeriodSeconds", "-1", "or null"),
        ("migrations: {hint: {avoidSourceWeight: 100}}", "migrations.hint.avoidSourceWeight", "100", "less"),
        ("backoff: {max: 1m}", "backoff.max", "1m", "at least backoff.initial, which is 5m"),
        ("history: {perWorkload: 3}", "history.perWorkload", "3", "at least 8"),
        ("history: {total: 9}", "history.total", "9", "at least history.perWorkload, which is 10"),
        ("enabledStrategies: [SpotMix, SpotMix]", "enabledStrategies", "'SpotMix' 2 times", "once"),
        ("strategies: {LoadBalancing: {weight: -1}}", "strategies.LoadBalancing.weight", "-1", "from 0"),
        ("strategies: {thirdParty: {SpotMix: {}}}", "strategies.thirdParty.SpotMix", "a name of ours", "no"),
        (
            "strategies: {ResourceOptimization: {source: prometheus}}",
            "strategies.ResourceOptimization.prometheusURL",
            "''",
            "address",
        ),
        (
            "strategies: {ResourceOptimization: {prometheusURL: prom:9090}}",
            "strategies.ResourceOptimization.prometheusURL",
            "'prom:9090'",
            "http",
        ),
        *(
            (
                f"strategies: {{ResourceOptimization: {{prometheusURL: '{address}'}}}}",
                "strategies.ResourceOptimization.prometheusURL",
                f"'{address}'",
                "http",
            )
            for address in (
                "http://",
                "http://:9090",
                "http://[",
                "http://prom:99999",
                "http://prom?a=b",
                "ftp://prom",
            )
        ),
        ("capacity: {labels: [{key: '', spot: [a]}]}", "capacity.labels[0].key", "''", "a label key"),
        ("strategies: {thirdParty: 5}", "strategies.thirdParty", "5", "a mapping of names"),
        ("capacity: {labels: [{key: a}]}", "capacity.labels[0]", "no values", "at least one"),
        ("capacity: {labels: [{spot: [a]}]}", "capacity.labels[0].key", "nothing", "a label key"),
        ("capacity: {labels: [{key: a b, spot: [a]}]}", "capacity.labels[0].key", "'a b'", "a label key"),
        ("capacity: {labels: [{key: A.org/a, spot: [a]}]}", "capacity.labels[0].key", "'A.org/a'", "a label key"),
        ("capacity: {labels: [{key: a, spot: [a b]}]}", "capacity.labels[0].spot[0]", "'a b'", "'*', or letters"),
        ("capacity: {labels: [{key: a, onDemand: [-]}]}", "capacity.labels[0].onDemand[0]", "'-'", "'*', or letters"),
        ("capacity: {taints: [{key: ''}]}", "capacity.taints[0].key", "''", "a taint key"),
        ("capacity: {taints: [{key: /a}]}", "capacity.taints[0].key", "'/a'", "a taint key"),
        ("capacity: {taints: [{key: a, value: é}]}", "capacity.taints[0].value", "'é'", "'*', or letters"),
        ("capacity: {taints: [{key: a, effect: NoRun}]}", "capacity.taints[0].effect", "'NoRun'", "'NoExecute'"),
        ("excludedNamespaces: [kube.system]", "excludedNamespaces[0]", "'kube.system'", "a-z, 0-9 and -"),
        ("placement: {criticalNamespaces: [a.b*]}", "placement.criticalNamespaces[0]", "'a.b*'", "namespace"),
        ("placement: {criticalNamespaces: [a-]}", "placement.criticalNamespaces[0]", "'a-'", "namespace"),
        ("extender: {metric: {best: 5, worst: 5}}", "extender.metric.worst", "5", "another number"),
        ("extender: {metric: {annotation: a b}}", "extender.metric.annotation", "'a b'", "an annotation key"),
        ("signals: {rows: [{kind: avoid, place: taint}]}", "signals.rows[0].key", "''", "key of a taint"),
        ("signals: {rows: [{kind: avoid, place: label, key: '*'}]}", "signals.rows[0].key", "'*'", "of a label"),
        ("signals: {rows: [{kind: avoid, place: label, key: a b*}]}", "signals.rows[0].key", "'a b*'", "of a label"),
        (
            "signals: {rows: [{kind: avoid, place: annotation, key: a/b/c}]}",
            "signals.rows[0].key",
            "'a/b/c'",
            "of an",
        ),
        ("signals: {rows: [{kind: avoid, place: condition, key: a b}]}", "signals.rows[0].key", "'a b'", "condition"),
        ("signals: {rows: [{kind: avoid, place: unschedulable, key: a}]}", "signals.rows[0].key", "'a'", "no key"),
        (
            "signals: {rows: [{kind: avoid, place: taint, key: a, value: b c}]}",
            "signals.rows[0].value",
            "'b c'",
            "or",
        ),
        (
            "signals: {rows: [{kind: avoid, place: condition, key: a, value: 'true'}]}",
            "signals.rows[0].value",
            "'true'",
            "'True', 'False' or 'Unknown'",
        ),
        ("signals: {rows: [{kind: avoid, place: node}]}", "signals.rows[0].place", "'node'", "'taint'"),
        ("mode: observe\nmode: enforce", "mode", "a second value on line 4", "once"),
    ],
)
def test_one_mistake(body: str, path: str, value: str, accepted: str) -> None:
    (found,) = mistakes(HEAD + body)
    assert (found.path, found.value) == (path, value)
    assert accepted in found.accepted


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("windows: [{type: deny, to: 12:00}, {type: deny, from: 12:01}]", id="one open minute a day"),
        pytest.param("windows: [{type: deny, days: [Mon, Tue, Wed, Thu, Fri, Sat]}]", id="Sunday"),
        pytest.param(
            "windows: [{type: deny, to: 12:00}, {type: deny, from: 12:00, timeZone: Europe/London}]",
            id="only while London has summer time",
        ),
        pytest.param("signals: {rows: [{kind: avoid, place: label, key: example.org/*}]}", id="a whole prefix"),
        pytest.param("signals: {rows: [{kind: avoid, place: taint, key: reboot-*}]}", id="the beginning of a name"),
        pytest.param("signals: {rows: [{kind: avoid, place: annotation, key: a, value: b c}]}", id="an annotation"),
        pytest.param("capacity: {taints: [{key: a/b, value: '', effect: NoExecute}]}", id="an empty taint value"),
        pytest.param("placement: {criticalNamespaces: [team-*, '*', a]}", id="patterns"),
    ],
)
def test_what_only_looks_like_a_mistake(body: str) -> None:
    settings_load.load(HEAD + body)


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        pytest.param("", [""], id="empty"),
        pytest.param("- a", [""], id="a list"),
        pytest.param("mode: observe", ["apiVersion", "kind"], id="no envelope"),
        pytest.param(HEAD.replace("Policy", "Polcy"), ["kind"], id="wrong kind"),
        pytest.param("a: [", [""], id="syntax"),
        pytest.param("pluginConfig: []", ["pluginConfig"], id="no plugin"),
        pytest.param("pluginConfig: [{name: Other, args: {}}]", ["pluginConfig"], id="another plugin"),
        pytest.param("pluginConfig: [{name: Rescheduler}]", ["pluginConfig[0].args"], id="no arguments"),
        pytest.param(
            "pluginConfig: [{name: Rescheduler, args: {cpuTreshold: 1}}]",
            ["pluginConfig[0].args.cpuTreshold"],
            id="path",
        ),
        pytest.param(
            "pluginConfig: [{name: Rescheduler, args: {history: {total: 1}}}]",
            ["pluginConfig[0].args.history.total"],
            id="path of a rule",
        ),
        pytest.param(
            "mode: observe\npluginConfig: [{name: Rescheduler, args: {}}]",
            ["mode"],
            id="settings beside a plugin",
        ),
        pytest.param("kind: Pod\npluginConfig: [{name: Rescheduler, args: {}}]", ["kind"], id="plugin in a pod"),
        pytest.param("kind: KubeSchedulerConfiguration", ["pluginConfig"], id="a scheduler without the plugin"),
    ],
)
def test_mistakes_of_the_whole_document(text: str, paths: list[str]) -> None:
    assert [found.path for found in mistakes(text)] == paths


def test_a_rule_is_silent_about_fields_that_are_wrong_themselves() -> None:
    (found,) = mistakes(HEAD + "history: {historyTTL: soon}\nbackoff: {max: 48h}")
    assert found.path == "history.historyTTL"


def test_a_long_value_is_cut_in_the_message() -> None:
    (found,) = mistakes(HEAD + f"mode: {'x' * 5000}")
    assert len(str(found)) < 300


@pytest.mark.parametrize("strategy", ["SpotReclaim", "SpotMix"])
def test_a_rest_after_an_interruption_is_not_longer_than_it_is_remembered(strategy: str) -> None:
    (found,) = mistakes(HEAD + f"strategies: {{{strategy}: {{coolDown: 25h}}}}")
    assert found == Mistake(f"strategies.{strategy}.coolDown", "25h", "at most history.historyTTL, which is 24h")
