"""Chapters, titles and summaries, and the files they are exported to."""

from __future__ import annotations

import json
from types import SimpleNamespace

import av
import pytest
from unit.library.shelf import SETTINGS, film

from longtake.config import Settings
from longtake.library.overview import (
    FORMATS,
    Chapter,
    FilmOverview,
    _chapters_of,
    as_json,
    ffmetadata,
    legible,
    make_overview,
    markdown,
    quote,
    webvtt,
    youtube,
)
from longtake.llm import catalog
from longtake.llm.backends.scripted import ScriptedChat
from longtake.runner.films import open_film
from longtake.runner.session import Session
from longtake.types import Line, Segment

OVERVIEW = FilmOverview(
    (
        Chapter(0.0, 4.0, "Hello"),
        Chapter(4.0, 75.5, "Costs = 3; #1 \\ <b> --> x", 12.0),
        Chapter(75.5, 3700.0, "The end"),
    ),
    "Two people\ntalk.",
    "film",
)


def test_titles_quote_the_most_telling_line():
    said = [
        ("speech", Line(Segment(2, 4), "well you know it is what it is")),
        ("speech", Line(Segment(5, 8), "the lighthouse keeper repairs the foghorn")),
    ]
    overview = quote([Segment(0, 10), Segment(10, 20)], [said, []])
    assert [chapter.title for chapter in overview.chapters] == [
        "the lighthouse keeper repairs the foghorn",
        "Part 2",
    ]
    assert [chapter.cited for chapter in overview.chapters] == [5, None]
    assert overview.summary == "[00:00:05] the lighthouse keeper repairs the foghorn"


def test_misread_screens_are_not_quoted():
    def shown(*texts, at=0):
        return [Line(Segment(at, at + 1), text) for text in texts]

    read = shown("Creative Commons", "Director of the foundation", "eumurcial nomcom", "l")
    # a blurred page of which a reader guesses some words
    read += shown("Ce the lesprpet, homever, tare", "beoaghe imporlast", "shout of the", at=9)
    assert [line.text for line in legible(read)] == [
        "Creative Commons",
        "Director of the foundation",
    ]
    german = shown("Eingang für alle Besucher", "Bitte die Türen schließen")
    assert legible(german) == german


def test_a_film_without_pictures_has_chapters_of_about_a_minute():
    footage = SimpleNamespace(has=frozenset(), duration=150.0)
    assert _chapters_of(footage) == [Segment(0, 75), Segment(75, 150)]


def test_an_overview_is_made_once_and_a_model_may_replace_quotations(
    tmp_path, film_folder, monkeypatch
):
    path = film(tmp_path, "one.mp4", film_folder, "a rare walrus sings loudly", "it swims away")
    footage = open_film(path, SETTINGS)
    quoted = make_overview(footage)
    assert quoted.by == "film"
    assert make_overview(open_film(path, SETTINGS)) == quoted
    prompts = []

    def script(messages, options):
        prompts.append(messages[-1].text)
        return json.dumps({"titles": ["A walrus"] * len(quoted.chapters), "summary": "It sings."})

    monkeypatch.setattr(
        catalog.ModelCatalog, "open", lambda self, name, **rest: ScriptedChat(script)
    )
    session = Session(Settings())
    for _ in range(2):
        written = make_overview(footage, session)
    assert (written.chapters[0].title, written.summary) == ("A walrus", "It sings.")
    assert written.chapters[0].start == 0
    assert len(prompts) == 1
    assert "speech: a rare walrus sings loudly" in prompts[0]


def test_youtube_begins_at_zero_and_joins_short_chapters():
    assert youtube("x", OVERVIEW) == "0:00:00 Hello\n0:01:15 The end\n"


def test_ffmetadata_is_what_ffmpeg_reads(tmp_path):
    path = tmp_path / "chapters.txt"
    path.write_text(ffmetadata("A=B", OVERVIEW))
    with av.open(str(path), format="ffmetadata") as container:
        assert container.metadata["title"] == "A=B"
        read = [(c["start"], c["end"], c["metadata"]["title"]) for c in container.chapters()]
    assert read[1] == (4000, 75500, OVERVIEW.chapters[1].title)
    assert len(read) == 3


def test_webvtt_and_markdown_are_not_broken_by_titles():
    text = webvtt("x", OVERVIEW)
    assert text.startswith("WEBVTT\n\n1\n00:00:00.000 --> 00:00:04.000\nHello\n")
    assert text.count("-->") == 3
    assert "Two people talk.\n" in markdown("x", OVERVIEW)


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_ends_with_a_line(kind):
    assert FORMATS[kind]("x", OVERVIEW).endswith("\n")
    assert FORMATS[kind]("x", FilmOverview((), "", "film"))


def test_json_holds_everything():
    data = json.loads(as_json("x", OVERVIEW))
    assert data["chapters"][1]["cited"] == 12.0
    assert data["by"] == "film"
