"""The page in a real browser: from adding a film to checking a citation.

One session, in the order in which a person works; every step begins where the one before ended.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from films import Recipe, x264

pytestmark = pytest.mark.random_order(disabled=True)

AXE = Path(__file__).parent / "axe.min.js"
WAIT = 120_000
"""Milliseconds that tell waiting in vain from a busy machine."""
SOUGHT = """() => {
  // where players arrive
  window.sought = [];
  document.addEventListener("seeked", ({ target }) => sought.push(target.currentTime), true);
}"""
PICTURE = """() => {
  // the frame on screen: its time, and the number that it shows
  const player = longtakePlayer.video;
  const canvas = document.createElement("canvas");
  const ink = canvas.getContext("2d", { willReadFrequently: true });
  const present = (now, { mediaTime, width, height }) => {
    [canvas.width, canvas.height] = [width, height];
    ink.drawImage(player, 0, 0);
    const lit = (bit) => ink.getImageData((bit % 6) * 16 + 8, bit < 6 ? 8 : 24, 1, 1).data[0] > 128;
    const number = [...Array(12).keys()].reduce((sum, bit) => 2 * sum + lit(bit), 0);
    window.picture = { time: mediaTime, number };
    player.requestVideoFrameCallback(present);
  };
  player.requestVideoFrameCallback(present);
}"""
FORMATS = {
    "remux": Recipe("repacked.mkv", count=60),
    "transcode": Recipe(
        "encoded.avi", x264(codec="mpeg4", options={"bf": "2", "b": "3000000"}, gop=12), count=60
    ),
}
"""Films that browsers cannot play as they are; their pictures show their own number."""


@pytest.fixture(scope="module")
def page(served, chromium):
    """One tab, entered by the one-time link; what its console says is collected."""
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
        page.goto(served.enter)
        yield page
        browser.close()


@pytest.fixture(scope="module")
def question(served):
    """A question of the laboratory whose answer is one moment of the film."""
    return next(each for each in served.world.questions if each.kind == "needle")


def state(page):
    return page.locator(".run").get_attribute("data-state")


def until(page, condition):
    """Wait until something holds in the page, whose policy forbids Playwright's own way."""
    page.evaluate(
        f"""() => new Promise((done, fail) => {{
            setTimeout(() => fail(new Error("waited in vain")), {WAIT});
            const look = () => (({condition}) ? done() : requestAnimationFrame(look));
            look();
        }})"""
    )


def ask(page, question, method):
    page.fill("#question", question.text)
    if not page.locator(".more").evaluate("element => element.open"):
        page.locator(".more > summary").click()
    page.locator(".more textarea").first.fill("\n".join(question.options))
    page.locator(".ask select").select_option(method)


def test_the_link_opens_the_library_once(page, served):
    page.get_by_role("heading", name="harbour.mp4").wait_for()
    assert page.url == f"{served.home}/"
    assert page.locator(".badge").inner_text() == "3:00"


def test_a_film_is_added_with_progress(page, served, tmp_path):
    copy = tmp_path / "copy of harbour.mp4"
    copy.write_bytes((served.films / "harbour.mp4").read_bytes())
    page.locator("input[type=file]").set_input_files(str(copy))
    page.get_by_role("heading", name="copy of harbour.mp4").wait_for()
    assert "/film/" in page.url
    page.go_back()
    page.get_by_role("heading", name="harbour.mp4", exact=True).click()
    page.get_by_role("slider", name="Time in the film").wait_for()


def test_indexing_shows_progress_and_ends(page):
    page.get_by_role("button", name="Index now").click()
    page.locator(".layers [role=progressbar]").first.wait_for()
    page.get_by_role("button", name="Index now").wait_for(state="detached")
    page.locator(".layers .mark.good").nth(3).wait_for()
    page.locator(".track.blocks").wait_for()


def test_an_estimate_comes_before_the_run(page, question):
    ask(page, question, "videodetective")
    page.locator(".estimate", has_text=re.compile(r"\d+ calls")).wait_for()


def test_a_run_is_watched_as_it_happens(page):
    page.get_by_role("button", name="Ask", exact=True).click()
    page.locator("[role=treeitem]").first.wait_for()
    page.locator(".answer-text").wait_for()
    page.locator(".run[data-state=done]").wait_for()
    assert "/run/" in page.url
    assert page.locator(".track.heat").count() > 1
    assert page.locator(".track.ticks").count() == 1
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
    assert any(segment.start <= time <= segment.end for segment in question.evidence)
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
    page.locator(".ask select").select_option("blind")
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
    page.locator(".folders", has_text="0 of 2 films").wait_for()
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
@pytest.mark.parametrize("view", ["/", "/library?q=harbour", "run", "asked", "compare", "/replay"])
def test_axe_finds_nothing_serious(page, served, view, scheme):
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
    serious = [each for each in found["violations"] if each["impact"] in ("serious", "critical")]
    assert [(each["id"], each["nodes"][0]["html"]) for each in serious] == []


def newest(page, served, view):
    """The address of the newest answer about a film or all films, or of the newest comparison."""
    runs = page.request.get(f"{served.home}/api/v1/runs?limit=60").json()["runs"]
    for each in (each["run"] for each in runs):
        if view == "compare" and each["group"]:
            return f"/compare/{each['group']}"
        answered = each["state"] == "done" and each["answer"] and not each["group"]
        if answered and each["kind"] == {"run": "ask", "asked": "library"}.get(view):
            return f"/run/{each['id']}"
    raise AssertionError(f"no {view}")


@pytest.mark.parametrize("width", [360, 1280, 3840])
def test_no_width_scrolls_sideways(page, served, width):
    page.set_viewport_size({"width": width, "height": 800})
    made = [newest(page, served, view) for view in ("run", "asked", "compare")]
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


@pytest.mark.parametrize("mode", FORMATS)
def test_a_film_of_any_format_plays_from_where_it_is_clicked(page, served, tmp_path, mode):
    recipe = FORMATS[mode]
    content = recipe.make(tmp_path).read_bytes()
    address = f"{served.home}/api/v1/films/upload?name={recipe.name}"
    headers = {"Content-Type": "application/octet-stream", "Origin": served.home}
    film = page.request.post(address, data=content, headers=headers).json()["id"]
    page.goto(f"{served.home}/film/{film}")
    ruler = page.locator(".track.ruler canvas")
    box = ruler.bounding_box()
    page.evaluate(PICTURE)
    for share in (0.62, 0.21, 0.8):  # forth, back, and within what was fetched
        page.evaluate(SOUGHT)
        ruler.click(position={"x": box["width"] * share, "y": 4})
        # a player arrives before its picture is on screen; a frame lasts 0.1 s
        until(page, "sought.length && Math.abs(picture?.time + 0.05 - sought[0]) <= 0.051")
        arrived = page.evaluate("sought[0]")
        assert arrived == pytest.approx(6.0 * share, abs=0.05)
        assert page.evaluate("picture.number") == int(arrived * 10)
    assert page.evaluate("longtakePlayer.mode") == mode
    page.locator("h1").first.click()
    page.keyboard.press("Space")
    until(page, f"longtakePlayer.time > {arrived + 0.2}")


def test_the_console_stayed_silent(page):
    # the browser itself reports the 401 before signing in
    assert [said for said in page.said if "401" not in said] == []
