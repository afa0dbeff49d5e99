"""An answer on the page while it is written."""

from __future__ import annotations

import json
import os
import threading

import pytest
from films import Recipe
from support.patience import PATIENCE
from support.server import Request, Send, completion, serve, stream
from support.serving import start_server
from support.tabs import SOUGHT, open_tab, until

pytestmark = pytest.mark.skipif(
    not os.environ.get("LONGTAKE_BROWSER"), reason="make browser runs this"
)
CHOICE = json.dumps({"films": [1], "every": False})
LINES = "1\n00:00:00,000 --> 00:00:01,500\nThe ship leaves from Bremen at noon.\n"


def open_film(page):
    page.get_by_role("heading", name="ship.mp4").click()


def open_library(page):
    page.get_by_role("link", name="Library").click()
    page.get_by_role("button", name="Watch these folders").click()
    page.locator(".folders", has_text="1 of 1 film can").wait_for()


@pytest.mark.parametrize("open_page", [open_film, open_library])
def test_passages_and_draft_are_shown_until_the_answer_is_checked(
    tmp_path, chromium, lend_models, open_page
):
    go_on = threading.Event()

    def pieces():
        first, *rest = stream("It leaves ", "from Bremen.").pieces
        yield first
        assert go_on.wait(PATIENCE)
        yield from rest

    def act(asked: Request) -> Send:
        if not asked.path.endswith("/chat/completions"):
            return Send(404)
        # only answers are streamed; what else is asked is which film of the library to read
        return Send(pieces=pieces()) if "stream" in asked.body else completion(CHOICE)

    folder = tmp_path / "films"
    folder.mkdir()
    Recipe("ship.mp4", count=40).make(folder)
    (folder / "ship.srt").write_text(LINES)
    with serve(act) as model:
        options = ["--model", f"{model.url}#m", "--set", "perception.reader=false"]
        process, started = start_server(
            folder, lend_models(tmp_path / "cache"), *options, "--set", "perception.listener=none"
        )
        try:
            with open_tab(chromium, started["url"]) as page:
                open_page(page)
                page.fill("#question", "Where does the ship leave from?")
                page.locator(".choices label", has_text="Quick").click()
                page.get_by_role("button", name="Ask", exact=True).click()
                draft = page.get_by_role("region", name="Draft")
                draft.get_by_text("It leaves", exact=True).wait_for()
                draft.get_by_text("Draft, not checked yet").wait_for()
                # a passage plays, or shows, where it is said
                page.evaluate(SOUGHT)
                draft.get_by_role("button", name="The ship leaves from Bremen at noon.").click()
                until(page, "sought.length")
                go_on.set()
                answer = page.get_by_role("region", name="Answer")
                answer.get_by_text("It leaves from Bremen.", exact=True).wait_for()
                assert draft.count() == 0
        finally:
            process.terminate()
            process.wait(60)
