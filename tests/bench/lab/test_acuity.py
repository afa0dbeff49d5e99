"""Calibration: a simulated model knows what it was shown, as far as its acuity allows."""

import random
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from bench.lab.asking import CHOICE, answered, model, reply, shown, spoken_in

from longtake._util.timecode import clock
from longtake.config import Settings
from longtake.errors import ConfigError
from longtake.llm.catalog import ModelCatalog
from longtake.llm.chat import Image, Options, request_hash, say
from longtake.types import Frame
from longtake_bench.lab.film import make_world
from longtake_bench.lab.footage import LabFootage
from longtake_bench.lab.frame_code import Moment
from longtake_bench.lab.profile import PROFILE, LabModel, ModelProfile, Profile, parse
from longtake_bench.lab.prompt import Eyes


@cache
def worlds():
    # not when this file is imported, which every process of a test run does
    return [make_world(seed, 20, 40) for seed in (0, 1, 2)]


@pytest.fixture(scope="module")
def footages():
    return [LabFootage(world.script) for world in worlds()]


def accuracy(chat, footages, pictures, kinds=None):
    """Share of right answers to all questions of the given kinds, and the stated confidences."""
    right, stated = [], []
    for world, footage in zip(worlds(), footages, strict=True):
        for question in world.questions:
            if kinds is None or question.kind in kinds:
                notes = spoken_in(world.script, question.evidence) if pictures is evidence else ""
                ok, confidence = answered(chat, question, pictures(footage, question), notes)
                right.append(ok)
                stated.append(confidence)
    return sum(right) / len(right), stated


def evidence(footage, question):
    return footage.at([segment.middle for segment in question.evidence])


def elsewhere(footage, question):
    """Six moments at which none of the evidence is on screen."""

    def is_evidence(time):
        return any(part.start - 1 <= time <= part.end for part in question.evidence)

    seconds = [time for time in footage.times if not is_evidence(time)]
    return footage.at(random.Random(question.id).sample(seconds, 6))


def nothing(footage, question):
    return []


def test_shown_the_evidence_a_perfect_eye_is_always_right(footages):
    share, stated = accuracy(model(acuity=1.0), footages, evidence)
    assert share == 1.0
    assert set(stated) <= {2, 3}


def test_shown_wrong_moments_needles_are_found_no_more_often_than_by_chance(footages):
    share, stated = accuracy(
        model(acuity=1.0), footages, elsewhere, {"needle", "onscreen", "spoken"}
    )
    assert share <= 0.25 + 0.06  # a standard error over 90 questions is 0.045
    assert set(stated) == {1}


def test_accuracy_rises_with_acuity(footages):
    shares = [accuracy(model(acuity=a), footages, evidence)[0] for a in (0.0, 0.4, 1.0)]
    assert shares == sorted(shares)
    assert shares[0] < 0.32
    assert all(b - a > 0.05 for a, b in pairwise(shares[1:]))


@pytest.mark.parametrize("seed", range(2))
def test_without_sight_guesses_are_at_chance(footages, seed):
    share, stated = accuracy(model(acuity=0.0, seed=seed), footages, elsewhere)
    assert 0.12 < share < 0.32
    assert set(stated) == {1}
    assert accuracy(model(acuity=0.0, seed=seed), footages, nothing)[0] == share


def test_confidence_tells_right_from_wrong(footages):
    right, stated = [], []
    for world, footage in zip(worlds(), footages, strict=True):
        for question in world.questions:
            ok, confidence = answered(model(acuity=0.5), question, evidence(footage, question))
            right.append(ok)
            stated.append(confidence)
    by_level = {
        level: [r for r, s in zip(right, stated, strict=True) if s == level] for level in (1, 2, 3)
    }
    assert np.mean(by_level[3]) > 0.95
    assert np.mean(by_level[1]) < 0.4


def test_the_moment_is_read_from_the_picture_and_not_from_what_stands_beside_it(footages):
    world, footage = worlds()[0], footages[0]
    question = next(q for q in world.questions if q.kind == "needle")
    right, wrong = evidence(footage, question)[0], elsewhere(footage, question)[0]
    lying = Frame(right.time, wrong.pixels)
    assert answered(model(acuity=1.0), question, [lying])[1] == 1
    assert answered(model(acuity=1.0), question, [Frame(0.0, right.pixels)]) == (True, 3)


def test_a_model_of_one_world_does_not_know_another(footages):
    question = next(q for q in worlds()[0].questions if q.kind == "needle")
    frames = evidence(footages[0], question)
    assert answered(model(acuity=1.0, world=(0, 20)), question, frames) == (True, 3)
    assert answered(model(acuity=1.0, world=(5, 20)), question, frames)[1] == 1


def test_words_carry_what_pictures_showed(footages):
    """A captioner's notes are enough for a model that sees no pictures at all."""
    world, footage = worlds()[1], footages[1]
    eye, reader = model(acuity=1.0), model(acuity=0.0)
    kinds = ("needle", "onscreen", "order", "multihop", "scope")
    for question in [q for q in world.questions if q.kind in kinds]:
        notes = []
        for frame in evidence(footage, question):
            caption = eye.complete([say("user", "Describe.", Image(frame))], Options()).text
            notes.append(f"[{clock(frame.time)}] {caption}")
        note = "The film is 00:20:00 long.\n" + "\n".join(notes)
        assert answered(reader, question, notes=note) == (True, 3), question


