"""Team files, and the agents they describe."""

import json
from pathlib import Path

import pytest
from support.listening import listening

from longtake.agents.run import Agent
from longtake.agents.team import (
    DEFAULT_TEAM,
    Opinion,
    by_meaning,
    group_answers,
    judge_all,
    majority,
    open_team,
    read_team,
    tally,
    transcript,
    unanimous,
)
from longtake.config import Settings
from longtake.config.entries import OpenAIEntry
from longtake.errors import ConfigError
from longtake.llm.backends.scripted import ScriptedChat
from longtake.llm.catalog import ModelCatalog
from longtake.types import Question


def test_team_files(tmp_path: Path) -> None:
    path = tmp_path / "team.toml"
    path.write_text(
        '[[agent]]\nname = "ann"\nmodel = "mine"\ntemperature = 0.01\n'
        'max_new_tokens = 168\nchannels = ["speech"]\n'
        '[[agent]]\nname = "bob"\nmodel = "mine"\n'
    )
    ann, bob = read_team(path)
    assert (ann.temperature, ann.max_new_tokens, ann.channels) == (0.01, 168, ("speech",))
    settings = Settings(
        models={"mine": OpenAIEntry(base_url="http://127.0.0.1:9/v1", temperature=0.5)}
    )
    agents = open_team(ModelCatalog(settings), [ann, bob])
    assert [(a.name, a.chat.card.options.temperature) for a in agents] == [
        ("ann", 0.01),
        ("bob", 0.5),
    ]
    assert agents[0].chat.card.options.max_tokens == 168


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[[agent]]\nname = "ann"\n', "model: Field required"),
        ('[[agent]]\nname = "ann"\nmodel = "m"\ntemprature = 1\n', "temprature: Extra"),
        ('[[agent]]\nname = "a"\nmodel = "m"\n[[agent]]\nname = "a"\nmodel = "m"\n', "same name"),
        ("x = 1", "nothing else"),
        ("[[agent", "not valid TOML"),
    ],
)
def test_team_files_that_are_wrong(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "team.toml").write_text(text)
    with pytest.raises(ConfigError, match=says):
        read_team(tmp_path / "team.toml")


def test_with_nothing_configured_there_is_a_reader_a_listener_and_a_looker() -> None:
    entries = Settings().models
    channels = {member.name: entries[member.model].channels for member in DEFAULT_TEAM}
    assert channels == {"reader": ("onscreen",), "listener": ("speech",), "looker": ("tags",)}


QUESTION = Question("Who?", ("man", "dog"))


def votes(*choices: str | None) -> list[Opinion]:
    return [Opinion(f"agent {number}", choice) for number, choice in enumerate(choices)]


@pytest.mark.parametrize(
    ("choices", "more_than_half", "all_of_them"),
    [
        (("A", "A", "A"), "A", "A"),
        (("A", "A", "B"), "A", None),
        (("A", "B"), None, None),
        (("A", "A"), "A", "A"),
        (("A",), "A", "A"),
        (("A", None), None, None),
        (("A", "A", None), "A", None),
        ((None, None), None, None),
        ((), None, None),
    ],
)
def test_an_abstention_is_a_vote_for_nothing(
    choices: tuple[str | None, ...], more_than_half: str | None, all_of_them: str | None
) -> None:
    assert majority(votes(*choices)) == more_than_half
    assert unanimous(votes(*choices)) == all_of_them


def test_open_ended_votes_are_texts() -> None:
    opinions = [Opinion("a", text="The dog."), Opinion("b", text="the dog"), Opinion("c", text="")]
    assert tally(opinions) == {"the dog": 2}


def test_a_transcript_holds_answer_reason_score_and_who_left() -> None:
    lines = transcript(
        [Opinion("ann", "A", reason="it barks", score=17), Opinion("bob", left=True)]
    )
    assert lines[0] == "ann (score 17): A. it barks"
    assert "bob [left" in lines[1]
    assert "no answer" in lines[1]


def test_an_unreadable_judge_is_left_out_of_the_sum() -> None:
    def judge(first: int, second: int) -> ScriptedChat:
        return ScriptedChat([json.dumps({"agent_1": first, "agent_2": second})])

    agents = [
        Agent("ann", judge(9, 3)),
        Agent("bob", judge(2, 10)),
        Agent("cid", ScriptedChat(["all great!", '{"agent_1": 11, "agent_2": 5}', "12"])),
    ]
    with listening() as heard:
        judged = judge_all(agents, [Opinion("ann", "A"), Opinion("bob", "B")], QUESTION)
    assert [opinion.score for opinion in judged] == [11, 13]
    assert len(heard.notes("default_taken")) == 1


@pytest.mark.parametrize(
    ("reply", "groups"),
    [
        ('{"groups": [[1, 2], [3]]}', [[0, 1, 3], [2]]),
        ('{"groups": [[1], [2], [3]]}', [[0, 3], [1], [2]]),
        ('{"groups": [[1, 2]]}', [[0, 3], [1], [2]]),
        ('{"groups": [[1, 2, 3], [3]]}', [[0, 3], [1], [2]]),
        ('{"groups": [[1, 2, 3, 4]]}', [[0, 3], [1], [2]]),
        ("they are all alike", [[0, 3], [1], [2]]),
    ],
)
def test_open_ended_answers_are_grouped_by_meaning(reply: str, groups: list[list[int]]) -> None:
    answers = ["a dog", "one hound", "a cat", "A dog!"]
    assert group_answers(ScriptedChat(lambda *_: reply), Question("Who?"), answers) == groups


def test_equal_answers_need_no_model() -> None:
    chat = ScriptedChat([])
    assert group_answers(chat, Question("Who?"), ["a dog", "A dog."]) == [[0, 1]]
    assert group_answers(chat, Question("Who?"), []) == []


def test_answers_that_say_the_same_count_as_one_vote() -> None:
    said = [
        Opinion("a", text="The dog."),
        Opinion("b"),
        Opinion("c", text="a hound"),
        Opinion("d", text="the cat"),
    ]
    chat = ScriptedChat(['{"groups": [[1, 2], [3]]}'])
    compared = by_meaning(chat, Question("Who?"), said)
    assert [opinion.vote for opinion in compared] == ["the dog", None, "the dog", "the cat"]
    assert [opinion.text for opinion in compared] == [opinion.text for opinion in said]
    assert majority(compared) is None, "two of four"
    assert by_meaning(ScriptedChat([]), QUESTION, votes("A", "B")) == votes("A", "B"), (
        "letters need no asking"
    )
