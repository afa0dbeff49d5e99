"""Ten things that people want of the page, from the first click to what they wanted.

``make browser`` prints the clicks, the fields typed into and the seconds of each.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from films import Recipe, x264
from support.server import Request, Send, serve, stream
from support.serving import start_server
from support.tabs import SOUGHT, open_tab, until

from longtake.video.video import Video

pytestmark = [
    pytest.mark.random_order(disabled=True),
    pytest.mark.skipif(not os.environ.get("LONGTAKE_BROWSER"), reason="make browser runs this"),
]
LINES = [
    "Anna: The harbour wakes up slowly today.",
    "Ben: The ship leaves from Bremen at noon.",
    "Anna: Then we should load the barrels.",
    "Ben: All barrels are on board.",
]
AVI = Recipe("boat.avi", x264(codec="mpeg4", options={"bf": "2", "b": "3000000"}, gop=12), count=40)


class Person:
    """Somebody at the page, whose clicks are counted."""

    def __init__(self, page):
        self.page, self.told = page, []

    def click(self, place):
        self.clicks += 1
        place.click()

    def type(self, field, text):
        self.typed += 1
        self.page.fill(field, text)

    @contextmanager
    def wanting(self, what):
        self.clicks = self.typed = 0
        began = time.perf_counter()
        yield self
        seconds = time.perf_counter() - began
        self.told.append(f"{what:36} {self.clicks} clicks, {self.typed} fields, {seconds:5.1f} s")


def act(asked: Request) -> Send:
    """A model that has read the film."""
    if not asked.path.endswith("/chat/completions"):
        return Send(404)
    return stream("It leaves from Bremen.")


@pytest.fixture(scope="module")
def person(tmp_path_factory, chromium, lend_models):
    """At a page with one film of a talk, and a model that answers at once."""
    folder = tmp_path_factory.mktemp("talk") / "films"
    folder.mkdir()
    Recipe("ship.mp4", count=40).make(folder)
    spans = [f"00:00:0{n},000 --> 00:00:0{n},900" for n in range(len(LINES))]
    blocks = [f"{n + 1}\n{spans[n]}\n{line}\n" for n, line in enumerate(LINES)]
    (folder / "ship.srt").write_text("\n".join(blocks))
    cache = lend_models(tmp_path_factory.mktemp("cache"))
    with serve(act) as model:
        options = ["--model", f"{model.url}#m", "--set", "perception.reader=false"]
        process, started = start_server(
            folder, cache, *options, "--set", "perception.listener=none"
        )
        try:
            with open_tab(chromium, started["url"]) as page:
                person = Person(page)
                yield person
                print("\n" + "\n".join(person.told))
        finally:
            process.terminate()
            process.wait(60)


def test_find_a_quote(person):
    page = person.page
    with person.wanting("find a quote"):
        person.click(page.get_by_role("heading", name="ship.mp4"))
        page.locator(".line").first.wait_for()
        page.evaluate(SOUGHT)
        person.type("#find", "barrels are")
        page.locator(".transcript mark", has_text="barrels are").wait_for()
        page.locator(".track-label", has_text="Found lines").wait_for()
        person.click(page.get_by_role("button", name="Next"))
        until(page, "sought.length")
    assert page.evaluate("sought[0]") == pytest.approx(3.0, abs=0.1)
    page.locator(".line.now", has_text="All barrels are on board").wait_for()


def test_correct_a_speaker(person):
    page = person.page
    page.fill("#find", "")
    with person.wanting("correct a speaker"):
        person.click(page.get_by_role("button", name="Ben").first)
        person.type("#speaker", "Dr Lee")
        person.click(page.get_by_role("button", name="Save"))
        page.get_by_role("button", name="Dr Lee").nth(1).wait_for()
    assert page.get_by_role("button", name="Ben").count() == 0


def test_a_part_is_selected_asked_about_copied_and_cut(person):
    page = person.page
    part = page.get_by_role("toolbar", name="Selected part")
    # by mouse, by keys
    first, last = (page.locator(".line-text").nth(n).bounding_box() for n in (2, 3))
    page.mouse.move(first["x"] + 60, first["y"] + 8)
    page.mouse.down()
    page.mouse.move(last["x"] + 90, last["y"] + 8, steps=4)
    page.mouse.up()
    part.get_by_text("0:02 – 0:03").wait_for()
    part.get_by_role("button", name="Clear the selection").click()
    page.locator(".line-time").nth(1).click()
    page.locator(".line-time").nth(2).focus()
    page.keyboard.press("Shift+Enter")
    with page.expect_download() as download:
        part.get_by_role("link", name="Cut as a clip").click()
    assert Video(Path(download.value.path())).duration == pytest.approx(1.9, abs=0.2)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    part.get_by_role("button", name="Copy with times").click()
    part.get_by_text("Copied").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("[0:01] Dr Lee: The ship leaves from Bremen at noon.\n[0:02] Anna:")
    part.get_by_role("button", name="Ask about this part").click()
    until(page, "document.querySelector('#question').value === ' between 0:01 and 0:03?'")
    part.get_by_role("button", name="Clear the selection").click()


def test_ask(person):
    page = person.page
    with person.wanting("ask"):
        person.type("#question", "Where does the ship leave from?")
        person.click(page.locator(".choices label", has_text="Quick"))
        person.click(page.get_by_role("button", name="Ask", exact=True))
        page.locator(".answer-text", has_text="It leaves from Bremen.").wait_for()
        page.locator(".run[data-state=done]").wait_for()
    assert page.locator(".run .pill").inner_text() == "answered"
    page.get_by_text("Supported by 1 moment").wait_for()
    page.get_by_text("Not looked at: the pictures").wait_for()
    page.locator(".line.cited", has_text="Bremen").wait_for()


def test_check_a_citation(person):
    page = person.page
    page.evaluate(SOUGHT)
    with person.wanting("check a citation"):
        mark = page.locator(".answer .cite").first
        mark.hover()
        page.locator(".peek", has_text="from Bremen at noon").wait_for()
        person.click(mark)
        until(page, "sought.length")
        person.click(page.get_by_role("button", name="Back to"))
    assert page.evaluate("sought[0]") == pytest.approx(1.0, abs=0.1)


def test_cut_a_reel(person):
    page = person.page
    with person.wanting("cut a reel"):
        person.click(page.locator(".menu summary"))
        with page.expect_download() as download:
            person.click(page.get_by_role("link", name="Reel"))
        path = Path(download.value.path())
    assert Video(path).duration == pytest.approx(2.0, abs=0.2)


def test_share(person):
    page = person.page
    page.locator(".menu summary").click()
    with person.wanting("share"):
        person.click(page.locator(".menu summary"))
        with page.expect_download() as download:
            person.click(page.get_by_role("link", name="Page with its stills"))
        shared = Path(download.value.path()).read_text()
    assert "data:image/jpeg;base64," in shared
    assert "It leaves from Bremen." in shared
    assert "Not looked at: the pictures" in shared


def test_compare_two_runs(person):
    page = person.page
    with person.wanting("compare two methods"):
        person.type("#question", "Where does the ship leave from?")
        person.click(page.locator(".more > summary"))
        page.locator(".ask select").select_option("blind")
        person.clicks += 2  # a list is opened, and a line of it is chosen
        person.click(page.get_by_role("button", name="Ask", exact=True))
        page.locator(".asked").wait_for()
        page.locator(".run[data-state=done]").wait_for()
        person.click(page.get_by_role("link", name="Open in full"))
        page.get_by_label("Compare with").select_option(index=1)
        person.clicks += 2
        page.get_by_role("region", name="Trace of blind").wait_for()
        page.get_by_role("region", name="Trace of lookup").wait_for()
    one = page.get_by_role("region", name="Trace of lookup")
    one.get_by_role("button", name="Calls").click()
    one.locator("[role=treeitem].chat_called").first.click()
    one.locator(".detail pre", has_text="Where does the ship leave from?").first.wait_for()
    assert one.locator("[role=treeitem]:not(.chat_called)").count() == 0


def test_add_a_folder(person, tmp_path):
    page = person.page
    AVI.make(tmp_path)
    (tmp_path / "notes.txt").write_text("no film")
    with person.wanting("add a folder"):
        person.click(page.get_by_role("link", name="Films"))
        with page.expect_file_chooser() as chooser:
            person.click(page.get_by_role("button", name="Add a folder"))
        chooser.value.set_files(str(tmp_path))
        page.get_by_role("heading", name="boat.avi").wait_for()
    # what came alone is opened at once, and plays by mouse
    play = page.get_by_role("button", name="Play", exact=True)
    play.click()
    until(page, "longtakePlayer.time > 0.3")
    assert play.count() == 0


def test_find_in_which_film(person):
    page = person.page
    with person.wanting("find in which film"):
        person.click(page.get_by_role("link", name="Library"))
        person.click(page.get_by_role("button", name="Watch these folders"))
        page.locator(".folders", has_text="2 of 2 films").wait_for()
        person.type("#search", "Bremen")
        person.click(page.get_by_role("button", name="Search", exact=True))
        page.locator(".found h2", has_text="ship").wait_for()
        page.locator(".hit img").first.wait_for()


def test_understand_why_there_is_no_answer(person):
    page = person.page
    page.get_by_role("link", name="Films").click()
    with person.wanting("understand why there is no answer"):
        person.click(page.get_by_role("heading", name="ship.mp4"))
        person.type("#question", 'List every time that "zebra" is mentioned.')
        person.click(page.locator(".choices label", has_text="Quick"))
        person.click(page.get_by_role("button", name="Ask", exact=True))
        page.locator(".answer .note", has_text='"zebra" is not in what is said').wait_for()
        page.locator(".run[data-state=done]").wait_for()
    assert page.locator(".run .pill.warn").inner_text() == "no answer"
    page.get_by_role("button", name="Look at the pictures").click()
    page.locator(".choices label.on", has_text="Careful").wait_for()
    # nothing of the machinery, and no options of the command line, outside the steps
    told = page.locator("main").inner_text()
    for word in ("--method", "layers", "signals", "shots left", "passages 0"):
        assert word not in told


def test_the_console_stayed_silent(person):
    assert person.page.said == []
