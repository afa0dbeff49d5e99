"""Make the pictures of the page in docs/images: ``make screenshots``.

A film of the laboratory, simulated models and Debian's Chromium; nothing is downloaded.
``screenshots.py real FILM "QUESTION"`` asks the built-in models about a film of yours.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from longtake.config import Settings, cache_folder
from longtake_bench.lab.film import make_world, write_world
from longtake_bench.lab.questions import LabQuestion

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.serving import start_server

IMAGES = Path(__file__).parents[2] / "docs" / "images"
SLOW = "lab/acuity=0.9,latency=0.35,sleep=1"
MOST_BYTES = 200_000


@contextmanager
def server(films: Path, cache: Path, *options: str) -> Iterator[str]:
    """A server for these films; yields its one-time link."""
    process, started = start_server(films, cache, *options, quiet=True)
    try:
        yield started["url"]
    finally:
        process.terminate()
        process.wait(60)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Debian's browser."""
    path = shutil.which("chromium")
    if path is None:
        sys.exit("Chromium is missing: make browser installs it")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


LOADED = """() => new Promise((done) => {
  const video = document.querySelector("video");
  const look = () => (!video || (!video.seeking && video.readyState >= 2)
    ? setTimeout(done, 1500) : requestAnimationFrame(look));
  look();
})"""
"""Waits for the player's picture, and until its sign for waiting has faded."""


def shoot(page: Page, name: str) -> None:
    """Save what the tab shows, small enough for a repository."""
    path = IMAGES / f"serve-{name}.png"
    page.evaluate(LOADED)
    page.screenshot(path=str(path))
    picture = Image.open(path).convert("RGB")
    # a palette: the page has few colours, and so has the film
    picture.quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)
    size = path.stat().st_size
    print(f"{path.relative_to(IMAGES.parent.parent)}: {size / 1000:.0f} KB")
    assert size <= MOST_BYTES, path


def ask(page: Page, question: LabQuestion, method: str, model: str = "") -> None:
    """Fill in the ask box."""
    page.fill("#question", question.text)
    page.locator(".more > summary").click()
    page.locator(".more textarea").first.fill("\n".join(question.options))
    page.locator(".more input[list=models]").fill(model)
    page.locator(".ask select").select_option(method)


def open_film(page: Page, home: str) -> None:
    """From the library to the film."""
    page.goto(home)
    page.get_by_role("heading", name="harbour.mp4").click()
    page.locator("#question").wait_for()


def take(browser: Browser, enter: str, question: LabQuestion) -> None:
    """Every picture, in one session."""
    home = enter.partition("/enter")[0]
    context = browser.new_context(viewport={"width": 1360, "height": 850})
    page = context.new_page()
    page.set_default_timeout(300_000)
    page.goto(enter)
    page.get_by_role("heading", name="harbour.mp4").wait_for()
    open_film(page, home)
    page.get_by_role("button", name="Index now").click()
    page.get_by_role("heading", name="Indexed").wait_for()
    ask(page, question, "videodetective", SLOW)
    page.get_by_role("button", name="Ask", exact=True).click()
    page.locator(".track.heat").nth(3).wait_for()
    shoot(page, "run")
    page.locator(".run[data-state=done]").wait_for()
    page.locator(".card").first.click()
    shoot(page, "answer")
    address = page.url
    dark = browser.new_context(
        viewport={"width": 1360, "height": 850},
        color_scheme="dark",
        storage_state=context.storage_state(),
    ).new_page()
    dark.goto(address)
    dark.locator(".card").first.wait_for()
    shoot(dark, "dark")
    phone = browser.new_context(
        viewport={"width": 360, "height": 740},
        device_scale_factor=2,
        storage_state=context.storage_state(),
    ).new_page()
    phone.goto(address)
    phone.locator(".card").first.wait_for()
    shoot(phone, "phone")
    open_film(page, home)
    ask(page, question, "videodetective")
    page.get_by_role("button", name="Compare all methods").click()
    page.locator(".agreement", has_text="agree").wait_for()
    shoot(page, "compare")


def take_real(browser: Browser, enter: str, question: str) -> None:
    """A film that was asked about before, and its answer again."""
    page = browser.new_page(viewport={"width": 1360, "height": 760})
    page.set_default_timeout(300_000)
    page.goto(enter)
    page.get_by_role("heading", name="mp4").first.click()
    page.fill("#question", question)
    page.get_by_role("button", name="Ask", exact=True).click()
    page.locator(".run[data-state=done]").wait_for()
    page.locator(".card").first.click()
    page.evaluate("scrollTo(0, 0)")
    shoot(page, "real")


def take_library(browser: Browser, enter: str, question: LabQuestion) -> None:
    """All films: what a search finds, and an answer that names its film."""
    page = browser.new_page(viewport={"width": 1360, "height": 850})
    page.set_default_timeout(300_000)
    page.goto(enter)
    page.get_by_role("link", name="Library").click()
    page.get_by_role("button", name="Watch these folders").click()
    page.locator(".folders", has_text="Films are added as they appear").wait_for()
    page.locator(".folders", has_text="2 of 2 films").wait_for()
    ask(page, question, "uniform", "lab/acuity=1,hallucination=0")
    page.get_by_role("button", name="Ask", exact=True).click()
    page.locator(".run[data-state=done]").wait_for()
    page.fill("#search", "a person in a green coat")
    page.keyboard.press("Enter")
    page.locator(".hit").first.wait_for()
    page.locator(".card").first.click()
    shoot(page, "library")


def main() -> None:
    """Make the films, start the server, take the pictures; all of them, or those that are named."""
    # reading every shot would take longer than all the rest
    simulated = ["--model", "lab/acuity=0.9", "--set", "perception.reader=false"]
    acts = {"film": take, "library": take_library}
    IMAGES.mkdir(exist_ok=True)
    if sys.argv[1:2] == ["real"]:
        film, asked = Path(sys.argv[2]), sys.argv[3]
        with server(film.parent, cache_folder(Settings())) as enter, chromium() as browser:
            take_real(browser, enter, asked)
        return
    with tempfile.TemporaryDirectory() as folder:
        films = Path(folder) / "films"
        world = make_world(seed=7, minutes=3)
        write_world(world, films)
        (films / "film.mp4").rename(films / "harbour.mp4")
        (films / "film.srt").rename(films / "harbour.srt")
        write_world(make_world(seed=9, minutes=1), films / "2026")
        for ending in (".mp4", ".srt"):
            (films / "2026" / f"film{ending}").rename(films / "2026" / f"quay{ending}")
        question = next(each for each in world.questions if each.kind == "needle")
        for name in sys.argv[1:] or acts:
            # each with a link of its own, which works once
            with server(films, Path(folder) / "cache", *simulated) as enter, chromium() as browser:
                acts[name](browser, enter, question)


if __name__ == "__main__":
    main()
