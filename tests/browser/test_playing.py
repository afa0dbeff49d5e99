"""The player in a real browser: the frame that was clicked is on screen, whatever the format."""

from __future__ import annotations

import pytest
from films import Recipe, x264
from support.serving import start_server
from support.tabs import SOUGHT, open_tab, until

PICTURE = """() => {
  // the frame on screen: its time, and the number that it shows
  window.picture = null;
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
def served(tmp_path_factory, lend_models):
    """A server without films."""
    films = tmp_path_factory.mktemp("films")
    process, started = start_server(films, lend_models(tmp_path_factory.mktemp("cache")))
    yield started["url"]
    process.terminate()
    process.wait(60)


@pytest.fixture(scope="module")
def page(served, chromium):
    with open_tab(chromium, served) as page:
        yield page


@pytest.mark.campaign
@pytest.mark.parametrize("mode", FORMATS)
def test_a_film_of_any_format_plays_from_where_it_is_clicked(page, served, tmp_path, mode):
    recipe = FORMATS[mode]
    content = recipe.make(tmp_path).read_bytes()
    home = served.partition("/enter")[0]
    address = f"{home}/api/v1/films/upload?name={recipe.name}"
    headers = {"Content-Type": "application/octet-stream", "Origin": home}
    film = page.request.post(address, data=content, headers=headers).json()["id"]
    page.goto(f"{home}/film/{film}")
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
    assert page.said == []
