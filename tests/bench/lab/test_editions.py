"""The profile: its worlds stay as they are, and its models err as real ones do."""

import hashlib
from collections import Counter
from functools import cache

import numpy as np
import pytest
from bench.lab.asking import answered, model, reply, shown

from longtake.errors import ConfigError
from longtake_bench.lab.film import make_world
from longtake_bench.lab.footage import LabFootage
from longtake_bench.lab.model import LabChat
from longtake_bench.lab.profile import PROFILE, LabModel, parse
from longtake_bench.lab.prompt import Eyes
from longtake_bench.lab.questions import questions_json


@cache
def world():
    # not when this file is imported, which every process of a test run does
    return make_world(0, 20, 60)


PEERS = """<material kind="answers">
one: A. Nothing that was shown settles this, so it is a guess.
two: B. Nothing that was shown settles this, so it is a guess.
</material>"""


@pytest.fixture(scope="module")
def footage():
    return LabFootage(world().script)


def test_the_profile_and_worlds_stay_the_same():
    assert PROFILE.hash == "lab-3:b9e6a3ccd9e7"
    text = world().script.to_json() + questions_json(world().questions)
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "5bf5f9ff3387f28c"


def test_a_model_of_an_edition_has_its_parameters():
    given = parse("profile=lab-3,acuity=0.6")
    assert (given.dilution, given.grading) == (PROFILE.model.dilution, PROFILE.model.grading)
    assert given.name == "lab/profile=lab-3,acuity=0.6"
    assert parse(given.name) == given
    assert LabChat(given).card.revision == PROFILE.hash
    assert parse("acuity=0.8") == LabModel()
    assert LabModel().name == "lab/acuity=0.8"


def test_an_earlier_edition_is_rejected():
    with pytest.raises(ConfigError, match="lab-3"):
        parse("profile=lab-2")


def needles():
    return [q for q in world().questions if q.kind in ("needle", "onscreen")]


def seen_among(footage, count, **parameters):
    """The share of needles answered with the evidence in the middle of other pictures."""
    chat = model(acuity=1.0, **parameters)
    right = []
    for question in needles():
        times = footage.times[np.linspace(0, len(footage.times) - 1, count).astype(int)]
        frames = footage.at(times.tolist())
        frames[count // 2] = footage.at([question.evidence[0].middle])[0]
        right.append(answered(chat, question, frames)[0])
    return sum(right) / len(right)


def test_pictures_dilute_one_another(footage):
    assert seen_among(footage, 24) == 1.0
    assert seen_among(footage, 24, dilution=0.5) < seen_among(footage, 4, dilution=0.5) < 1.0


def test_the_middle_of_a_call_loses_most_and_the_mean_does_not_change():
    eyes = Eyes(LabModel(0, 1.0, dilution=0.1, middle=0.25))
    ends, middle = eyes.attention(64, 0.0), eyes.attention(64, 0.5)
    assert ends > Eyes(LabModel(0, 1.0, dilution=0.1)).attention(64, 0.5) > middle
    lost = [1 / eyes.attention(64, position) for position in np.linspace(0, 1, 1001)]
    assert np.mean(lost) == pytest.approx(1 + 0.1 * 6, abs=1e-3)
    assert eyes.attention(1.0, 0.5) == 1.0


def grades(footage, grading):
    stated = []
    for question in world().questions:
        frames = footage.at([segment.middle for segment in question.evidence])
        stated.append(answered(model(acuity=1.0, grading=grading), question, frames)[1])
    return Counter(stated)


def test_grades_are_noise_without_grading_and_the_truth_with_it(footage):
    assert grades(footage, 1.0)[1] <= 60 / 6
    noise = grades(footage, 0.0)
    assert min(noise[level] for level in (1, 2, 3)) > 60 / 5


def scores(judging, seed):
    question = next(q for q in world().questions if q.kind == "needle")
    numbered = {f"agent_{number}": {"type": "integer"} for number in (1, 2)}
    schema = {"type": "object", "properties": numbered}
    said = reply(model(judging=judging, seed=seed), shown(question, notes=PEERS), schema)
    return list(said.values())


def test_scores_are_noise_without_judging_and_the_truth_with_it():
    assert scores(1.0, 0) == [2, 2]  # neither says what it saw
    assert len({tuple(scores(0.0, seed)) for seed in range(12)}) > 6


def test_a_biased_model_chooses_the_first_option():
    questions = [q for q in world().questions if q.options]
    firsts = {}
    for bias in (0.0, 0.7, 1.0):
        chat = model(acuity=0.0, position_bias=bias)
        schema = {
            "type": "object",
            "properties": {"choice": {"type": "string", "enum": list("ABCD")}},
        }
        chosen = [reply(chat, shown(question), schema)["choice"] for question in questions]
        firsts[bias] = chosen.count("A") / len(chosen)
    assert firsts[0.0] < 0.4 < firsts[0.7] < firsts[1.0] == 1.0
