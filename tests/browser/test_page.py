"""The page in a real browser: from adding a film to checking a citation.

One session, in the order in which a person works; every step begins where the one before ended.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from support.tabs import SOUGHT, open_tab, until

pytestmark = [
    pytest.mark.random_order(disabled=True),
    # a minute and a half; test_playing.py is the part of these tests in make test
    pytest.mark.skipif(not os.environ.get("LONGTAKE_BROWSER"), reason="make browser runs this"),
]

AXE = Path(__file__).parent / "axe.min.js"


@pytest.fixture(scope="module")
def page(served, chromium):
    """One tab, entered by the one-time link."""
    with open_tab(chromium, served.enter) as page:
        yield page


@pytest.fixture(scope="module")
def question(served):
    """A question of the laboratory whose answer is one moment of the film."""
    return next(each for each in served.world.questions if each.kind == "needle")


def state(page):
    return page.locator(".run").get_attribute("data-state")


def ask(page, question, method):
    page.fill("#question", question.text)
    choose(page, method)
    page.locator(".more textarea").first.fill("\n".join(question.options))


def choose(page, method):
    if not page.locator(".more").evaluate("element => element.open"):
        page.locator(".more > summary").click()
    page.locator(".ask select").select_option(method)


def test_the_link_opens_the_library_once(page, served):
    page.get_by_role("heading", name="harbour.mp4").wait_for()
    assert page.url == f"{served.home}/"
    assert page.locator(".badge").inner_text() == "3:00"


def test_a_film_is_added_with_progress(page, served, tmp_path):
    copy = tmp_path / "copy of harbour.mp4"
    copy.write_bytes((served.films / "harbour.mp4").read_bytes())
    page.get_by_label("Choose films to add").set_input_files(str(copy))
    page.get_by_role("heading", name="copy of harbour.mp4").wait_for()
    assert "/film/" in page.url
    page.go_back()
    page.locator(".film-card", has_text="copy of").get_by_text("not indexed").wait_for()
    page.get_by_role("heading", name="harbour.mp4", exact=True).click()
    page.get_by_role("slider", name="Time in the film").wait_for()


def test_indexing_shows_progress_and_ends(page):
    page.get_by_role("button", name="Index now").click()
    page.locator(".layers [role=progressbar]").first.wait_for()
    # so does the list of films, which says what can be searched by then
    page.get_by_role("link", name="Films").click()
    card = page.locator(
        ".film-card", has=page.get_by_role("heading", name="harbour.mp4", exact=True)
    )
    card.get_by_text(re.compile(r"indexing: .*\d+ %")).wait_for()
    card.get_by_text("indexed", exact=True).wait_for()
    card.click()
    page.get_by_role("heading", name="Indexed").wait_for()
    assert page.get_by_role("button", name="Index now").count() == 0
    page.locator(".track.blocks").wait_for()


def test_a_run_is_watched_as_it_happens(page):
    page.get_by_role("button", name="Ask", exact=True).click()
    page.locator("[role=treeitem]").first.wait_for()
    page.locator(".answer-text").wait_for()
    page.locator(".run[data-state=done]").wait_for()
    assert "/run/" in page.url
    assert page.locator(".track.heat").count() > 1
    assert page.locator(".track.ticks").count() == 1
    page.locator(".trace summary").click()
    page.locator("[role=treeitem].chat_called").first.click()
    page.locator(".detail pre").nth(1).wait_for()


def test_a_citation_seeks_the_player_to_its_frame(page, question):
    card = page.locator(".card").first
    start = float(card.get_attribute("data-start"))
    # the cited stretch is played at once, so the place is read when the player has reached it
    page.evaluate(
        """() => longtakePlayer.video.addEventListener(
            "seeked", (event) => { window.soughtTime = event.target.currentTime; }, { once: true }
        )"""
    )
    card.click()
    page.locator(".card[aria-pressed=true]").wait_for()
    until(page, "window.soughtTime !== undefined")
    time = page.evaluate("window.soughtTime")
    assert start - 0.001 <= time <= start + 0.1
    # a citation lasts at least two seconds and may begin before a short event
    assert any(segment.start - 2 <= time <= segment.end for segment in question.evidence)
    assert page.url.endswith("?c=0")


def test_a_link_to_a_citation_opens_there(page):
    address = page.url
    page.goto("about:blank")
    page.goto(address)
    page.locator(".card[aria-pressed=true]").wait_for()
    start = float(page.locator(".card").first.get_attribute("data-start"))
    until(page, f"Math.abs(longtakePlayer.time - {start}) <= 0.1")


def test_a_follow_up_shows_what_it_carries(page):
    page.get_by_role("button", name="Ask a follow-up").click()
    carried = page.locator("#carried").input_value()
    assert carried.startswith("Q: ")
    assert "\nA: " in carried
    page.fill("#question", "And then?")
    choose(page, "blind")
    page.get_by_role("button", name="Ask", exact=True).click()
    page.locator(".asked", has_text="And then?").wait_for()
    page.locator(".run[data-state=done]").wait_for()
    # the question stands alone, and what went with it can be read
    assert page.locator(".asked").inner_text() == "And then?"
    assert page.locator(".carried-shown p").text_content() == carried
    page.get_by_role("button", name="Start afresh").click()


def test_search_hits_are_on_the_timeline(page):
    page.keyboard.press("Escape")
    page.locator("h1").first.click()
    page.keyboard.press("/")
    page.keyboard.type("a person at the harbour")
    page.keyboard.press("Enter")
    page.locator(".hit").first.wait_for()
    page.locator(".track-label", has_text="Search").wait_for()


def test_keys_move_the_player(page):
    page.locator("h1").first.click()
    before = page.evaluate("longtakePlayer.time")
    page.keyboard.press("ArrowLeft")
    until(page, f"Math.abs(longtakePlayer.time - {max(0, before - 5)}) < 0.15")
    page.keyboard.press("?")
    page.get_by_role("dialog").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="detached")


def test_methods_are_compared_side_by_side(page, question):
    ask(page, question, "videoagent")
    page.get_by_role("button", name="Compare all methods").click()
    page.locator(".agreement", has_text="agree").wait_for()
    assert page.locator("tbody tr").count() >= 7
    assert page.locator(".track.ticks").count() >= 5


def test_all_films_are_searched_and_a_moment_plays_where_it_was_found(page, served):
    page.get_by_role("link", name="Library").click()
    page.locator(".folders", has_text="1 of 2 films").wait_for()
    page.get_by_role("button", name="Watch these folders").click()
    page.locator(".folders", has_text="Films are added as they appear").wait_for()
    page.locator(".folders", has_text="2 of 2 films").wait_for()
    page.get_by_role("button", name="Stop watching").click()
    page.get_by_role("button", name="Watch these folders").wait_for()
    page.fill("#search", "the harbour")
    page.keyboard.press("Enter")
    hit = page.locator(".hit").first
    start = float(hit.get_attribute("data-time"))
    page.evaluate(SOUGHT)
    hit.click()
    until(page, "sought.length && !longtakePlayer.paused")
    assert page.evaluate("sought[0]") == pytest.approx(start, abs=0.1)
    assert page.url == f"{served.home}/library?q=the%20harbour"


def test_all_films_are_asked_and_citations_name_their_film(page, question):
    ask(page, question, "videodetective")
    assert page.get_by_role("button", name="Compare all methods").count() == 0
    page.get_by_role("button", name="Ask", exact=True).click()
    page.locator(".run[data-state=done]").wait_for()
    page.locator(".answer", has_text="1 film searched").wait_for()
    card = page.locator(".card").first
    assert "harbour" in card.locator(".card-film").inner_text()
    page.evaluate(SOUGHT)
    card.click()
    until(page, "sought.length")
    start = float(card.get_attribute("data-start"))
    assert page.evaluate("sought[0]") == pytest.approx(start, abs=0.1)
    page.locator(".history a").first.wait_for(state="detached")


def test_a_run_survives_a_reload_and_can_be_cancelled(page, served, question):
    page.goto(served.home)
    page.get_by_role("heading", name="copy of harbour.mp4").click()
    page.locator("#question").wait_for()
    # this copy has no index of its own name, but the same content, so it is the model that is slow
    ask(page, question, "uniform")
    page.locator(".more input[list=models]").fill("lab/acuity=0.8,latency=600,sleep=1")
    page.get_by_role("button", name="Ask", exact=True).click()
    page.locator(".run[data-state=running]").wait_for()
    page.reload()
    page.locator(".run[data-state=running]").wait_for()
    page.get_by_role("button", name="Cancel").click()
    page.locator(".run[data-state=cancelled]").wait_for()


def test_the_address_is_restored_after_signing_out(page, served):
    page.context.clear_cookies()
    page.goto(served.home)
    page.get_by_role("heading", name="This page is locked").wait_for()
    page.get_by_label("Token").fill(served.token)
    page.get_by_role("button", name="Open").click()
    page.get_by_role("heading", name="harbour.mp4", exact=True).wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    "view", ["/", "/library?q=harbour", "run", "asked", "compare", "trace", "/replay"]
)
def test_axe_finds_nothing(page, served, view, scheme):
    if not AXE.exists():
        pytest.skip("axe-core is missing: make browser fetches it")
    if not view.startswith("/"):
        view = newest(page, served, view)
    page.emulate_media(color_scheme=scheme)
    page.goto(f"{served.home}{view}")
    page.locator("h1").first.wait_for()
    page.wait_for_timeout(400)
    # through the debugger, which the page's policy does not bind
    page.evaluate(AXE.read_text() + "; null")
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    assert [(each["id"], each["nodes"][0]["html"]) for each in found["violations"]] == []


def newest(page, served, view):
    """The address of the newest answer about a film or all films, or of the newest comparison."""
    runs = page.request.get(f"{served.home}/api/v1/runs?limit=60").json()["runs"]
    if view == "trace":
        return newest(page, served, "run").replace("/run/", "/trace/")
    for each in (each["run"] for each in runs):
        if view == "compare" and each["group"]:
            return f"/compare/{each['group']}"
        answered = each["state"] == "done" and each["answer"] and not each["group"]
        if answered and each["kind"] == {"run": "ask", "asked": "library"}.get(view):
            return f"/run/{each['id']}"
    raise AssertionError(f"no {view}")


# 640 is 1280 at 200 % zoom
@pytest.mark.parametrize("width", [360, 640, 1280, 3840])
def test_no_width_scrolls_sideways(page, served, width):
    page.set_viewport_size({"width": width, "height": 800})
    made = [newest(page, served, view) for view in ("run", "asked", "compare", "trace")]
    for view in ("/", "/library?q=harbour", *made):
        page.goto(f"{served.home}{view}")
        page.locator("h1").first.wait_for()
        page.wait_for_timeout(300)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.set_viewport_size({"width": 1280, "height": 860})


def test_a_trace_is_replayed_and_its_text_is_not_interpreted(page, served, tmp_path):
    run = newest(page, served, "run").rpartition("/")[2]
    trace = page.request.get(f"{served.home}/api/v1/runs/{run}/trace").text()
    lines = trace.splitlines()
    started = json.loads(lines[1])
    started["question"] = "<img src=x onerror=document.title='pwned'>"
    lines[1] = json.dumps(started)
    file = tmp_path / "trace.jsonl"
    file.write_text("\n".join(lines) + "\n")
    page.goto(f"{served.home}/replay")
    page.locator("input[type=file]").set_input_files(str(file))
    page.locator(".asked", has_text="<img src=x").wait_for()
    page.locator("input[type=range]").fill("3")
    assert page.locator("[role=treeitem]").count() <= 3
    assert page.title() != "pwned"


def test_the_console_stayed_silent(page):
    # the browser itself reports the 401 before signing in
    assert [said for said in page.said if "401" not in said] == []
