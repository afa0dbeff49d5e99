"""A tab of Debian's Chromium."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

WAIT = 120_000
"""Milliseconds that tell waiting in vain from a busy machine."""
SOUGHT = """() => {
  // where players arrive
  window.sought = [];
  document.addEventListener("seeked", ({ target }) => sought.push(target.currentTime), true);
}"""


@contextmanager
def open_tab(chromium: str, url: str) -> Iterator[Any]:
    """A tab with that address; what its console says is collected in ``said``."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        # axe is added as a script, which the page's own policy rightly refuses
        context = browser.new_context(viewport={"width": 1280, "height": 860})
        page = context.new_page()
        page.set_default_timeout(WAIT)
        page.said = []
        page.on("console", lambda message: page.said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: page.said.append(f"error: {error}"))
        page.goto(url)
        yield page
        browser.close()


def until(page: Any, condition: str) -> None:
    """Wait until something holds in the page, whose policy forbids Playwright's own way."""
    page.evaluate(
        f"""() => new Promise((done, fail) => {{
            setTimeout(() => fail(new Error("waited in vain")), {WAIT});
            const look = () => (({condition}) ? done() : requestAnimationFrame(look));
            look();
        }})"""
    )
