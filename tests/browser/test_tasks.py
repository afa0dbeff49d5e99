"""Ten things that people want of the page, from the first click to what they wanted.

``make browser`` prints the clicks, the fields typed into and the seconds of each.
"""

from __future__ import annotations

import math
import os
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from films import Recipe, x264
from support.server import Request, Send, serve, stream
from support.serving import start_server
from support.tabs import SOUGHT, open_tab, until

from longtake.video.subtitles import srt
from longtake.video.video import Video

pytestmark = [
    pytest.mark.random_order(disabled=True),
    pytest.mark.skipif(not os.environ.get("LONGTAKE_BROWSER"), reason="make browser runs this"),
]


@dataclass(frozen=True)
class Talk:
    """A film in which somebody speaks, and what people want of it."""

    film: str
    lines: tuple[tuple[float, float, str], ...]
    quote: str
    """Words of the fourth line."""
    speaker: str
    question: str
    answer: str
    place: str
    """A word of the answer."""
    cited: int
    """The line that supports the answer."""

    def words(self, number: int) -> str:
        """A line without its speaker."""
        return self.lines[number][2].partition(": ")[2]


MADE = Talk(
    "ship.mp4",
    (
        (0.0, 0.9, "Anna: The harbour wakes up slowly today."),
        (1.0, 1.9, "Ben: The ship leaves from Bremen at noon."),
        (2.0, 2.9, "Anna: Then we should load the barrels."),
        (3.0, 3.9, "Ben: All barrels are on board."),
    ),
    "barrels are",
    "Ben",
    "Where does the ship leave from?",
    "It leaves from Bremen.",
    "Bremen",
    1,
)
# its own subtitles, with the narrator before each line: one that is named once is no speaker
REAL = Talk(
    "torchcodec_nasa.mp4",
    (
        (0.21, 4.17, "NAR: This is the optical and science segment of the Webb"),
        (4.26, 8.26, "NAR: space telescope in one of the largest cleanrooms in the world"),
        (8.35, 12.39, "NAR: at NASA’s Goddard Space Flight Center in Greenbelt, Maryland."),
        (12.47, 13.0, "NAR: This half of the observatory element successfully"),
    ),
    "observatory element",
    "NAR",
    "In which city is NASA's Goddard Space Flight Center?",
    "It is in Greenbelt, Maryland.",
    "Greenbelt",
    2,
)
MPEG4 = x264(codec="mpeg4", options={"bf": "2", "b": "3000000"}, gop=12)
AVI = Recipe("boat.avi", MPEG4, count=40)
MPG = Recipe("tram.mpg", x264(codec="mpeg2video", options={"b": "3000000"}, gop=12), count=60)


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


@pytest.fixture(scope="module")
def folder(tmp_path_factory, clip):
    """Two films, the first of which is a talk; real clips where they are."""
    folder = tmp_path_factory.mktemp("talk") / "films"
    folder.mkdir()
    real = clip(REAL.film, folder)
    if not clip("yuefan_kitchen.mp4", folder):
        Recipe("kitchen.mkv", count=30).make(folder)
    if not real:
        Recipe(MADE.film, count=40).make(folder)
    talk = REAL if real else MADE
    (folder / talk.film).with_suffix(".srt").write_text(srt(talk.lines))
    return folder


@pytest.fixture(scope="module")
def talk(folder):
    """The film that is talked about."""
    return REAL if (folder / REAL.film).exists() else MADE


@pytest.fixture(scope="module")
def person(folder, talk, tmp_path_factory, chromium, lend_models, pytestconfig):
    """At a page with these films, and a model that has read the talk and answers at once."""

    def act(asked: Request) -> Send:
        if not asked.path.endswith("/chat/completions"):
            return Send(404)
        return stream(talk.answer)

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
                # to be read where the tests pass, too
                capturing = pytestconfig.pluginmanager.getplugin("capturemanager")
                with capturing.global_and_fixture_disabled():
                    print("\n" + "\n".join([f"in {talk.film}:", *person.told]))
        finally:
            process.terminate()
            process.wait(60)


