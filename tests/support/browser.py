"""A browser without a screen, for tests of pages. It notes everything a page asks for and complains about."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.user import wait_for

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BROWSER = next((path for name in NAMES if (path := shutil.which(name))), None)
# Without these, a browser without a screen asks for a sandbox, a graphics card and its maker's servers.
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)


class Browser:
    """One browser, and all that its tabs did."""

    def __init__(self, chromium: Any) -> None:
        self._chromium = chromium
        self.requests: list[str] = []
        self.complaints: list[str] = []

    def forget(self) -> None:
        """Close the tabs and forget what they asked for."""
        for context in self._chromium.contexts:
            context.close()
        self.requests.clear()
        self.complaints.clear()

    def tab(self, **options: Any) -> Any:
        page = self._chromium.new_context(**{"viewport": {"width": 1280, "height": 900}, **options}).new_page()
        page.set_default_timeout(60_000)
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda message: self.complaints.append(message.text) if message.type == "error" else None)
        return page


@contextmanager
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=BROWSER, args=list(FLAGS), timeout=100_000)
        try:
            yield Browser(chromium)
        finally:
            chromium.close()


def go(page: Any, address: str) -> None:
    """To a page of a report, until it is drawn: while its data are read, the page before it is still seen."""
    page.evaluate("performance.clearMarks('mngr-shown')")
    page.goto(address)
    wait_for(lambda: page.evaluate("performance.getEntriesByName('mngr-shown').length"), f"{address} to be drawn")
