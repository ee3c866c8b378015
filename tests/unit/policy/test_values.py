from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policy import values
from policy.reasons import Malformed
from policy.values import MigrationId, MigrationStatus, Rescheduling, SafeToEvict, Spot, Tier

KEY = "scheduler.alpha.kubernetes.io/some"
Parser = Callable[[str, str], object]
PARSERS: list[Parser] = [
    values.maintenance, values.rescheduling, values.spot, values.tier, values.migration_status,
    values.safe_to_evict,
    values.spot_percentage, values.min_on_demand, values.do_not_disrupt, values.migration_id,
    values.migration_time,
    values.original_pod, values.original_pod_name, values.migration_target, values.migrated_from,
    values.migration_reason,
]  # fmt: skip


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (values.maintenance, "true", True),
        (values.rescheduling, "enabled", Rescheduling.ENABLED),
        (values.rescheduling, "disabled", Rescheduling.DISABLED),
        (values.spot, "prefer", Spot.PREFER),
        (values.spot, "require", Spot.REQUIRE),
        (values.spot, "avoid", Spot.AVOID),
        (values.spot, "ignore", Spot.IGNORE),
        (values.tier, "critical", Tier.CRITICAL),
        (values.tier, "batch", Tier.BATCH),
        (values.migration_status, "in-progress", MigrationStatus.IN_PROGRESS),
        (values.migration_status, "cancelled", MigrationStatus.CANCELLED),
        (values.safe_to_evict, "on-completion", SafeToEvict.ON_COMPLETION),
        (values.spot_percentage, "0", 0),
        (values.spot_percentage, "100", 100),
        (values.min_on_demand, "2147483647", 2147483647),
        (values.do_not_disrupt, "true", True),
        (values.do_not_disrupt, "false", False),
        (values.do_not_disrupt, "1h30m", timedelta(minutes=90)),
        (values.migration_id, "migration-1703123456789-a1", MigrationId(1703123456789, "a1")),
        (values.migration_time, "2023-12-21T10:30:45Z", datetime(2023, 12, 21, 10, 30, 45, tzinfo=UTC)),
        (values.original_pod, "0d1e8a52-1c1f-4b0e-9d3b-0a8f5f3f6a11", "0d1e8a52-1c1f-4b0e-9d3b-0a8f5f3f6a11"),
        (values.original_pod_name, "web-7d9c", "web-7d9c"),
        (values.migration_target, "node-1.example.org", "node-1.example.org"),
        (values.migrated_from, "worker1", "worker1"),
        (values.migration_reason, "LoadBalancing", "LoadBalancing"),
    ],
    ids=lambda it: getattr(it, "__name__", None) or str(it)[:24],
)
def test_accepted(parse: Parser, text: str, value: object) -> None:
    assert parse(KEY, text) == value


@pytest.mark.parametrize(
    ("parse", "text", "named"),
    [
        (values.maintenance, "True", "'true'"),
        (values.maintenance, "false", "remove the label"),
        (values.rescheduling, "on", "'enabled' or 'disabled'"),
        (values.spot, "Prefer", "'prefer', 'require', 'avoid' or 'ignore'"),
        (values.tier, "gold", "'critical', 'standard' or 'batch'"),
        (values.migration_status, "InProgress", "'in-progress'"),
        (values.safe_to_evict, "yes", "'on-completion'"),
        (values.spot_percentage, "101", "from 0 to 100"),
        (values.spot_percentage, "50%", "from 0 to 100"),
        (values.spot_percentage, "-1", "from 0 to 100"),
        (values.spot_percentage, "050", "from 0 to 100"),
        (values.spot_percentage, "\u0665\u0660", "from 0 to 100"),
        (values.min_on_demand, "2147483648", "from 0 to 2147483647"),
        (values.min_on_demand, "1.5", "a whole number"),
        (values.do_not_disrupt, "-1h", "a duration"),
        (values.migration_id, "migration-1703123456789", "<suffix"),
        (values.migration_id, "migration-17-a", "<unix milliseconds>"),
        (values.migration_time, "2023-12-21T10:30:45+01:00", "UTC"),
        (values.migration_time, "2023-06-31T10:30:45Z", "RFC 3339"),
        (values.original_pod, "", "UID"),
        (values.original_pod_name, "Web", "name of a pod"),
        (values.migration_target, "a" * 254, "name of a node"),
        (values.migrated_from, "a" * 64, "63"),
        (values.migrated_from, "", "63"),
        (values.migration_reason, "-", "strategy"),
    ],
    ids=lambda it: getattr(it, "__name__", None) or str(it)[:24],
)
def test_refused_with_key_value_and_format(parse: Parser, text: str, named: str) -> None:
    refusal = parse(KEY, text)
    assert isinstance(refusal, Malformed)
    assert (refusal.key, refusal.value) == (KEY, text)
    assert named in refusal.accepted
    assert KEY in str(refusal)


