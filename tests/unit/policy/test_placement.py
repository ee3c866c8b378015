from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policy import keys, placement
from policy.placement import Decision, Level, Origin, Subject
from policy.settings import Placement, Settings
from policy.values import Rescheduling, Spot, Tier

OURS = keys.under()
DEFAULTS = Settings(placement=Placement(critical_namespaces=("*",)))


@dataclass(frozen=True)
class Meta:
    annotations: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)


def meta(**annotations: str) -> Meta:
    return Meta({getattr(OURS, name): value for name, value in annotations.items()})


def decide(
    pod: Meta | None = None,
    workload: Meta | None = None,
    namespace: Meta | None = None,
    *,
    name: str = "shop",
    settings: Settings = DEFAULTS,
) -> Decision:
    subject = Subject(namespace_name=name, pod=pod or Meta(), workload=workload, namespace=namespace)
    return placement.decide(subject, keys=OURS, settings=settings)


def test_defaults_of_a_pod_that_says_nothing() -> None:
    found = decide()
    assert (found.intent.spot, found.intent.tier) == (Spot.PREFER, Tier.STANDARD)
    assert found.intent.rescheduling is Rescheduling.ENABLED
    assert (found.intent.spot_percentage, found.intent.min_on_demand) == (None, None)
    assert {origin.level for origin in found.origins.values()} == {Level.SETTINGS}
    assert found.warnings == ()


@pytest.mark.parametrize(
    ("pod", "workload", "namespace", "spot", "level"),
    [
        pytest.param("avoid", "require", "ignore", Spot.AVOID, Level.POD, id="pod first"),
        pytest.param(None, "require", "ignore", Spot.REQUIRE, Level.WORKLOAD, id="then workload"),
        pytest.param(None, None, "ignore", Spot.IGNORE, Level.NAMESPACE, id="then namespace"),
        pytest.param(None, None, None, Spot.PREFER, Level.SETTINGS, id="then settings"),
        pytest.param("oops", "require", None, Spot.REQUIRE, Level.WORKLOAD, id="malformed is passed over"),
    ],
)
def test_precedence_of_spot(
    pod: str | None, workload: str | None, namespace: str | None, spot: Spot, level: Level
) -> None:
    found = decide(*(meta() if text is None else meta(spot=text) for text in (pod, workload, namespace)))
    assert found.intent.spot is spot
    assert found.origins["spot"].level is level


@pytest.mark.parametrize("level", [Level.POD, Level.WORKLOAD, Level.NAMESPACE])
@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("tier", "batch", Tier.BATCH),
        ("spot", "require", Spot.REQUIRE),
        ("rescheduling", "disabled", Rescheduling.DISABLED),
        ("spot_percentage", "70", 70),
        ("min_on_demand", "0", 0),
    ],
)
def test_every_field_at_every_level(level: Level, name: str, text: str, value: object) -> None:
    layers = {each: meta(**{name: text}) if each is level else meta() for each in tuple(Level)[:3]}
    found = decide(layers[Level.POD], layers[Level.WORKLOAD], layers[Level.NAMESPACE])
    assert getattr(found.intent, name) == value
    assert found.origins[name] == Origin(level, getattr(OURS, name))


@pytest.mark.parametrize(
    ("pod", "namespace", "spot", "origin"),
    [
        pytest.param(meta(tier="critical"), None, Spot.AVOID, Origin(Level.POD, OURS.tier), id="critical avoids"),
        pytest.param(meta(tier="batch"), None, Spot.PREFER, Origin(Level.POD, OURS.tier), id="batch prefers"),
        pytest.param(
            meta(tier="standard"),
            None,
            Spot.REQUIRE,
            Origin(Level.SETTINGS, "placement.spot"),
            id="standard: settings",
        ),
        pytest.param(
            meta(tier="critical", spot="prefer"),
            None,
            Spot.PREFER,
            Origin(Level.POD, OURS.spot),
            id="said wins",
        ),
        pytest.param(
            meta(tier="critical"),
            meta(spot="require"),
            Spot.REQUIRE,
            Origin(Level.NAMESPACE, OURS.spot),
            id="said further away wins too",
        ),
    ],
)
def test_tier_chooses_the_default_intent(pod: Meta, namespace: Meta | None, spot: Spot, origin: Origin) -> None:
    required = Settings(placement=Placement(spot=Spot.REQUIRE, critical_namespaces=("*",)))
    found = decide(pod, None, namespace, settings=required)
    assert (found.intent.spot, found.origins["spot"]) == (spot, origin)


