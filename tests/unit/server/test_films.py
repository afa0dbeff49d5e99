"""Films: layers, upload, delete, search, subtitles, exports."""

from __future__ import annotations

import asyncio
import os
import re
import wave
from dataclasses import replace

import httpx
import pytest
from support.streams import read_stream

from longtake.config import load
from longtake.errors import ConfigError
from longtake.server import films
from longtake.server.films import ServedFilms
from longtake.server.options import ServeOptions
from longtake.video.subtitles import srt, vtt

FILM = {"Content-Type": "video/mp4"}


def send(client, name, data, **headers):
    return client.post(
        "/api/v1/films/upload", params={"name": name}, content=data, headers=FILM | headers
    )


def test_indexing_reports_progress_and_the_layers_are_done(client, film):
    before = client.get(f"/api/v1/films/{film}").json()
    assert not all(layer["done"] for layer in before["layers"])
    run = client.post(f"/api/v1/films/{film}/index", json={}).json()["run"]["id"]
    events = read_stream(client, run)
    assert events[-1][2]["state"] == "done"
    states = [data for kind, _, data in events if kind == "state"]
    assert {"frames", "onscreen"} <= set(states[-1]["progress"])
    after = client.get(f"/api/v1/films/{film}").json()
    assert all(layer["done"] for layer in after["layers"])
    found = client.get(f"/api/v1/films/{film}/search", params={"q": "a square"}).json()
    assert found["hits"]
    assert client.get(f"/api/v1/films/{film}/overview").json()["chapters"][0]["start"] == 0.0
    # what was indexed here can be searched with all other films
    library = client.get("/api/v1/library").json()
    assert (library["films"], library["ready"]) == (1, 1)
    # deleting what was derived leaves the user's own file
    assert client.delete(f"/api/v1/films/{film}").json()["freed"] > 0
    assert client.get(f"/api/v1/films/{film}").status_code == 200


def test_a_film_can_be_served_by_itself(options):
    film = options.films[0] / "plain.mp4"
    film.with_name("other.mp4").write_bytes(film.read_bytes())
    catalog = ServedFilms(replace(options, films=(film,)))
    assert [(file.name, file.folder) for file in catalog.films()] == [("plain.mp4", "")]


def test_an_uploaded_film_is_listed_and_can_be_deleted(client, options):
    data = (options.films[0] / "plain.mp4").read_bytes()
    added = send(client, "../../My film?.MP4", data).json()
    assert added["name"] == "My film_.mp4"
    assert added["origin"] == "upload"
    assert send(client, "My film_.mp4", data).json()["name"] == "My film_ (2).mp4"
    assert client.delete(f"/api/v1/films/{added['id']}").status_code == 200
    assert client.get(f"/api/v1/films/{added['id']}").status_code == 404
    assert not list(options.uploads.glob(".*"))


def test_sound_is_uploaded_as_a_film_without_pictures(client, tmp_path):
    with wave.open(str(tmp_path / "talk.wav"), "wb") as file:
        file.setparams((1, 2, 16_000, 0, "NONE", ""))
        file.writeframes(bytes(2 * 2 * 16_000))
    sound = (tmp_path / "talk.wav").read_bytes()
    added = send(client, "talk.wav", sound, **{"Content-Type": "audio/wav"}).json()
    assert added["name"] == "talk.wav"
    facts = client.get(f"/api/v1/films/{added['id']}").json()
    assert facts["duration"] == 2.0
    assert facts["has_sound"]
    assert client.get(f"/api/v1/films/{added['id']}/frame", params={"t": 1}).status_code == 200


def test_uploads_that_are_no_films_are_refused(client, options):
    data = (options.films[0] / "plain.mp4").read_bytes()
    assert send(client, "page.html", data).status_code == 422
    refused = send(client, "film.mp4", b"<script>alert(1)</script>")
    assert refused.status_code == 422
    assert refused.json()["detail"].startswith("film.mp4: ")
    assert send(client, "film.mp4", data[:200]).status_code == 422
    text = {"Content-Type": "text/plain"}
    refused = client.post("/api/v1/films/upload?name=a.mp4", content=data, headers=text)
    assert refused.status_code == 415
    assert list(options.uploads.iterdir()) == []


