"""The parts of ``benchmarks/replies.py``: the proxy, the footage and the counting."""

import numpy as np
import pytest
from pydantic import BaseModel
from support.narrated import Narrated
from support.orchestra import Script, finish, plan, play
from support.rungs import counting
from support.server import Request, Send, completion, serve
from support.stripping import stripping

from longtake.models.backends.openai import OpenAIChat
from longtake.models.backends.scripted import ScriptedChat
from longtake.models.chat import Card, Options, ToolSpec, say
from longtake.models.http import Endpoint
from longtake.models.replies.forms import Letter
from longtake.steps.ask import ask
from longtake.types import Question

QUESTION = Question("Who barks?", ("the man", "the dog"))


class Guess(BaseModel):
    choice: Letter = None


def test_the_proxy_takes_away_what_enforces_a_form_and_nothing_else() -> None:
    with serve(lambda _: completion("fine")) as served, stripping(served.url, key="k") as address:
        chat = OpenAIChat(Card("there", model="m"), Endpoint("there", address, timeout=5))
        typed = Options(schema={"type": "object"}, seed=3, max_tokens=7)
        assert chat.complete([say("user", "Hello?")], typed).text == "fine"
        tool = ToolSpec("look", "Looks.", {"type": "object"})
        chat.complete([say("user", "Hello?")], Options(tools=(tool,)))
    body = served.requests[0].body
    assert "response_format" not in body
    assert (body["seed"], body["max_tokens"], body["model"]) == (3, 7, "m")
    assert served.requests[0].headers["Authorization"] == "Bearer k"
    assert served.requests[-1].body["tools"][0]["function"]["name"] == "look"


def test_errors_and_other_paths_pass_through_the_proxy() -> None:
    def act(request: Request) -> Send:
        return Send(200, {"tokens": [1, 2]}) if "tokenize" in request.path else Send(418, {})

    with serve(act) as served, stripping(served.url) as address:
        chat = OpenAIChat(Card("there", model="m"), Endpoint("there", address, timeout=5))
        assert chat.count("two words") == 2
        with pytest.raises(Exception, match="418"):
            chat.complete([say("user", "Hello?")], Options())


@pytest.mark.parametrize(
    ("replies", "rung"),
    [
        (['{"choice": "B"}'], "first"),
        (["hm", '{"choice": "B"}'], "again"),
        (["hm", "hm", "B"], "field"),
        (["hm", "hm", "hm"], "unread"),
    ],
)
def test_a_question_is_counted_by_the_rung_on_which_it_was_read(
    replies: list[str], rung: str
) -> None:
    with counting() as ladder:
        ask(
            ScriptedChat(replies), "baselines/blind", Guess, question=QUESTION, manner="", default=0
        )
    step = ladder.steps["baselines/blind"]
    assert dict(step.rungs) == {rung: 1}
    assert step.usage.calls == len(replies)


def test_an_answer_after_tools_that_ask_too_is_counted() -> None:
    script = Script([plan("visual_perception"), finish()], uses=[("global_summary", {})])
    with counting() as ladder:
        play(script)
    assert dict(ladder.steps["symphony/look"].rungs) == {"first": 1}
    assert dict(ladder.steps["symphony/perceive"].rungs) == {"first": 1}


def test_captions_are_told_as_pictures_and_spoken() -> None:
    class Sentences:
        name = "none"

        def texts(self, texts: list[str]) -> np.ndarray:
            return np.ones((len(texts), 1), np.float32)

    footage = Narrated("film", [f"caption {second}" for second in range(12)], Sentences())
    frame = footage.at([7.0])[0]
    assert footage.witness().describe(frame, ("tags",)).tags == ("caption 7",)
    assert [line.text for line in footage.speech()] == ["caption 0", "caption 5", "caption 10"]
    assert [frame.time for frame in footage.uniform(3)] == [0.0, 5.0, 11.0]
