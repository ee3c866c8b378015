"""A spot node says nothing: it is left after a while, given back when it speaks, and not believed in a partition."""

from testbed import objects
from testbed.waiting import eventually
from tests.integration.descheduler.interruptions.scene import KEYS, Scene


def test_a_silent_spot_node_is_left_and_given_back(on: Scene) -> None:
    quiet, *others = on.pool(spot=3, zone="z")
    lost = on.product.metric("pods_lost_total")
    with on.only(quiet):
        on.create("deployments", objects.deployment("web", replicas=3))
        on.create("statefulsets", objects.stateful_set("db"))
        on.settle(4)
    on.vanish(quiet)
    eventually(
        lambda: on.where(app="web"),
        until=lambda it: len(it) == 3 and set(it.values()) <= set(others),
        timeout=120,  # the node controller waits for a while before it says Unknown
        what="the pods elsewhere",
    )
    eventually(lambda: len(on.ready()), until=lambda it: it >= 3, what="the replacements to be Ready")
    assert on.marks(quiet)[KEYS.interruption_cause] == "NotReady"
    assert KEYS.interruption_deadline not in on.marks(quiet)
    assert set(on.where(app="db").values()) == {quiet}, "nothing would come in its place"
    # They are told to stop and nobody says that they did: reported, not lost, and never force-deleted.
    eventually(lambda: on.told("PodsStuck", quiet), timeout=30, what="the Event")
    eventually(lambda: on.product.metric("stuck_pods"), until=lambda it: it == 3, what="the gauge")
    assert on.product.metric("pods_lost_total") == lost
    eventually(on.open_moves, until=lambda it: not it, what="the moves to be over though the old pods are there")
    there = [it for it in on.kube.list("pods", on.namespace) if it["spec"].get("nodeName") == quiet]
    assert len(there) == 4, "nobody removed their objects"
    on.return_of(quiet)
    eventually(lambda: on.marks(quiet), until=lambda it: not it, timeout=60, what="the node as it was found")


def test_back_within_the_time_nothing_has_moved(on: Scene) -> None:
    quiet, brief, *_ = on.pool(spot=4, zone="z")
    with on.only(quiet):
        on.create("deployments", objects.deployment("web", replicas=2))
        on.settle(2)
    with on.only(brief):
        on.create("deployments", objects.deployment("lucky", replicas=2))
        on.settle(4)
    before = on.where(app="lucky")
    on.silence(brief)
    eventually(lambda: objects.is_ready(on.node(brief)), until=lambda it: not it, what="silence")
    on.speak(brief)
    # The other one tells when it would have been too late.
    on.silence(quiet)
    eventually(lambda: quiet in on.where(app="web").values(), until=lambda it: not it, what="the other to be left")
    assert on.where(app="lucky") == before
    assert on.marks(brief) == {}


def test_an_on_demand_node_is_not_touched(on: Scene) -> None:
    ours, _ = on.pool(on_demand=2, zone="z")
    quiet_spot, *_ = on.pool(spot=3, zone="z")
    with on.only(ours):
        on.create("deployments", objects.deployment("web", replicas=2))
        on.settle(2)
    with on.only(quiet_spot):
        on.create("deployments", objects.deployment("other", replicas=2))
        on.settle(4)
    before = on.where(app="web")
    on.silence(ours, quiet_spot)
    eventually(
        lambda: quiet_spot in on.where(app="other").values(), until=lambda it: not it, what="the spot node left"
    )
    assert on.where(app="web") == before
    assert on.marks(ours) == {}


def test_in_a_partition_nothing_is_evicted(on: Scene) -> None:
    """Six of ten nodes of a zone at once; in another zone a node that really failed is left meanwhile."""
    cut = on.pool(spot=10, zone="cut")
    others = on.pool(spot=12, zone="well")
    with on.only(*cut):
        on.create("deployments", objects.deployment("web", replicas=20))
        on.settle(20)
    with on.only(others[0]):
        on.create("deployments", objects.deployment("other", replicas=2))
        on.settle(22)
    before, silent = on.where(app="web"), cut[:6]
    on.silence(*silent, others[0])
    eventually(
        lambda: others[0] in on.where(app="other").values(), until=lambda it: not it, what="that one to be left"
    )
    told = eventually(lambda: on.told("PartitionSuspected", silent[0]), timeout=20, what="the Event")
    assert "6 of 10 nodes of zone cut are NotReady" in told[0]
    eventually(lambda: on.product.metric("partitions", scope="zone"), until=lambda it: it == 1, what="the gauge")
    assert on.where(app="web") == before
    assert [on.marks(it) for it in silent] == [{}] * 6
    # One comes back: the share falls below the limit, and the silence of the others is believed.
    on.speak(silent[0])
    eventually(
        lambda: set(on.where(app="web").values()) & set(silent[1:]),
        until=lambda it: not it,
        timeout=60,
        what="the others to be left",
    )