def test_what_a_killed_server_left_of_an_upload_is_removed(options):
    options.uploads.mkdir(parents=True)
    (options.uploads / f"{films.DRAFT}1.mp4").write_bytes(b"half")
    films.Uploads(options)
    assert list(options.uploads.iterdir()) == []


@pytest.fixture
def arrivals(options):
    options.uploads.mkdir(parents=True, exist_ok=True)
    limits = {"allow_url": ("Films.example",), "max_upload": 100_000}
    return films.Uploads(ServeOptions(folder=options.data, **limits))


def test_uploads_are_limited(arrivals, options):
    async def body():
        for _ in range(2):
            yield b"x" * 60_000

    for length in (None, 200_000):
        with pytest.raises(films.TooLarge):
            asyncio.run(arrivals.upload("a.mp4", body(), length))
    assert list(options.uploads.iterdir()) == []


def test_films_of_one_name_that_arrive_together_are_both_kept(arrivals, options):
    data = (options.films[0] / "plain.mp4").read_bytes()

    async def body():
        yield data
        await asyncio.sleep(0)

    async def together():
        return await asyncio.gather(*(arrivals.upload("a.mp4", body(), None) for _ in range(3)))

    paths = asyncio.run(together())
    assert sorted(path.name for path in paths) == ["a (2).mp4", "a (3).mp4", "a.mp4"]
    assert {path.read_bytes() for path in paths} == {data}


def test_urls_are_refused_unless_their_domain_was_allowed(client, arrivals):
    refused = client.post("/api/v1/films/url", json={"url": "https://films.example/a.mp4"})
    assert refused.status_code == 422
    for url in (
        "https://evil.example/a.mp4",
        "https://films.example.evil.example/a.mp4",
        "https://user@films.example/a.mp4",
        "file:///etc/passwd",
        "ftp://films.example/a.mp4",
        "https://evilfilms.example/a.mp4",
    ):
        with pytest.raises(ConfigError, match="not allowed"):
            arrivals.check_url(url)
    assert arrivals.check_url("https://cdn.films.example/a.mp4") == "cdn.films.example"


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.0.0.5", "169.254.169.254", "::1", "fd00::1", "0.0.0.0", "224.0.0.1"),
        # private addresses of IPv4 within IPv6
        *("::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "::127.0.0.1"),
    ],
)
def test_an_allowed_name_that_leads_inside_is_refused(arrivals, monkeypatch, address):
    found = [(2, 1, 6, "", ("93.184.216.34", 443)), (2, 1, 6, "", (address, 443))]
    monkeypatch.setattr(films.socket, "getaddrinfo", lambda *rest, **more: found)
    with pytest.raises(ConfigError, match="not public"):
        arrivals.download("https://films.example/a.mp4")


def test_every_hop_of_a_download_is_checked_and_pinned(arrivals, monkeypatch, options):
    data = (options.films[0] / "plain.mp4").read_bytes()
    found = [(2, 1, 6, "", ("93.184.216.34", 443))]
    monkeypatch.setattr(films.socket, "getaddrinfo", lambda *rest, **more: found)
    asked = []

    def answer(request):
        asked.append(
            (str(request.url), request.headers["host"], request.extensions["sni_hostname"])
        )
        if request.url.path == "/b.mp4":
            return httpx.Response(200, content=data)
        where = {"/a.mp4": "https://cdn.films.example/b.mp4", "/in.mp4": "http://localhost/b.mp4"}
        return httpx.Response(302, headers={"location": where[request.url.path]})

    client = httpx.Client
    monkeypatch.setattr(
        films.httpx, "Client", lambda **more: client(transport=httpx.MockTransport(answer), **more)
    )
    assert arrivals.download("https://films.example/a.mp4").read_bytes() == data
    assert asked[1] == ("https://93.184.216.34/b.mp4", "cdn.films.example", "cdn.films.example")
    with pytest.raises(ConfigError, match="not allowed"):
        arrivals.download("https://films.example/in.mp4")