def test_find_a_quote(person, talk):
    page = person.page
    with person.wanting("find a quote"):
        person.click(page.get_by_role("heading", name=talk.film))
        page.locator(".line").first.wait_for()
        page.evaluate(SOUGHT)
        person.type("#find", talk.quote)
        page.locator(".transcript mark", has_text=talk.quote).wait_for()
        page.locator(".track-label", has_text="Found lines").wait_for()
        person.click(page.get_by_role("button", name="Next"))
        until(page, "sought.length")
    assert page.evaluate("sought[0]") == pytest.approx(talk.lines[3][0], abs=0.1)
    page.locator(".line.now", has_text=talk.words(3)).wait_for()


def test_correct_a_speaker(person, talk):
    page = person.page
    page.fill("#find", "")
    wrong = page.get_by_role("button", name=talk.speaker, exact=True)
    with person.wanting("correct a speaker"):
        person.click(wrong.first)
        person.type("#speaker", "Dr Lee")
        person.click(page.get_by_role("button", name="Save"))
        page.get_by_role("button", name="Dr Lee").nth(1).wait_for()
    assert wrong.count() == 0


def test_a_part_is_selected_asked_about_copied_and_cut(person, talk):
    page = person.page
    part = page.get_by_role("toolbar", name="Selected part")
    # by mouse, by keys
    first, last = (page.locator(".line-text").nth(n).bounding_box() for n in (2, 3))
    page.mouse.move(first["x"] + 60, first["y"] + 8)
    page.mouse.down()
    page.mouse.move(last["x"] + 90, last["y"] + 8, steps=4)
    page.mouse.up()
    part.get_by_text(f"{at(talk.lines[2][0])} – {at(talk.lines[3][1])}").wait_for()
    part.get_by_role("button", name="Clear the selection").click()
    page.locator(".line-time").nth(1).click()
    page.locator(".line-time").nth(2).focus()
    page.keyboard.press("Shift+Enter")
    start, end = talk.lines[1][0], talk.lines[2][1]
    with page.expect_download() as download:
        part.get_by_role("link", name="Cut as a clip").click()
    assert Video(Path(download.value.path())).duration == pytest.approx(end - start, abs=0.2)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    part.get_by_role("button", name="Copy with times").click()
    part.get_by_text("Copied").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()").splitlines()
    assert copied[0] == f"[{at(start)}] Dr Lee: {talk.words(1)}"
    assert len(copied) == 2
    part.get_by_role("button", name="Ask about this part").click()
    wanted = f" between {at(start)} and {at(math.ceil(end))}?"
    until(page, f"document.querySelector('#question').value === {wanted!r}")
    part.get_by_role("button", name="Clear the selection").click()


def at(seconds):
    return f"0:{math.floor(seconds):02d}"


def test_ask(person, talk):
    page = person.page
    with person.wanting("ask"):
        person.type("#question", talk.question)
        person.click(page.locator(".choices label", has_text="Quick"))
        person.click(page.get_by_role("button", name="Ask", exact=True))
        page.locator(".answer-text", has_text=talk.answer).wait_for()
        page.locator(".run[data-state=done]").wait_for()
    assert page.locator(".run .pill").inner_text() == "answered"
    page.get_by_text("Supported by 1 moment").wait_for()
    page.get_by_text("Not looked at: the pictures").wait_for()
    page.locator(".line.cited", has_text=talk.words(talk.cited)).wait_for()


def test_check_a_citation(person, talk):
    page = person.page
    page.evaluate(SOUGHT)
    with person.wanting("check a citation"):
        mark = page.locator(".answer .cite").first
        mark.hover()
        page.locator(".peek", has_text=talk.words(talk.cited)).wait_for()
        person.click(mark)
        until(page, "sought.length")
        person.click(page.get_by_role("button", name="Back to"))
    assert page.evaluate("sought[0]") == pytest.approx(talk.lines[talk.cited][0], abs=0.1)