def test_what_ocr_read_completes_a_sign_that_was_seen_unread(footages):
    world, footage = worlds()[1], footages[1]
    question = next(q for q in world.questions if q.kind == "onscreen")
    half_blind = model(acuity=1.0, by_kind={"onscreen": 0.0})
    frames = evidence(footage, question)
    assert answered(half_blind, question, frames)[1] == 1
    lines = footage.onscreen(question.evidence[0])
    notes = "\n".join(f"[{clock(frames[0].time)}] {line.text}" for line in lines)
    assert answered(half_blind, question, frames, notes) == (True, 3)


def test_blind_spots_are_per_kind(footages):
    spots = model(acuity=1.0, by_kind={"action": 0.0})
    assert accuracy(spots, footages, evidence, {"onscreen", "spoken"})[0] == 1.0
    assert accuracy(spots, footages, evidence, {"needle"})[0] < 0.45


def test_a_sharper_eye_sees_all_that_a_duller_one_sees():
    script, gained = worlds()[0].script, 0
    for happening in (*script.deeds, *script.signs):
        for second in range(happening.start, happening.end, 4):
            moment = Moment(script.seed, script.minutes, second)
            seen = []
            for acuity in (0.3, 0.6, 1.0):
                facts = {s.fact for s in Eyes(LabModel(0, acuity, hallucination=0.0)).look(moment)}
                seen.append(happening.fact in facts)
            assert seen[0] <= seen[1] <= seen[2] is True
            gained += seen[2] - seen[0]
    assert gained > 50


def test_nothing_is_kept_between_calls_and_the_same_request_gives_the_same_reply(footages):
    chat, world = model(acuity=0.5, seed=4), worlds()[0]
    questions = [q for q in world.questions[:20] if q.options]
    asked = [shown(question, evidence(footages[0], question)) for question in questions]
    first = [reply(chat, messages, CHOICE) for messages in asked]
    fresh = model(acuity=0.5, seed=4)
    again = [reply(fresh, messages, CHOICE) for messages in reversed(asked)]
    assert first == again[::-1]


def test_tokens_cost_and_time_are_counted(footages):
    frames = footages[0].at([1.0, 2.0])
    messages = [say("user", "x" * 400, *(Image(frame) for frame in frames))]
    usage = model(latency=2.0).complete(messages, Options()).usage
    assert (usage.calls, usage.frames, usage.tokens_in) == (1, 2, 100 + 2 * 256)
    assert usage.seconds == pytest.approx(2.0 + usage.tokens_out * 0.01)
    assert usage.cost == pytest.approx((usage.tokens_in * 0.5 + usage.tokens_out * 1.5) / 1e6)


def test_spoilt_json_comes_at_its_rate(footages):
    question = next(q for q in worlds()[0].questions if q.options)
    chat = model(acuity=1.0, json_faults=0.3)
    frames = footages[0].at([float(t) for t in range(200)])
    spoilt = 0
    for frame in frames:
        text = chat.complete(shown(question, [frame]), Options(schema=CHOICE)).text
        spoilt += not (text.startswith('{"reason"') and text.endswith("}") and ",}" not in text)
    assert 0.2 < spoilt / len(frames) < 0.4


@pytest.mark.parametrize("more", [{"verbosity": 3.0}, {"hallucination": 1.0}], ids=str)
def test_verbosity_and_imagined_things_add_words(footages, more):
    asked = [say("user", "Describe.", Image(footages[0].at([100.0])[0]))]
    brief, long = (model(**given).complete(asked, Options()).text for given in ({}, more))
    assert len(long) > len(brief) + 60


NAMED = [
    ("lab/acuity=0.8", LabModel(acuity=0.8)),
    ("acuity=0.5,seed=3,hallucination=0.1", LabModel(3, 0.5, hallucination=0.1)),
    ("lab/onscreen=0.2,people=1", LabModel(by_kind={"onscreen": 0.2, "people": 1.0})),
    ("world=7:60,tools=0,sleep=1", LabModel(world=(7, 60), tools=False, sleep=True)),
    ("lab/", LabModel()),
    ("context=2000000", LabModel(context=2_000_000)),
]


@pytest.mark.parametrize(("name", "expected"), NAMED)
def test_names_give_models_and_models_their_names(name, expected):
    assert parse(name) == expected
    assert parse(expected.name) == expected


@pytest.mark.parametrize(
    "name", ["acuty=1", "acuity=2", "acuity", "seed=x", "latency=-1", "world=7", "spoken=nan"]
)
def test_invalid_names_are_rejected(name):
    with pytest.raises(ConfigError):
        parse(name)


def test_the_catalogue_opens_lab_models_and_sends_nothing_anywhere():
    catalogue = ModelCatalog(Settings())
    chat = catalogue.open("lab/acuity=0.8,seed=2")
    assert chat.card.name == "lab/seed=2"  # 0.8 is the profile's own
    assert catalogue.host("lab/acuity=0.8") == ""


def test_the_profile_reaches_the_key_of_cached_replies():
    card = model().card
    assert card.revision == PROFILE.hash
    other = replace(card, revision=Profile(model=ModelProfile(acuity=0.81)).hash)
    messages = [say("user", "x")]
    assert request_hash(card, messages, Options()) != request_hash(other, messages, Options())
