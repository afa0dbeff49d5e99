import json
from fractions import Fraction

import av
import pytest
from films import numbered

from longtake.config import MediaSettings
from longtake.errors import MediaError
from longtake.types import Line, Segment
from longtake.video.subtitles import embedded_subtitles, read_subtitles, sidecar
from longtake.video.video import Video

SRT = (
    "1\n00:00:01,000 --> 00:00:02,500\n<i>Hello</i>,\nyou there.\n\n"
    "2\n00:01:00,000 --> 00:01:04,000\nBye.\n"
)
VTT = (
    "WEBVTT\n\n00:01.000 --> 00:02.500\n<v Ann>Hello, you there.</v>\n\n"
    "01:00.000 --> 01:04.000\nBye.\n"
)
ASS = (
    "[Script Info]\nScriptType: v4.00+\n\n[Events]\n"
    "Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\n"
    "Dialogue: 0,0:01:00.00,0:01:04.00,Default,,0,0,0,,Bye.\n"
    "Comment: 0,0:00:30.00,0:00:31.00,Default,,0,0,0,,not shown\n"
    "Dialogue: 0,0:00:01.00,0:00:02.50,Default,,0,0,0,,{\\an8}Hello,\\Nyou there.\n"
)
JSON_CLOCK = json.dumps(
    [
        {"start": "00:00:01.000", "end": "00:00:02.500", "line": "Hello, you there."},
        {"start": "00:01:00.000", "end": "00:01:04.000", "line": "Bye."},
    ]
)
JSON_STAMPS = json.dumps(
    [
        {"timestamp": [1.0, 2.5], "text": "Hello, you there."},
        {"timestamp": [60.0, 64.0], "text": "Bye."},
    ]
)
EXPECTED = [Line(Segment(1.0, 2.5), "Hello, you there."), Line(Segment(60.0, 64.0), "Bye.")]
NAMED = [Line(Segment(1.0, 2.5), "Ann: Hello, you there."), EXPECTED[1]]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.srt", SRT),
        ("a.vtt", VTT),
        ("a.ass", ASS),
        ("a.json", JSON_CLOCK),
        ("b.json", JSON_STAMPS),
        ("bom.srt", "\ufeff" + SRT),
        ("odd_name.srt", VTT),
        ("crlf.srt", SRT.replace("\n", "\r\n")),
    ],
)
def test_formats(tmp_path, name, text):
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert read_subtitles(tmp_path / name) == (NAMED if text == VTT else EXPECTED)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
@pytest.mark.parametrize(("name", "text"), [("a.srt", SRT), ("a.vtt", VTT), ("a.ass", ASS)])
def test_encodings(tmp_path, name, text, encoding):
    (tmp_path / name).write_bytes(text.encode(encoding))
    assert read_subtitles(tmp_path / name) == (NAMED if text == VTT else EXPECTED)


def test_open_end_of_a_benchmark_line(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps([{"timestamp": [3.0, None], "text": "so"}]))
    assert read_subtitles(tmp_path / "a.json") == [Line(Segment(3.0, 3.0), "so")]


@pytest.mark.parametrize("name", ["a.srt", "a.json"])
def test_not_subtitles(tmp_path, name):
    (tmp_path / name).write_text("nothing of the kind")
    with pytest.raises(MediaError) as caught:
        read_subtitles(tmp_path / name)
    assert caught.value.problem == "unreadable"


@pytest.mark.parametrize(
    "time", ["NaN", "Infinity", "-Infinity", "1" + "0" * 400, "1e999", '"soon"', "null"]
)
def test_invalid_times_in_a_benchmark_line(tmp_path, time):
    (tmp_path / "a.json").write_text(f'[{{"start": {time}, "end": 2.0, "line": "Hello"}}]')
    with pytest.raises(MediaError, match=r"a\.json: is not a list of subtitle lines") as caught:
        read_subtitles(tmp_path / "a.json")
    assert caught.value.problem == "unreadable"


def test_size_limit(tmp_path):
    (tmp_path / "a.srt").write_text(SRT * 2000)
    with pytest.raises(MediaError) as caught:
        read_subtitles(tmp_path / "a.srt", MediaSettings(max_subtitle_mb=0.1))
    assert caught.value.problem == "too_large"


