"""A browser without a screen, for tests of pages. It notes everything a page asks for and complains about."""

import functools
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.support.user import wait_for

NAMES = (
    *("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"),
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
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


_running = ExitStack()


@functools.cache
def _started() -> Browser:
    from playwright.sync_api import sync_playwright

    playwright = _running.enter_context(sync_playwright())
    chromium = playwright.chromium.launch(executable_path=BROWSER, args=list(FLAGS), timeout=100_000)
    _running.callback(chromium.close)
    return Browser(chromium)


@contextmanager
def browser() -> Iterator[Browser]:
    """The one of this process, which starts when it is wanted first, without tabs."""
    found = _started()
    found.forget()
    try:
        yield found
    finally:
        found.forget()


def end() -> None:
    """When no test is left."""
    _running.close()


def go(page: Any, address: str) -> None:
    """To a page of a report, until it is drawn: while its data are read, the page before it is still seen."""
    page.evaluate("performance.clearMarks('mngr-shown')")
    page.goto(address)
    wait_for(lambda: page.evaluate("performance.getEntriesByName('mngr-shown').length"), f"{address} to be drawn")


_PLAY = """async cast => {
    const player = AsciinemaPlayer.create({data: cast}, document.getElementById("player"), {fit: false, speed: 20});
    const ended = new Promise(resolve => player.addEventListener("ended", resolve));
    await player.play();
    await ended;
}"""


def play(page: Any, directory: Path, recording: str) -> None:
    """Play a recording to its end in the asciinema player, which may draw that a moment after it says so."""
    spec = find_spec("mkdocs_asciinema_player")
    assert spec is not None and spec.origin is not None
    assets = Path(spec.origin).parent / "assets"
    file = directory / "page.html"
    file.write_text(
        f'<!doctype html><meta charset="utf-8"><link rel="stylesheet" href="{assets}/asciinema-player.css">'
        f'<div id="player"></div><script src="{assets}/asciinema-player.min.js"></script>'
    )
    page.goto(file.as_uri())
    page.evaluate(_PLAY, recording)
