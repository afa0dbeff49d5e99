"""The demo's film can be understood, its questions have answers, and its score is honest."""

import importlib.util
import sys
from pathlib import Path

import pytest

from longtake.config import Settings
from longtake.perception.loader import PerceptionModels
from longtake.video.subtitles import read_subtitles, sidecar
from longtake.video.video import Video

PATH = Path(__file__).parents[2] / "examples" / "demo.py"


@pytest.fixture(scope="module")
def demo():
    spec = importlib.util.spec_from_file_location("demo", PATH)
    # dataclasses look up their module
    module = sys.modules["demo"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("seed", range(5))
def test_each_answer_is_in_the_film_where_the_riddle_says(demo, seed):
    stops = demo.tour(seed)
    said = [line for stop in stops for line in stop.narration]
    cards = [line for stop in stops for line in stop.card]
    heard, shown, unseen = demo.riddles(stops, seed)
    assert sum(heard.answer in line for line in said) == 1
    assert any(shown.answer in line for line in cards)
    assert unseen.answer == ""
    words = unseen.text.rstrip("?").split()[-1]
    assert not any(words in line for line in (*said, *cards))


def test_the_film_shows_its_cards_and_has_its_narration_beside_it(demo, tmp_path):
    stops = demo.tour(3)
    film = demo.write_tour(stops, tmp_path, 3)
    lines = read_subtitles(sidecar(film))
    assert [line.text for line in lines] == [line for stop in stops for line in stop.narration]
    frame = Video(film).at([demo.SCENE * 1.5])[0]
    reader = PerceptionModels(Settings().perception, tmp_path).reader
    read = " ".join(box.text for box in reader.read(frame))
    assert stops[1].hours in read


def test_an_abstention_is_right_only_where_nothing_tells(demo):
    told, untold = demo.Riddle("Who?", "Ruth Abara", (4, 8)), demo.Riddle("What colour?")
    abstained = {"status": "abstained", "text": "", "evidence": []}
    answered = {"status": "answered", "text": "It was Ruth Abara.", "evidence": []}
    assert demo.is_right(abstained, untold)
    assert not demo.is_right(abstained, told)
    assert demo.is_right(answered, told)
    there = demo.Riddle("Where?", "in the cellar", (4, 8))
    assert demo.is_right(answered | {"text": "cellar"}, there)
    assert not demo.is_right(answered | {"text": "in the attic"}, there)
    assert not demo.is_right(answered, untold)


def test_citations_count_as_near_within_five_seconds(demo):
    riddle = demo.Riddle("Who?", "Ruth Abara", (20, 24))
    cited = [{"start": start, "end": start + 2} for start in (10, 14, 28, 30)]
    assert demo.near({"evidence": cited}, riddle) == 2