@given(st.sampled_from(PARSERS), st.text())
def test_nothing_a_user_writes_raises(parse: Parser, text: str) -> None:
    parsed = parse(KEY, text)
    assert parsed is not None
    assert not isinstance(parsed, Malformed) or parsed.value == text


def test_a_huge_value_is_cut_in_the_message() -> None:
    assert len(str(values.spot(KEY, "x" * 200_000))) < 250


@given(st.integers(10**12, 10**13 - 1), st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=1, max_size=10))
def test_migration_id_reads_back_and_is_a_label_value(unix_ms: int, suffix: str) -> None:
    identity = MigrationId(unix_ms, suffix)
    assert values.migration_id(KEY, str(identity)) == identity
    assert values.is_label_value(str(identity))


@given(st.datetimes(timezones=st.just(UTC), min_value=datetime(2000, 1, 1), max_value=datetime(2200, 1, 1)))  # noqa: DTZ001
def test_time_reads_back(when: datetime) -> None:
    assert values.migration_time(KEY, values.format_time(when)) == when.replace(microsecond=0)


DNS_PART = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True)
NODE_NAMES = st.lists(DNS_PART, min_size=1, max_size=6).map(".".join).filter(lambda name: len(name) <= 253)


@given(NODE_NAMES)
def test_every_node_name_becomes_a_label_value(name: str) -> None:
    label = values.label_for_node(name)
    assert values.is_label_value(label)
    assert values.migrated_from(KEY, label) == label
    assert label == name or len(name) > 63


def test_long_node_names_with_the_same_beginning_stay_apart() -> None:
    names = [f"{'gke-pool-' * 10}{number}" for number in range(1000)]
    assert len({values.label_for_node(name) for name in names}) == 1000
    assert values.label_for_node(names[0]).startswith("gke-pool-gke-pool-")


@pytest.mark.parametrize(
    ("text", "valid"),
    [
    ("", True), ("a", True), ("a.b_c-d", True), ("A" * 63, True), ("A" * 64, False), ("-a", False),
    ("a.", False), ("a b", False), ("ä", False), ("a\n", False),
    ],
    ids=repr,
)  # fmt: skip
def test_label_value(text: str, valid: bool) -> None:
    assert values.is_label_value(text) is valid


@pytest.mark.parametrize(
    ("text", "valid"),
    [("a", True), ("A_b.c-d", True), ("example.org/a", True), ("a" * 63, True), ("x" * 64, False), ("", False),
    ("example.org/", False), ("/a", False), ("a/b/c", False), ("Example.org/a", False), ("a b", False), ("-a", False),
    ("a-", False), ("*", False), ("a" * 254 + "/b", False)],
    ids=lambda value: str(value)[:20],
)  # fmt: skip
def test_label_keys(text: str, valid: bool) -> None:
    assert values.is_label_key(text) is valid


@pytest.mark.parametrize(
    ("text", "valid"),
    [("a", True), ("kube-system", True), ("0a", True), ("a" * 63, True), ("x" * 64, False), ("", False),
    ("kube.system", False), ("-a", False), ("a-", False), ("A", False)],
    ids=lambda value: str(value)[:20],
)  # fmt: skip
def test_namespace_names(text: str, valid: bool) -> None:
    assert values.is_dns_label(text) is valid


STOPS = {
    "nothing": ("", ""),
    "no": ("false", ""),
    "yes": ("true", "x/stop on ConfigMap a/b"),
    "an unknown word": (
        "no",
        "x/stop on ConfigMap a/b, with 'no', which stops as 'true' does: use 'true' or 'false'",
    ),
    "another case": (
        "False",
        "x/stop on ConfigMap a/b, with 'False', which stops as 'true' does: use 'true' or 'false'",
    ),
}


@pytest.mark.parametrize(("value", "told"), STOPS.values(), ids=STOPS.keys())
def test_whatever_is_not_false_stops_and_what_is_unknown_is_named(value: str, told: str) -> None:
    assert values.emergency_stop("x/stop", value, "ConfigMap a/b") == told
