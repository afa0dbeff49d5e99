"""The page that MCP hosts show for an answer, in a sandbox and under the policy of their standard.

The host is a stub: it answers the page's requests, and records them.
"""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from films import Recipe, numbered

import longtake.server
from longtake.types import Segment
from longtake.video.clip import clip_bytes
from longtake.video.pictures import encoded
from longtake.video.video import Video

HTML = Path(longtake.server.__file__).with_name("answer.html").read_text()
POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; media-src 'self' data:; connect-src 'none'"
)
"""What a host must apply to a page that declares no domains (MCP Apps, 2026-01-26)."""
NASTY = "<img src=x onerror=document.title='pwned'>"
HOST = """({ html, results, resources, capabilities }) => {
  window.heard = [];
  const frame = document.createElement("iframe");
  frame.sandbox = "allow-scripts";
  frame.width = 600;
  frame.height = 500;
  const tell = (message) => frame.contentWindow.postMessage({ jsonrpc: "2.0", ...message }, "*");
  const next = () => results.shift();
  const answers = {
    "ui/initialize": () => ({ protocolVersion: "2026-01-26", hostCapabilities: capabilities,
      hostInfo: { name: "stub", version: "1" }, hostContext: { theme: "dark" } }),
    "tools/call": next,
    "resources/read": ({ uri }) => ({ contents: [{ uri, blob: resources[uri.split("/")[3]] }] }),
  };
  window.addEventListener("message", ({ source, data }) => {
    if (source !== frame.contentWindow) return;
    heard.push(data);
    if (answers[data.method]) tell({ id: data.id, result: answers[data.method](data.params) });
    if (data.method === "ui/notifications/initialized") {
      tell({ method: "ui/notifications/tool-input", params: { arguments: {} } });
      tell({ method: "ui/notifications/tool-result", params: next() });
    }
  });
  frame.srcdoc = html;
  document.body.append(frame);
}"""


@pytest.fixture(scope="module")
def browser(chromium):
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def shown(browser, tmp_path):
    """Shows results in the page; returns the host's tab and the page in it."""
    tabs = []

    def show(*told, capabilities):
        video = Video(Recipe("plain.mp4", count=40).make(tmp_path))
        picture = encoded(numbered(7), "jpeg")
        clip = clip_bytes(video, Segment(1.0, 3.0))
        resources = {
            "frame": base64.b64encode(picture).decode(),
            "clip": base64.b64encode(clip).decode(),
        }
        tab = browser.new_page()
        tabs.append(tab)
        tab.said = []
        tab.on("console", lambda message: tab.said.append(message.text))
        tab.on("pageerror", lambda error: tab.said.append(str(error)))
        meta = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        given = {
            "html": HTML.replace("<head>", f"<head>{meta}", 1),
            "results": [{"content": [], "structuredContent": each} for each in told],
            "resources": resources,
            "capabilities": capabilities,
        }
        tab.evaluate(HOST, given)
        return tab, tab.frame_locator("iframe")

    yield show
    for tab in tabs:
        tab.close()


RUNNING = {"handle": "h", "film": "f", "film_name": "film.mp4", "state": "running", "steps": 3}
CITED = {"start": 1.0, "end": 3.0, "clock": "00:00:01", "source": "speech"}
DONE = {
    **RUNNING,
    "state": "done",
    "choice": "B",
    "answer": NASTY,
    "status": "answered",
    "confidence": 0.8,
    "evidence": [{**CITED, "material": f'<material name="film">\n{NASTY}\n</material>'}],
}


def test_the_answer_is_awaited_and_its_citation_plays(shown):
    tab, page = shown(RUNNING, DONE, capabilities={"serverTools": {}, "serverResources": {}})
    page.locator("h1", has_text="B. <img").wait_for()
    assert page.locator("#status").inner_text() == "film.mp4 · done · 3 events · confidence 80 %"
    assert page.locator("q").inner_text().strip('“”"') == NASTY
    button = page.locator("button")
    button.locator("img").evaluate("image => image.decode()")
    button.click()
    page.locator("video").evaluate(
        """video => new Promise((done) => { const look = () => video.currentTime > 0.1
            ? done() : requestAnimationFrame(look); look(); })"""
    )
    asked = [(each.get("method"), each.get("params", {})) for each in tab.evaluate("heard")]
    assert asked[0][0] == "ui/initialize"
    assert ("tools/call", {"name": "wait", "arguments": {"handle": "h", "seconds": 20}}) in asked
    read = [params["uri"] for method, params in asked if method == "resources/read"]
    assert read == ["film://f/frame/2.000", "film://f/clip/1.000/3.000"]
    assert any(method == "ui/notifications/size-changed" for method, _ in asked)
    assert page.locator("html").evaluate("root => root.style.colorScheme") == "dark"
    assert tab.said == []


def test_a_host_that_passes_nothing_on_still_shows_the_answer(shown):
    tab, page = shown(DONE, capabilities={})
    page.locator("h1", has_text="B. <img").wait_for()
    assert page.locator("button").is_disabled()
    assert page.locator("img").count() == 0
    assert {each.get("method") for each in tab.evaluate("heard")} <= {
        "ui/initialize",
        "ui/notifications/initialized",
        "ui/notifications/size-changed",
    }
