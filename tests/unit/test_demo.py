"""The demo's prompts are short enough for a small model on two cores, and share a prefix."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path

import pytest

from longtake.config import CacheSettings, Settings, cache_folder
from longtake.lab.footage import LabFootage
from longtake.lab.world import make_script
from longtake.models.backends.scripted import ScriptedChat
from longtake.models.backends.senses import SensesChat
from longtake.models.catalogue import Catalogue
from longtake.models.chat import Card
from longtake.models.witness import Description
from longtake.session.asking import Session, solve
from longtake.steps.run import Run
from longtake.types import Question, Segment

# the real cache folder, read before each test gets a separate one
SETTINGS = Settings(cache=CacheSettings(folder=str(cache_folder(Settings()))))
DEMO_MODEL = "local/qwen2.5-1.5b"
PATH = Path(__file__).parents[2] / "examples" / "demo.py"


@pytest.fixture(scope="module")
def demo():
    spec = importlib.util.spec_from_file_location("demo", PATH)
    # dataclasses look up their module
    module = sys.modules["demo"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def counter():
    """The demo's own model if it is installed, or else the one that ``make test`` downloads.

    The latter counts 1.13 times as many tokens in these prompts.
    """
    for name, most in ((DEMO_MODEL, 300), ("local/smollm2-135m", 300 * 1.13)):
        catalogue = Catalogue(SETTINGS)
        if catalogue.file(name).is_file():
            return catalogue.open(name), most
    if os.environ.get("LONGTAKE_REQUIRE_MODELS"):
        pytest.fail("no local model to count tokens with")
    pytest.skip("no local model to count tokens with")


class Reader:
    """Perfect perception: every sign and every line."""

    revision = "test"

    def __init__(self, footage):
        self.footage = footage

    def describe(self, frame, channels):
        around = Segment(max(0.0, frame.time - 5), frame.time + 5)
        return Description(
            onscreen=tuple(
                line.text for line in self.footage.onscreen(Segment(frame.time, frame.time + 0.1))
            ),
            speech=tuple(line.text for line in self.footage.speech(around)),
        )


@pytest.mark.parametrize("seed", [7, 11, 23])
def test_prompts_are_under_300_tokens_and_share_their_beginning(demo, counter, seed):
    script = make_script(seed, 4)
    footage = LabFootage(script)
    prompts, asked = [], []

    def reply(messages, options):
        prompts.append(messages)
        if options.prompt == "videoagent/grade":
            return json.dumps({"confidence": 1})
        if options.prompt == "videoagent/missing_anywhere":
            return json.dumps({"missing": asked})
        return json.dumps({"reason": "The notes say so.", "choice": "A"})

    chats = {
        "llm": ScriptedChat(reply),
        "captioner": SensesChat(Card("senses/words"), Reader(footage), ("onscreen", "speech")),
    }
    for riddle in demo.riddles(script):
        # what a helpful reply would ask for
        asked[:] = riddle.options
        # without a model named, the built-in one answers, in the profile for small models
        method = Session().method("videoagent")
        solve(method, footage, Question(riddle.text, riddle.options), Run(chats))
    assert len(prompts) == 3 * 3  # predict, missing, predict
    model, most = counter
    for messages in prompts:
        assert sum(model.count(message.text) for message in messages) < most
    first, second = ("".join(message.text for message in messages) for messages in prompts[:2])
    # a prompt cache reads the question and the notes once
    shared = int(0.5 * len(first))
    assert first[:shared] == second[:shared]


def test_riddles_have_one_right_answer_each(demo):
    for seed in range(5, 14):
        script = make_script(seed, 4)
        for riddle in demo.riddles(script):
            assert riddle.options.count(riddle.answer) == 1
            assert riddle.options[ord(riddle.letter) - 65] == riddle.answer
            assert all(0 <= start < end <= script.duration for start, end in riddle.moments)
