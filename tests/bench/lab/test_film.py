"""Worlds as files: the film shows what was drawn, its signs can be read, the code is optional."""

import json

import av
import numpy as np
import pytest
from click.testing import CliRunner
from films import begin_film

from longtake.algorithms.passages import match
from longtake.config import PerceptionSettings, Settings
from longtake.errors import ConfigError
from longtake.index.film import Film
from longtake.index.search import search
from longtake.index.store import Store
from longtake.perception.efficientnet import EfficientNetLite2
from longtake.perception.ocr import RapidReader
from longtake.types import Segment
from longtake_bench.cli.lab import lab
from longtake_bench.lab import film as film_module
from longtake_bench.lab import frame_code
from longtake_bench.lab.facts import sentence
from longtake_bench.lab.film import make_world, read_script, write_world
from longtake_bench.lab.footage import LabEncoder, LabFootage
from longtake_bench.lab.world import dump

MINUTES, SEED = 1, 21


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("lab") / "world"
    done = CliRunner().invoke(
        lab, ["make", "--minutes", str(MINUTES), "--seed", str(SEED), "--out", str(out), "--json"]
    )
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["questions"] > 10
    return out


@pytest.fixture
def film(folder, tmp_path):
    return Film(
        folder / "film.mp4",
        Store(tmp_path),
        Settings(perception=PerceptionSettings(listener="none")),
    )


def test_the_film_is_what_the_profile_says(folder):
    assert sorted(p.name for p in folder.iterdir()) == [
        "film.mp4",
        "film.srt",
        "questions.json",
        "script.json",
    ]
    with av.open(str(folder / "film.mp4")) as file:
        stream = file.streams.video[0]
        keys = [
            p.pts * p.time_base for p in file.demux(stream) if p.is_keyframe and p.pts is not None
        ]
        assert (stream.width, stream.height, stream.average_rate, stream.frames) == (
            480,
            270,
            10,
            MINUTES * 600,
        )
        assert max(np.diff([float(k) for k in keys])) <= 4.0
        assert file.streams.audio


def test_every_frame_of_the_film_carries_its_second(film):
    times = [0.0, 0.95, 7.5, 31.2, 59.9]
    for width in (None, 224):
        frames = film.at(times, width=width)
        assert [frame_code.read(frame.pixels) for frame in frames] == [
            frame_code.Moment(SEED, MINUTES, int(t)) for t in times
        ]


def test_footage_of_the_script_and_of_the_film_are_the_same(film, folder):
    drawn = LabFootage(read_script(folder))
    assert (drawn.duration, drawn.name) == (film.duration, f"world-{SEED}-{MINUTES}")
    np.testing.assert_array_equal(drawn.times, film.times)
    moments = drawn.times[::25].tolist()
    for ours, theirs in zip(drawn.at(moments), film.at(moments), strict=True):
        assert ours.time == pytest.approx(theirs.time, abs=1e-3)
        difference = np.abs(ours.pixels.astype(int) - theirs.pixels)
        assert difference.mean() < 6
    within = Segment(30.0, 60.0)
    assert drawn.speech() == film.speech()
    assert drawn.speech(within) == film.speech(within)
    film.senses.images = LabEncoder()
    np.testing.assert_allclose(film.embeddings(), drawn.embeddings(), atol=1e-3)
    # of an encoder without a calibration, what stands out is found
    deed = read_script(folder).deeds[3]
    found = [hit.time for hit in search(film, sentence(deed.fact)).hits if "image" in hit.sources]
    assert deed.start <= found[0] <= deed.end


def test_the_real_reader_reads_the_signs_with_and_without_the_code():
    script = make_world(SEED, 2).script
    reader = RapidReader()
    texts = []
    sign = script.signs[0]
    for with_code in (True, False):
        boxes = reader.read(LabFootage(script, code=with_code).at([float(sign.start)])[0])
        assert any(match(sign.fact.text, box.text) > 0.9 for box in boxes), boxes
        texts.append([box.text for box in boxes])
    assert texts[0] == texts[1]


def test_tags_and_features_hardly_notice_the_code(model_cache):
    script = make_world(SEED, MINUTES).script
    network = EfficientNetLite2(model_cache)
    times = [5.0, 20.0, 35.0, 50.0]
    with_code, without = (network.run(LabFootage(script, code=c).at(times)) for c in (True, False))
    features = [
        float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
        for a, b in zip(with_code[0], without[0], strict=True)
    ]
    top = [
        len(set(np.argsort(-a)[:5]) & set(np.argsort(-b)[:5]))
        for a, b in zip(with_code[1], without[1], strict=True)
    ]
    assert min(features) > 0.8
    assert np.mean(top) >= 3


def test_no_code_leaves_the_code_out(tmp_path, monkeypatch):
    monkeypatch.setattr(film_module, "write_film", begin_film)
    world = make_world(SEED, 1)
    write_world(world, tmp_path / "w", code=False)
    with av.open(str(tmp_path / "w" / "film.mp4")) as file:
        frame = next(file.decode(video=0)).to_ndarray(format="rgb24")
    assert frame_code.read(frame) is None


def test_a_script_of_another_version_is_refused(folder, tmp_path):
    data = json.loads((folder / "script.json").read_text())
    data["scenes"][0]["end"] += 1
    (tmp_path / "script.json").write_text(dump(data))
    with pytest.raises(ConfigError, match="another version"):
        read_script(tmp_path)
    (tmp_path / "script.json").write_text("{}")
    with pytest.raises(ConfigError, match="not the script"):
        read_script(tmp_path)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_script(tmp_path / "nowhere")