def test_subtitles_are_text_and_never_markup():
    lines = [(0.0, 1.5, "<b>a & b</b>\n\n--> 2"), (2.0, 3.0, "")]
    assert "&lt;b&gt;a &amp; b&lt;/b&gt;\n--&gt; 2" in vtt(lines)
    assert srt(lines).startswith("1\n00:00:00,000 --> 00:00:01,500\n<b>a & b</b>\n--> 2\n")


def test_an_export_shows_text_and_interprets_nothing(client, ask):
    run, _ = ask(question="<img src=x onerror=alert(1)> [link](javascript:alert(1))")
    page = client.get(f"/api/v1/runs/{run}/export.html")
    assert "<img src=x" not in page.text
    assert "<script" not in page.text
    assert page.headers["content-disposition"].startswith("attachment")
    # nothing is loaded from elsewhere
    assert not re.search(r"(src|href)=.?(http|//)", page.text)
    markdown = client.get(f"/api/v1/runs/{run}/export.md").text
    assert "\\<img" in markdown
    assert "[link](javascript" not in markdown


def test_citations_are_taken_away_for_players(options, connect):
    client = connect(replace(options, settings=load(assignments=["answers.verify=false"])))
    film = client.get("/api/v1/films").json()[0]["id"]
    ask = {"film": film, "question": "Which?", "method": "uniform", "options": ["one", "two"]}
    run = client.post("/api/v1/runs", json=ask).json()["run"]["id"]
    read_stream(client, run)
    record = client.get(f"/api/v1/runs/{run}").json()["run"]
    assert record["answer"]["evidence"]
    assert record["support"].startswith(("supported by", "confidence"))
    address = f"/api/v1/runs/{run}/export"
    assert " --> " in client.get(f"{address}.srt").text
    reel = client.get(f"{address}.mp4")
    assert (reel.headers["content-type"], reel.content[4:8]) == ("video/mp4", b"ftyp")
    assert client.get(f"{address}.exe").status_code == 404


def test_a_run_without_citations_has_no_reel(client, ask):
    run, _ = ask(question="Who?", method="lookup")
    record = client.get(f"/api/v1/runs/{run}").json()["run"]
    assert record["answer"]["status"] == "abstained"
    # a sentence for people, without options of the command line
    assert record["outcome"]
    assert "--" not in record["outcome"]
    assert "the pictures" in record["unseen"]
    assert client.get(f"/api/v1/runs/{run}/export.mp4").status_code == 422


def test_a_speaker_is_called_by_another_name(options, connect):
    lines = ["Anna: We begin.", "Ben: Yes.", "Anna: Good.", "Ben: Fine."]
    blocks = [f"{n}\n00:00:0{n},000 --> 00:00:0{n},900\n{line}\n" for n, line in enumerate(lines)]
    (options.films[0] / "plain.srt").write_text("\n".join(blocks))
    client = connect(options)
    address = f"/api/v1/films/{client.get('/api/v1/films').json()[0]['id']}/speakers"
    named = client.post(address, json={"speaker": "Ben", "name": "Dr Lee"}).json()["speech"]
    shown = [(each["speaker"], each["text"]) for each in named[:2]]
    assert shown == [("Anna", "We begin."), ("Dr Lee", "Yes.")]
    for wrong in ({"speaker": "Ben", "name": "X"}, {"speaker": "Anna", "name": " : "}):
        assert client.post(address, json=wrong).status_code == 422


def test_only_plain_files_are_listed(options, connect):
    folder = options.films[0]
    os.mkfifo(folder / "pipe.mp4")
    (folder / "itself.mp4").symlink_to("itself.mp4")
    (folder / "folder.mp4").mkdir()
    client = connect(options)
    assert [film["name"] for film in client.get("/api/v1/films").json()] == ["plain.mp4"]
    assert (
        client.post("/api/v1/films", json={"path": str(folder / "itself.mp4")}).status_code == 404
    )
