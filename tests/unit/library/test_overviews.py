"""The files that chapters and summaries are exported to."""

import av
import pytest

from longtake.agents.overview import Chapter, CitedSentence, FilmOverview
from longtake.library.overview import FORMATS, ffmetadata, markdown, webvtt, youtube

SUMMARY = CitedSentence("Two people\ntalk.", 3.0, 4.0, "speech", "Hello.")
OVERVIEW = FilmOverview(
    (
        Chapter(0.0, 4.0, "Hello"),
        Chapter(4.0, 75.5, "Costs = 3; #1 \\ <b> --> x", 12.0),
        Chapter(75.5, 3700.0, "The end", 80.0, (SUMMARY,)),
    ),
    (SUMMARY,),
    "film",
)


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
    # a sentence has its moment beside it
    assert markdown("x", OVERVIEW).count("Two people talk. [00:00:03]\n") == 2


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_ends_with_a_line(kind):
    assert FORMATS[kind]("x", OVERVIEW).endswith("\n")
    assert FORMATS[kind]("x", FilmOverview((), (), "film"))
