"""The dashboard in a real Chromium: what it shows is what the cluster holds, live, and nothing on it is run."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from testbed import objects
from testbed.bed import ControlPlane
from testbed.waiting import eventually
from tests.e2e.draining import Scene
from tests.integration.console.conftest import Installed
from tests.integration.console.web import browser as driving
from tests.unit.console.web.pictures import MARKUP

STAGED = "tests.integration.console.web.staged"
LONG_TASKS = """() => { window.long = []; new PerformanceObserver((list) => {
    for (const it of list.getEntries()) window.long.push(it.duration); }).observe({ entryTypes: ["longtask"] }); }"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with driving.chromium() as found:
        yield found


@pytest.fixture(scope="module")
def url(installed: Installed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    port = driving.free_port()
    command = (
        "console.web",
        "--kubeconfig",
        str(installed.bed.kubeconfig),
        "--listen",
        f"127.0.0.1:{port}",
        "--interval",
        "0.5",
    )
    with driving.serving(*command, port=port, log=tmp_path_factory.mktemp("web") / "log") as found:
        yield found


def shown(page: Page) -> dict[str, set[str]]:
    """Tiles by node."""
    found = page.evaluate(
        "() => [...document.querySelectorAll('.node')].map((it) => [it.dataset.name, "
        "[...it.querySelectorAll('.tile')].map((tile) => tile.title)])"
    )
    return {name: set(tiles) for name, tiles in found}


def held(running: ControlPlane) -> dict[str, set[str]]:
    """The same by the API."""
    kube = running.api()
    found: dict[str, set[str]] = {it["metadata"]["name"]: set() for it in kube.list("nodes")}
    for pod in kube.list("pods"):
        if pod["spec"].get("nodeName") in found and pod["status"]["phase"] not in {"Succeeded", "Failed"}:
            found[pod["spec"]["nodeName"]].add(f"{pod['metadata']['namespace']}/{pod['metadata']['name']}")
    return found


def test_a_move_is_seen_from_its_beginning_to_its_end(
    browser: Browser, url: str, running: ControlPlane, scene: Scene
) -> None:
    scene.create("deployments", objects.deployment("web", replicas=4, annotations={}))
    scene.settle(4)
    node = next(it["spec"]["nodeName"] for it in scene.pods())
    page, wrong = driving.opened(browser, url)
    page.wait_for_selector("#link[data-state=live]")
    eventually(lambda: shown(page) == held(running), timeout=30, what="the tiles to be the pods")
    phases: set[str] = set()
    scene.label(node)
    eventually(
        lambda: phases.update(
            page.locator("#moves tr[data-phase]").evaluate_all("(all) => all.map((it) => it.dataset.phase)")
        ),
        until=lambda _: "Completed" in phases and not scene.apps_on(node),
        interval=0.1,
        timeout=90,
        what="the moves to end",
    )
    assert phases & {"Pending", "InProgress"}
    rows = page.locator("#moves tbody tr").all_inner_texts()
    assert any("NodeMaintenance" in row and node in row for row in rows)
    eventually(lambda: shown(page) == held(running), timeout=30, what="the tiles to be the pods after the move")
    assert page.locator(f'.node[data-name="{node}"]').get_attribute("data-states") in {
        "maintenance cordoned",
        "cordoned maintenance",
    }
    now = page.locator("#now").inner_text()
    assert "moves under way" in now
    assert page.locator("#load canvas").count() == page.locator("#spot canvas").count() == 1
    driving.kept(page, "light")
    scene.label(node, value=None)
    scene.restored(node)
    assert wrong == []
    page.close()


def test_tables_and_keys(browser: Browser, url: str, running: ControlPlane, scene: Scene) -> None:
    scene.create("deployments", objects.deployment("web", replicas=2, annotations={}))
    scene.settle(2)
    page, wrong = driving.opened(browser, url, scheme="dark")
    eventually(lambda: shown(page) == held(running), timeout=30, what="the tiles to be the pods")
    first = page.locator(".node").first
    first.focus()
    page.keyboard.press("ArrowRight")
    name = page.evaluate("() => document.activeElement.dataset.name")
    assert name == sorted(held(running))[1]
    page.keyboard.press("Enter")
    page.wait_for_selector("#detail table")
    listed = set(page.locator("#detail tbody th").all_inner_texts())
    assert listed == held(running)[name]
    page.keyboard.press("Escape")
    assert page.locator(".detail").is_hidden()
    assert page.evaluate("() => document.activeElement.dataset.name") == name
    page.locator("#filter").fill("spot")
    spot = {it["metadata"]["name"] for it in running.api().list("nodes") if "spot" in it["metadata"]["name"]}
    assert {it.get_attribute("data-name") for it in page.locator(".node:visible").all()} == spot
    page.locator("#settings-title").scroll_into_view_if_needed()
    page.wait_for_selector("#settings table")
    assert "maxReschedulePods" in page.locator("#settings").inner_text()
    assert page.evaluate("() => document.documentElement.dataset.theme") == "dark"
    page.locator("#filter").fill("")
    driving.kept(page, "dark")
    assert wrong == []
    page.close()


def test_it_comes_back_after_the_server_was_away(browser: Browser, tmp_path: Path) -> None:
    port = driving.free_port()
    command, log = (STAGED, "large", f"127.0.0.1:{port}"), tmp_path / "log"
    with driving.serving(*command, port=port, log=log) as url:
        page, _ = driving.opened(browser, url)
        page.wait_for_function("() => document.querySelectorAll('.node').length === 1000", timeout=60_000)
    page.wait_for_selector("#link[data-state=lost]")
    with driving.serving(*command, port=port, log=log):
        page.wait_for_selector("#link[data-state=live]", timeout=30_000)
        page.wait_for_selector('.tile[title^="shop/new-1-"]', state="attached", timeout=30_000)
        page.wait_for_function("() => document.querySelectorAll('.node').length === 1000", timeout=60_000)
    page.close()


def test_names_and_messages_are_never_run(browser: Browser, tmp_path: Path) -> None:
    port = driving.free_port()
    with driving.serving(STAGED, "hostile", f"127.0.0.1:{port}", port=port, log=tmp_path / "log") as url:
        page, wrong = driving.opened(browser, url)
        page.wait_for_selector(".node")
        page.locator(".node").click()
        page.wait_for_selector("#detail table")
        page.locator("#refusals button").click()
        page.wait_for_function("() => document.querySelector('#detail p')?.textContent.includes('stay because')")
        assert page.title() == "spotshift"
        assert page.locator("img").count() == 0
        assert page.locator(".node b").inner_text() == MARKUP
        assert MARKUP in page.locator("#moves").inner_text()
        assert wrong == []
        page.close()


@pytest.mark.campaign
def test_a_thousand_nodes_do_not_hold_up_the_browser(browser: Browser, tmp_path: Path) -> None:
    """A campaign, because its figures are about time and need a quiet machine."""
    port = driving.free_port()
    with driving.serving(STAGED, "large", f"127.0.0.1:{port}", port=port, log=tmp_path / "log") as url:
        page = browser.new_page()
        page.add_init_script(f"({LONG_TASKS})()")
        page.goto(url)
        page.wait_for_selector(".node")
        paint = page.evaluate("() => performance.getEntriesByName('first-contentful-paint')[0].startTime")
        page.wait_for_function("() => document.querySelectorAll('i.tile').length >= 30000", timeout=60_000)
        drawn = page.evaluate("() => performance.now()")
        page.evaluate("() => { window.long.length = 0; }")
        page.wait_for_timeout(10_000)
        longest = page.evaluate("() => Math.max(0, ...window.long)")
        told = f"first paint {paint:.0f} ms, all drawn after {drawn:.0f} ms, longest task then {longest:.0f} ms"
        driving.kept(page, "thousand")
        page.close()
    sys.stderr.write(f"{told}\n")
    assert paint < 2000, told
    assert longest < 200, told
