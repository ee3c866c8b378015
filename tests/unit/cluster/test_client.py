"""The verbs against a fake API server: what is sent, what comes back, what is an error."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cluster import errors, resources
from cluster.client import Client
from cluster.objects import Lease, Node, PartialObjectMetadata, Pod
from cluster.ratelimit import RateLimit
from telemetry.meter import Meter
from telemetry.metrics import Metric
from tests.unit.cluster import fake_api
from tests.unit.cluster.fake_api import Answer, FakeApi, Seen, status


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with fake_api.running() as fake:
        yield fake


def named(*names: str, token: str = "", version: str = "7") -> Answer:
    metadata = {"resourceVersion": version} | ({"continue": token} if token else {})
    return Answer(body={"metadata": metadata, "items": [{"metadata": {"name": name}} for name in names]})


def names(items: tuple[Any, ...]) -> list[str]:
    return [item.metadata.name for item in items]


# ---- what goes over the wire


def _calls() -> list[Any]:
    pods, nodes = resources.PODS, resources.NODES
    merge, json_patch, apply = (
        f"application/{kind}" for kind in ("merge-patch+json", "json-patch+json", "apply-patch+yaml")
    )
    pod = "/api/v1/namespaces/a/pods/p"
    deletion = {"apiVersion": "v1", "kind": "DeleteOptions"}
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p", "namespace": "a"}}
    scale = "/apis/apps/v1/namespaces/a/deployments/d/scale"
    return [
        pytest.param(lambda c: c.get(nodes, "n"), ("GET", "/api/v1/nodes/n", {}, None, None), id="get"),
        pytest.param(
            lambda c: c.create(pods, {"x": 1}, namespace="a", dry_run=True, field_manager="me"),
            (
                "POST",
                "/api/v1/namespaces/a/pods",
                {"dryRun": "All", "fieldManager": "me"},
                {"x": 1},
                "application/json",
            ),
            id="create",
        ),
        pytest.param(
            lambda c: c.create(resources.SERVICEACCOUNTS, {}, namespace="a", name="s", subresource="token"),
            ("POST", "/api/v1/namespaces/a/serviceaccounts/s/token", {}, {}, "application/json"),
            id="create-subresource",
        ),
        pytest.param(
            lambda c: c.replace(pods, "p", {"x": 1}, namespace="a", subresource="status"),
            ("PUT", f"{pod}/status", {}, {"x": 1}, "application/json"),
            id="replace",
        ),
        pytest.param(
            lambda c: c.merge_patch(pods, "p", {"x": None}, namespace="a", field_manager="me"),
            ("PATCH", pod, {"fieldManager": "me"}, {"x": None}, merge),
            id="merge-patch",
        ),
        pytest.param(
            lambda c: c.merge_patch(pods, "p", {"x": 1}, namespace="a", subresource="status", dry_run=True),
            ("PATCH", f"{pod}/status", {"dryRun": "All"}, {"x": 1}, merge),
            id="merge-patch-status",
        ),
        pytest.param(
            lambda c: c.json_patch(pods, "p", [{"op": "remove", "path": "/x"}], namespace="a"),
            ("PATCH", pod, {}, [{"op": "remove", "path": "/x"}], json_patch),
            id="json-patch",
        ),
        pytest.param(
            lambda c: c.apply(pods, "p", {"x": 1}, namespace="a", field_manager="me", force=True),
            ("PATCH", pod, {"fieldManager": "me", "force": "true"}, {"x": 1}, apply),
            id="apply",
        ),
        pytest.param(
            lambda c: c.delete(pods, "p", namespace="a"),
            ("DELETE", pod, {}, deletion, "application/json"),
            id="delete",
        ),
        pytest.param(
            lambda c: c.delete(
                pods,
                "p",
                namespace="a",
                uid="u",
                resource_version="5",
                grace_period_seconds=0,
                propagation_policy="Background",
                dry_run=True,
            ),
            (
                "DELETE",
                pod,
                {},
                {
                    **deletion,
                    "dryRun": ["All"],
                    "preconditions": {"uid": "u", "resourceVersion": "5"},
                    "gracePeriodSeconds": 0,
                    "propagationPolicy": "Background",
                },
                "application/json",
            ),
            id="delete-guarded",
        ),
        pytest.param(
            lambda c: c.evict("a", "p", uid="u", grace_period_seconds=9, dry_run=True),
            (
                "POST",
                f"{pod}/eviction",
                {"dryRun": "All"},
                {**eviction, "deleteOptions": {"preconditions": {"uid": "u"}, "gracePeriodSeconds": 9}},
                "application/json",
            ),
            id="evict",
        ),
        pytest.param(
            lambda c: c.patch_scale(resources.DEPLOYMENTS, "d", "a", 3, field_manager="me", resource_version="5"),
            (
                "PATCH",
                scale,
                {"fieldManager": "me"},
                {"spec": {"replicas": 3}, "metadata": {"resourceVersion": "5"}},
                merge,
            ),
            id="patch-scale",
        ),
        pytest.param(
            lambda c: c.get_scale(resources.DEPLOYMENTS, "d", "a"), ("GET", scale, {}, None, None), id="get-scale"
        ),
    ]


@pytest.mark.parametrize(("call", "sent"), _calls())
def test_request(api: FakeApi, call: Any, sent: tuple[Any, ...]) -> None:
    call(api.client())
    (seen,) = api.seen
    found = (seen.method, seen.path, seen.query, seen.body, seen.headers.get("Content-Type"))
    assert found == sent
    assert seen.headers["User-Agent"] == "spotshift"


def test_a_type_decides_what_comes_back(api: FakeApi) -> None:
    api.script = lambda _: Answer(body={"metadata": {"name": "x"}, "spec": {"unschedulable": True}, "more": [1]})
    client = api.client()
    assert client.get(resources.NODES, "x")["more"] == [1]
    node = client.get(resources.NODES, "x", type=Node)
    assert (node.metadata.name, node.spec.unschedulable) == ("x", True)


def test_a_typed_body_leaves_defaults_out(api: FakeApi) -> None:
    client = api.client()
    client.create(resources.LEASES, Lease(), namespace="a")
    assert api.seen[0].body == {}


def test_metadata_only_asks_for_it(api: FakeApi) -> None:
    api.script = lambda _: named("x")
    client = api.client()
    client.list(resources.DEPLOYMENTS, type=PartialObjectMetadata, metadata_only=True)
    client.get(resources.DEPLOYMENTS, "x", namespace="a", type=PartialObjectMetadata, metadata_only=True)
    kinds = [seen.headers["Accept"].split(";")[1] for seen in api.seen]
    assert kinds == ["as=PartialObjectMetadataList", "as=PartialObjectMetadata"]


# ---- lists


def test_pages_are_followed_to_the_end(api: FakeApi) -> None:
    api.answer(named("a", "b", token="t1"), named("c", token="t2"), named("d"))
    listing = api.client().list(resources.PODS, type=Pod, label_selector="x=y", field_selector="z=1", page_size=2)
    assert (names(listing.items), listing.resource_version) == (["a", "b", "c", "d"], "7")
    narrowed = {"labelSelector": "x=y", "fieldSelector": "z=1", "limit": "2"}
    assert [seen.query for seen in api.seen] == [
        narrowed,
        {**narrowed, "continue": "t1"},
        {**narrowed, "continue": "t2"},
    ]


EXPIRED = status(410, "Expired", "The provided continue parameter is too old")


def test_an_expired_token_starts_over_and_drops_what_was_read(api: FakeApi) -> None:
    api.answer(named("old", token="t1"), EXPIRED, named("a", token="t2", version="9"), named("b", version="9"))
    listing = api.client().list(resources.PODS, type=Pod, page_size=1)
    assert (names(listing.items), listing.resource_version) == (["a", "b"], "9")
    assert [seen.query.get("continue") for seen in api.seen] == [None, "t1", None, "t2"]


def test_a_second_expiry_asks_for_everything_at_once(api: FakeApi) -> None:
    api.answer(named("old", token="t1"), EXPIRED, named("older", token="t2"), EXPIRED, named("a", "b", "c"))
    listing = api.client().list(resources.PODS, type=Pod, page_size=1)
    assert names(listing.items) == ["a", "b", "c"]
    assert api.seen[-1].query == {}


def test_pages_tell_where_the_collection_begins(api: FakeApi) -> None:
    api.answer(named("old", token="t1"), EXPIRED, named("a", token="t2"), named("b"))
    pages = list(api.client().pages(resources.PODS, type=Pod, page_size=1))
    assert [(names(page.items), page.first) for page in pages] == [(["old"], True), (["a"], True), (["b"], False)]


def test_another_error_in_the_middle_is_that_error(api: FakeApi) -> None:
    api.answer(named("a", token="t1"), status(500, "InternalError"))
    with pytest.raises(errors.ServerError):
        api.client().list(resources.PODS, type=Pod)
    assert len(api.seen) == 2


# ---- errors


def test_an_error_is_one_error(api: FakeApi) -> None:
    api.script = lambda _: Answer(503, {"message": "busy"}, {"Retry-After": "1"})
    with pytest.raises(errors.ServerError) as caught:
        api.client().get(resources.NODES, "x")
    assert (len(api.seen), caught.value.retry_after) == (1, 1.0)


def test_a_redirect_is_not_followed(api: FakeApi) -> None:
    api.script = lambda _: Answer(301, b"", {"Location": "/elsewhere"})
    with pytest.raises(errors.Invalid):
        api.client().get(resources.NODES, "x")
    assert len(api.seen) == 1


def test_an_eviction_blocked_by_a_budget(api: FakeApi) -> None:
    cause = {"reason": "DisruptionBudget", "message": "The disruption budget web needs 1 healthy pods and has 1"}
    api.answer(status(429, "TooManyRequests", causes=[cause]))
    with pytest.raises(errors.DisruptionBlocked) as caught:
        api.client().evict("a", "p", uid="u")
    assert caught.value.budget == "web"


def test_no_answer_in_time_is_unreachable(api: FakeApi) -> None:
    api.answer(Answer(body=b"", hold=True))
    with pytest.raises(errors.Unreachable) as caught:
        api.client().get(resources.NODES, "x", timeout=0.05)
    assert (caught.value.timed_out, caught.value.maybe_applied) == (True, True)


def test_a_refused_connection_was_not_applied(api: FakeApi) -> None:
    with fake_api.running() as gone:
        client = gone.client()
    with pytest.raises(errors.Unreachable) as caught:
        client.delete(resources.NODES, "x")
    assert not caught.value.maybe_applied


def test_a_cut_answer_is_unreachable(api: FakeApi) -> None:
    api.answer(Answer(body=b'{"metadata":', cut=True))
    with pytest.raises(errors.Unreachable):
        api.client().get(resources.NODES, "x")


def test_a_page_of_a_proxy_is_malformed_and_not_quoted(api: FakeApi) -> None:
    api.answer(Answer(body=b"<html>hunter2</html>"))
    with pytest.raises(errors.Malformed) as caught:
        api.client().get(resources.NODES, "x", type=Node)
    assert "hunter2" not in str(caught.value)


def test_a_list_names_what_it_left_out(api: FakeApi) -> None:
    bad = {"metadata": {"name": "bad", "labels": {"a": 5}}}
    api.answer(Answer(body={"metadata": {"resourceVersion": "5"}, "items": [{"metadata": {"name": "a"}}, bad]}))
    found = api.client().list(resources.NODES, type=Node)
    assert [node.metadata.name for node in found.items] == ["a"]
    assert [left.name for left in found.left_out] == ["bad"]


# ---- warnings and rate limit


def test_warnings_reach_the_callback(api: FakeApi) -> None:
    told: list[str] = []
    api.answer(Answer(headers={"Warning": '299 - "policy/v1beta1 \\"X\\" is deprecated"'}), status(404, "NotFound"))
    client = api.client(on_warning=told.append)
    client.get(resources.NODES, "x")
    with pytest.raises(errors.NotFound):
        client.get(resources.NODES, "x")
    assert told == ['policy/v1beta1 "X" is deprecated']


def limited(api: FakeApi, slept: list[float], limit: RateLimit | None) -> Client:
    return api.client(rate_limit=limit, now=lambda: 0.0, sleep=slept.append)


def test_calls_wait_for_the_rate_limit(api: FakeApi) -> None:
    slept: list[float] = []
    client = limited(api, slept, RateLimit(per_second=2, burst=1))
    for _ in range(3):
        client.get(resources.NODES, "x")
    assert slept == [0.5, 1.0]


def test_each_page_is_a_request(api: FakeApi) -> None:
    slept: list[float] = []
    api.answer(named("a", token="t"), named("b"))
    limited(api, slept, RateLimit(per_second=2, burst=1)).list(resources.PODS, type=Pod)
    assert slept == [0.5]


def test_watches_and_admission_are_never_limited(api: FakeApi) -> None:
    slept: list[float] = []
    watching = limited(api, slept, RateLimit(per_second=2, burst=1))
    for _ in range(3):
        with watching.watch(resources.PODS, resource_version="1"):
            pass
    admitting = limited(api, slept, None)
    for _ in range(200):
        admitting.get(resources.NAMESPACES, "a")
    assert slept == []


def test_one_client_serves_many_threads(api: FakeApi) -> None:
    api.script = lambda seen: Answer(body={"metadata": {"name": seen.path.rsplit("/", 1)[1]}})
    client = api.client(rate_limit=None)
    wrong: list[str] = []

    def work(thread: int) -> None:
        for number in range(20):
            asked = f"n{thread}-{number}"
            found = client.get(resources.NODES, asked, type=Node).metadata.name
            if found != asked:
                wrong.append(found)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (wrong, len(api.seen)) == ([], 160)


def test_seen_is_what_was_sent(api: FakeApi) -> None:
    api.client().get(resources.PODS, "odd name/%", namespace="a")
    assert isinstance(api.seen[0], Seen)
    assert api.seen[0].path == "/api/v1/namespaces/a/pods/odd%20name%2F%25"


# ---- what is measured


def watched(client: Client, *, initial: bool = False) -> None:
    with client.watch(resources.PODS, resource_version="", send_initial_events=initial):
        pass


def scaled(client: Client) -> None:
    client.patch_scale(resources.DEPLOYMENTS, "x", "a", 2, field_manager="me")


CALLS: dict[str, Callable[[Client], object]] = {
    "get": lambda client: client.get(resources.NODES, "x"),
    "list": lambda client: client.list(resources.NODES),
    "watch": watched,
    "stream": lambda client: watched(client, initial=True),
    "create": lambda client: client.create(resources.NODES, {}),
    "replace": lambda client: client.replace(resources.NODES, "x", {}),
    "patch": lambda client: client.merge_patch(resources.NODES, "x", {}),
    "apply": lambda client: client.apply(resources.NODES, "x", {}, field_manager="me"),
    "delete": lambda client: client.delete(resources.NODES, "x"),
    "evict": lambda client: client.evict("a", "x", uid="u"),
    "scale": scaled,
}


@pytest.mark.parametrize(("verb", "call"), CALLS.items(), ids=CALLS.keys())
def test_each_request_is_timed_under_its_verb(api: FakeApi, verb: str, call: Callable[[Client], object]) -> None:
    meter = Meter(strict=True)
    call(api.client(meter=meter))
    assert [name for name in CALLS if meter.read(Metric.REQUEST_SECONDS, verb=name)] == [verb]


def test_a_request_that_fails_is_timed_too(api: FakeApi) -> None:
    meter, seconds = Meter(strict=True), iter([10.0, 12.5])
    api.answer(status(500, "InternalError"))
    with pytest.raises(errors.ServerError):
        api.client(rate_limit=None, meter=meter, now=lambda: next(seconds)).get(resources.NODES, "x")
    assert b'api_request_seconds_sum{verb="get"} 2.5' in meter.render()[1]


def test_waiting_for_our_own_limit_is_counted_and_not_timed_as_a_request(api: FakeApi) -> None:
    meter, slept = Meter(strict=True), list[float]()
    limit = RateLimit(per_second=2, burst=1)
    client = api.client(rate_limit=limit, now=lambda: 0.0, sleep=slept.append, meter=meter)
    for _ in range(3):
        client.get(resources.NODES, "x")
    assert meter.read(Metric.THROTTLE_SECONDS) == sum(slept) == 1.5
    assert b'api_request_seconds_sum{verb="get"} 0.0' in meter.render()[1]