def test_cut_a_reel(person, talk):
    page = person.page
    with person.wanting("cut a reel"):
        person.click(page.locator(".menu summary"))
        with page.expect_download() as download:
            person.click(page.get_by_role("link", name="Reel"))
        path = Path(download.value.path())
    start, end, _ = talk.lines[talk.cited]
    assert Video(path).duration == pytest.approx(max(2.0, end - start), abs=0.2)


def test_share(person, talk):
    page = person.page
    page.locator(".menu summary").click()
    with person.wanting("share"):
        person.click(page.locator(".menu summary"))
        with page.expect_download() as download:
            person.click(page.get_by_role("link", name="Page with its stills"))
        shared = Path(download.value.path()).read_text()
    assert "data:image/jpeg;base64," in shared
    assert talk.answer in shared
    assert "Not looked at: the pictures" in shared


def test_compare_two_runs(person, talk):
    page = person.page
    with person.wanting("compare two methods"):
        person.type("#question", talk.question)
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
    # steps that both have are at the same height
    page.locator("[role=treeitem].answered").nth(1).wait_for()
    tops = page.locator("[role=treeitem].answered").evaluate_all(
        "rows => rows.map(row => row.getBoundingClientRect().top)"
    )
    assert tops[0] == tops[1]
    one.get_by_role("button", name="Calls").click()
    one.locator("[role=treeitem].chat_called").first.click()
    one.locator(".detail pre", has_text=talk.question).first.wait_for()
    assert one.locator("[role=treeitem]:not(.chat_called)").count() == 0


def test_add_a_folder(person, tmp_path, clip):
    page = person.page
    film = clip("opencv_768x576.avi", tmp_path) or AVI.make(tmp_path)
    (tmp_path / "notes.txt").write_text("no film")
    with person.wanting("add a folder"):
        person.click(page.get_by_role("link", name="Films"))
        with page.expect_file_chooser() as chooser:
            person.click(page.get_by_role("button", name="Add a folder"))
        chooser.value.set_files(str(tmp_path))
        page.get_by_role("heading", name=film.name).wait_for()
    # what came alone is opened at once
    plays_by_mouse(page)


def test_a_film_that_browsers_cannot_play_is_added_and_plays_by_mouse(person, tmp_path):
    page = person.page
    page.get_by_role("link", name="Films").click()
    page.get_by_label("Choose films to add").set_input_files(str(MPG.make(tmp_path)))
    page.get_by_role("heading", name=MPG.name).wait_for()
    plays_by_mouse(page)


def plays_by_mouse(page):
    """Whether a film with a picture from its middle plays after one click on it."""
    poster = page.locator("video").get_attribute("poster")
    middle = page.evaluate("longtakePlayer.duration / 2")
    assert f"t={middle:.3f}" in poster
    reply = page.request.get(f"{page.url.partition('/film/')[0]}{poster}")
    assert reply.headers["content-type"] == "image/jpeg"
    play = page.get_by_role("button", name="Play", exact=True)
    play.click()
    until(page, "longtakePlayer.time > 0.3")
    assert play.count() == 0


def test_find_in_which_film(person, talk):
    page = person.page
    with person.wanting("find in which film"):
        person.click(page.get_by_role("link", name="Library"))
        person.click(page.get_by_role("button", name="Watch these folders"))
        page.locator(".folders", has_text="4 of 4 films").wait_for()
        person.type("#search", talk.place)
        person.click(page.get_by_role("button", name="Search", exact=True))
        page.locator(".found h2", has_text=Path(talk.film).stem).wait_for()
        page.locator(".hit img").first.wait_for()
    # what is sure comes first, and other films are folded
    assert talk.place in page.locator(".hit").first.inner_text()
    assert page.locator(".unsure[open]").count() == 0


def test_understand_why_there_is_no_answer(person, talk):
    page = person.page
    page.get_by_role("link", name="Films").click()
    with person.wanting("understand why there is no answer"):
        person.click(page.get_by_role("heading", name=talk.film))
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