@pytest.mark.parametrize(
    ("label", "annotation", "expected", "warnings"),
    [
        pytest.param("disabled", None, Rescheduling.DISABLED, 0, id="label"),
        pytest.param(None, "disabled", Rescheduling.DISABLED, 0, id="annotation"),
        pytest.param("enabled", "enabled", Rescheduling.ENABLED, 0, id="agree"),
        pytest.param("enabled", "disabled", Rescheduling.DISABLED, 1, id="conflict"),
        pytest.param("disabled", "enabled", Rescheduling.DISABLED, 1, id="conflict the other way"),
        pytest.param("oops", None, "oops", 1, id="malformed label"),
        pytest.param(None, "", "", 1, id="empty annotation"),
        pytest.param("oops", "disabled", Rescheduling.DISABLED, 1, id="malformed label beside a no"),
        pytest.param("enabled", "oops", "oops", 1, id="malformed annotation beside a yes"),
        pytest.param("oops", "uh", "oops", 2, id="both malformed"),
    ],
)
def test_rescheduling_as_label_and_annotation(
    label: str | None, annotation: str | None, expected: Rescheduling | str, warnings: int
) -> None:
    """A text that is expected is one that cannot be read, and counts as a no."""
    pod = Meta(
        annotations={} if annotation is None else {OURS.rescheduling: annotation},
        labels={} if label is None else {OURS.rescheduling: label},
    )
    found = decide(pod)
    misread = found.origins["rescheduling"].misread
    assert (expected if misread is None else misread.value) == expected
    assert found.intent.rescheduling is (expected if misread is None else Rescheduling.DISABLED)
    assert len(found.warnings) == warnings


@pytest.mark.parametrize(
    ("pod", "workload", "namespace", "level"),
    [
        pytest.param("oops", "enabled", "enabled", Level.POD, id="on the pod, before those who say yes"),
        pytest.param(None, "oops", "enabled", Level.WORKLOAD, id="on the workload"),
        pytest.param(None, None, "oops", Level.NAMESPACE, id="on the namespace"),
        pytest.param("enabled", "oops", "oops", None, id="behind a pod that says yes"),
    ],
)
def test_what_cannot_be_read_about_moves_is_a_no_at_its_level(
    pod: str | None, workload: str | None, namespace: str | None, level: Level | None
) -> None:
    layers = (meta() if text is None else meta(rescheduling=text) for text in (pod, workload, namespace))
    found = decide(*layers)
    origin = found.origins["rescheduling"]
    assert (origin.level if origin.misread is not None else None) is level
    assert (found.intent.rescheduling is Rescheduling.DISABLED) == (level is not None)


def test_a_pod_that_opts_in_beats_a_namespace_that_opts_out() -> None:
    found = decide(Meta(labels={OURS.rescheduling: "enabled"}), None, meta(rescheduling="disabled"))
    assert found.intent.rescheduling is Rescheduling.ENABLED


def test_critical_is_nobodys_by_default() -> None:
    found = decide(meta(tier="critical"), settings=Settings())
    assert found.intent.tier is Tier.STANDARD
    assert [(warning.what.key, warning.what.value) for warning in found.warnings] == [(OURS.tier, "critical")]


@pytest.mark.parametrize(
    ("allowed", "name", "tier"),
    [
        pytest.param(("*",), "shop", Tier.CRITICAL, id="all"),
        pytest.param(("shop",), "shop", Tier.CRITICAL, id="named"),
        pytest.param(("pay", "sh*"), "shop", Tier.CRITICAL, id="beginning"),
        pytest.param(("shop",), "shop-2", Tier.STANDARD, id="another"),
        pytest.param((), "shop", Tier.STANDARD, id="none"),
    ],
)
def test_critical_only_where_allowed(allowed: tuple[str, ...], name: str, tier: Tier) -> None:
    settings = Settings(placement=Placement(critical_namespaces=allowed))
    found = decide(meta(tier="critical"), name=name, settings=settings)
    assert found.intent.tier is tier
    assert [name in warning.what.accepted for warning in found.warnings] == ([] if tier is Tier.CRITICAL else [True])


def test_an_excluded_namespace_is_left_alone_unless_a_pod_asks() -> None:
    silent = decide(name="kube-system")
    assert silent.intent.spot is Spot.IGNORE
    assert silent.intent.rescheduling is Rescheduling.DISABLED
    assert silent.origins["spot"] == Origin(Level.SETTINGS, "excludedNamespaces")
    assert decide(meta(spot="avoid"), name="kube-system").intent.spot is Spot.AVOID


def test_malformed_values_are_all_told() -> None:
    found = decide(meta(spot="x", tier="y", rescheduling="z"), meta(spot_percentage="101"), meta(min_on_demand="-1"))
    on = {Level.POD: "yxz", Level.WORKLOAD: ["101"], Level.NAMESPACE: ["-1"]}
    assert [(it.level, it.what.value) for it in found.warnings] == [(at, text) for at in on for text in on[at]]
    assert found.intent == replace(decide().intent, rescheduling=Rescheduling.DISABLED)


TEXTS = st.text(max_size=6) | st.sampled_from(("prefer", "avoid", "critical", "batch", "enabled", "disabled", "50"))
NAMES = st.sampled_from(("spot", "tier", "rescheduling", "spot_percentage", "min_on_demand"))
METAS = st.dictionaries(NAMES, TEXTS).map(lambda said: meta(**said))


@given(METAS, st.none() | METAS, st.none() | METAS)
def test_always_a_whole_answer_with_an_origin_for_every_field(
    pod: Meta, workload: Meta | None, namespace: Meta | None
) -> None:
    found = decide(pod, workload, namespace)
    assert set(found.origins) == {"spot", "tier", "rescheduling", "spot_percentage", "min_on_demand"}
    for name, origin in found.origins.items():
        said = {Level.POD: pod, Level.WORKLOAD: workload, Level.NAMESPACE: namespace}.get(origin.level)
        assert origin.level is Level.SETTINGS or (said is not None and origin.key in said.annotations), name
