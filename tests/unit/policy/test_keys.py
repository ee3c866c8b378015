import dataclasses

import pytest

from policy import keys, values

DOCUMENTED = {
    "maintenance", "rescheduling", "spot", "spot-percentage", "min-on-demand", "tier", "migration-id",
    "migration-status",
    "migrated-from", "migration-reason", "migration-time", "original-pod", "original-pod-name",
    "migration-target",
}  # fmt: skip


def test_documented_keys_under_the_default_prefix() -> None:
    spelled = set(keys.under().all)
    assert {f"scheduler.alpha.kubernetes.io/{name}" for name in DOCUMENTED} <= spelled


def test_another_prefix_changes_every_key() -> None:
    ours = keys.under("spot.example.org/")
    assert all(key.startswith("spot.example.org/") for key in ours.all)
    assert ours.min_on_demand == "spot.example.org/min-on-demand"
    assert not set(ours.all) & set(keys.under().all)


def test_no_two_fields_share_a_key() -> None:
    ours = keys.under()
    assert len(set(ours.all)) == len(ours.all) == len(dataclasses.fields(ours)) - 1


def test_migration_keys_are_complete() -> None:
    ours = keys.under()
    assert set(ours.migration_labels) | set(ours.migration_annotations) == {
        ours.prefix + name for name in DOCUMENTED if name.startswith(("migrat", "original"))
    }


def test_the_name_part_of_every_key_is_valid() -> None:
    assert all(values.is_label_value(key.partition("/")[2]) for key in keys.under().all)


@pytest.mark.parametrize(
    ("prefix", "accepted"),
    [
        pytest.param("scheduler.alpha.kubernetes.io/", True, id="default"),
        pytest.param("a/", True, id="shortest"),
        pytest.param("a" * 253 + "/", True, id="longest"),
        pytest.param("a" * 254 + "/", False, id="too long"),
        pytest.param("example.org", False, id="no slash"),
        pytest.param("example.org//", False, id="two slashes"),
        pytest.param("Example.org/", False, id="upper case"),
        pytest.param("-a.org/", False, id="leading dash"),
        pytest.param("a..b/", False, id="empty part"),
        pytest.param("a.org/\n", False, id="newline"),
        pytest.param("", False, id="empty"),
        pytest.param("kubernetes.io/", False, id="of Kubernetes"),
        pytest.param("node.kubernetes.io/", False, id="below it"),
        pytest.param("scheduling.k8s.io/", False, id="its other domain"),
        pytest.param("cluster.x-k8s.io/", False, id="of its projects"),
        pytest.param("kubernetes.io.example.org/", True, id="of somebody else"),
    ],
)
def test_prefix(prefix: str, accepted: bool) -> None:
    assert keys.is_prefix(prefix) is accepted