def test_invalid_utf8_is_replaced(tmp_path):
    (tmp_path / "a.srt").write_bytes(SRT.replace("Bye", "Adieu, p\xe9ch\xe9").encode("latin-1"))
    assert read_subtitles(tmp_path / "a.srt")[1].text.startswith("Adieu")


@pytest.fixture
def film_with_subtitles(tmp_path):
    """A Matroska film with two text streams, whose time stamps start at five seconds."""
    path = tmp_path / "film.mkv"
    (tmp_path / "one.srt").write_text(SRT)
    (tmp_path / "two.srt").write_text(SRT.replace("Hello", "Hallo"))
    with av.open(str(path), "w") as file:
        picture = file.add_stream("libx264", rate=10)
        picture.width, picture.height, picture.pix_fmt = 128, 96, "yuv420p"
        sources = [av.open(str(tmp_path / name)) for name in ("one.srt", "two.srt")]
        texts = [file.add_stream_from_template(source.streams[0]) for source in sources]
        for i in range(40):
            frame = av.VideoFrame.from_ndarray(numbered(i), format="rgb24")
            frame.pts, frame.time_base = 50 + i, Fraction(1, 10)
            file.mux(picture.encode(frame))
        file.mux(picture.encode(None))
        for source, text in zip(sources, texts, strict=True):
            for packet in source.demux():
                if packet.pts is not None:
                    packet.stream = text
                    packet.pts += 5000
                    packet.dts = packet.pts
                    file.mux(packet)
            source.close()
    return path


def test_embedded_streams_use_film_times(film_with_subtitles):
    video = Video(film_with_subtitles)
    assert video.origin == pytest.approx(5.0)
    assert embedded_subtitles(film_with_subtitles, origin=video.origin) == EXPECTED
    second = video.info.subtitles[1].index
    lines = embedded_subtitles(film_with_subtitles, origin=video.origin, index=second)
    assert lines[0].text == "Hallo, you there."


def test_embedded_size_limit(film_with_subtitles):
    with pytest.raises(MediaError) as caught:
        embedded_subtitles(
            film_with_subtitles, origin=5.0, limits=MediaSettings(max_subtitle_mb=1e-5)
        )
    assert caught.value.problem == "too_large"


def test_sidecar_is_found_by_name(tmp_path):
    film = tmp_path / "film [1080p].mp4"
    assert sidecar(film) is None
    other = tmp_path / "film [1080p].en.vtt"
    other.touch()
    assert sidecar(film) == other
    (tmp_path / "film [1080p].srt").touch()
    assert sidecar(film) == tmp_path / "film [1080p].srt"
    (tmp_path / "film 2.srt").touch()
    assert sidecar(tmp_path / "film 3.mp4") is None


def test_a_sidecar_that_links_to_another_folder_is_not_read(tmp_path):
    films, elsewhere = tmp_path / "films", tmp_path / "elsewhere"
    films.mkdir()
    elsewhere.mkdir()
    for name in ("film.mp4", "secret.srt", "film.srt"):
        (elsewhere / name).touch()
    film = films / "film.mp4"
    film.touch()
    for name in ("film.srt", "film.en.srt"):
        (films / name).symlink_to(elsewhere / "secret.srt")
    assert sidecar(film) is None
    # both lie beside each other where the links lead
    film.unlink()
    film.symlink_to(elsewhere / "film.mp4")
    (films / "film.srt").unlink()
    (films / "film.srt").symlink_to(elsewhere / "film.srt")
    assert sidecar(film) == films / "film.srt"


def test_a_long_cue_becomes_several_lines(tmp_path):
    words = " ".join(f"word{number}" for number in range(1000))
    file = tmp_path / "film.srt"
    file.write_text(f"1\n00:00:01,000 --> 00:00:02,500\n{words} {'x' * 2500}\n")
    lines = read_subtitles(file)
    assert {line.segment for line in lines} == {Segment(1.0, 2.5)}
    assert max(len(line.text) for line in lines) <= 1000
    assert " ".join(line.text for line in lines[:-3]) == words
    assert "".join(line.text for line in lines[-3:]) == "x" * 2500
