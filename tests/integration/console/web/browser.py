"""Chromium on the page: a real one, driven from outside."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import urllib3
from playwright.sync_api import Browser, Page, sync_playwright

from testbed.waiting import eventually

MISSING = "the tests of the dashboard need Chromium: `make browser` installs it (Debian: apt-get install chromium)"
ARTEFACTS = Path(__file__).parents[4] / "build" / "screenshots"


@contextmanager
def chromium() -> Iterator[Browser]:
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert found is not None, MISSING
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox"] if os.geteuid() == 0 else [])
        yield browser
        browser.close()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def serving(*command: str, port: int, log: Path) -> Iterator[str]:
    """A server in a process of its own, until the block ends; its address."""
    url = f"http://127.0.0.1:{port}/"
    with log.open("ab") as out:
        process = subprocess.Popen([sys.executable, "-m", *command], stdout=out, stderr=out)
    try:
        eventually(lambda: answers(url), timeout=60, what=f"{url} to answer; see {log}")
        yield url
    finally:
        process.terminate()
        process.wait(10)


def answers(url: str) -> bool:
    try:
        return urllib3.request("GET", f"{url}healthz", timeout=2, retries=False).status == 200
    except urllib3.exceptions.HTTPError:
        return False


def opened(browser: Browser, url: str, *, scheme: str = "light") -> tuple[Page, list[str]]:
    """A page, and what goes wrong on it."""
    page = browser.new_page(viewport={"width": 1400, "height": 1000}, color_scheme=scheme)  # type: ignore[arg-type]
    wrong: list[str] = []
    page.on("console", lambda it: wrong.append(it.text) if it.type in {"error", "warning"} else None)
    page.on("pageerror", lambda it: wrong.append(str(it)))
    page.goto(url)
    return page, wrong


def kept(page: Page, name: str) -> None:
    """A screenshot for people."""
    ARTEFACTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=ARTEFACTS / f"{name}.png")
