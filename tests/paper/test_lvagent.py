"""LVAgent's discussion, line by line, with agents that say what they are told to."""

from __future__ import annotations

import re
import threading
from dataclasses import replace
from typing import Any

import pytest
from support.discussing import FOOTAGE, LOW_BOB, NAMES, OPEN, QUESTION, cards, play, talk
from support.footages import TestFootage
from support.patience import PATIENCE

from longtake.agents.run import Agent, Run
from longtake.config import BudgetSettings
from longtake.errors import ConfigError
from longtake.llm.backends.scripted import ScriptedChat
from longtake.llm.chat import Card, Options
from longtake.methods.lvagent.method import LVAgent
from longtake.runner.session import solve
from longtake.types import Line, Segment

# ---- action: equation 6, and "exceeds half of the total number of agents"


def test_two_of_three_agree_and_the_first_round_ends_it():
    team = talk({"ann": ["A"], "bob": ["B"], "cid": ["B"]}, {})
    answer, heard = play(team)
    assert (answer.choice, answer.text, answer.reason) == ("B", "a stick", "bob says B in round 1")
    assert team.calls("lvagent/gate") == team.calls("lvagent/key") == 3
    assert team.calls("lvagent/answer") == team.calls("lvagent/reason") == 3
    assert team.calls("shared/score") == 0
    assert len(answer.evidence) == 3
    assert not heard.notes("pruned")


def test_the_answer_is_a_letter_alone_and_the_reason_comes_from_the_same_frames():
    team = talk({"ann": ["A"]}, {})
    play(team)
    assert team.times("lvagent/answer") == team.times("lvagent/reason")
    assert team.told("lvagent/answer")[0].endswith('Its fields:\n"choice": one of "A", "B", "C"')
    assert "A. a ball" in team.told("lvagent/reason")[0].partition("You gave this answer")[2]


@pytest.mark.parametrize(
    ("said", "ends_at_once"),
    [(("A", "A"), True), (("A", "B"), False), (("A", None), False), (("A",), True)],
    ids=["both of two", "one of two", "one of two, one abstains", "one of one"],
)
def test_more_than_half_of_the_current_agents(said, ends_at_once):
    names = NAMES[: len(said)]
    scores = cards(**dict.fromkeys(names, 5))
    team = talk({name: [choice] * 3 for name, choice in zip(names, said, strict=True)}, scores)
    play(team)
    assert (team.calls("shared/score") == 0) == ends_at_once


def test_two_abstentions_keep_one_vote_from_being_more_than_half():
    team = talk(
        {"ann": ["A", "A", "B"], "bob": [None, None], "cid": [None]}, cards(ann=9, bob=5, cid=2)
    )
    answer, heard = play(team)
    assert [note.data["agent"] for note in heard.notes("pruned")] == ["cid", "bob"]
    assert answer.choice == "B", "the last agent answers once more, and that stands"


def test_an_unread_answer_is_an_abstention_and_is_not_asked_for_a_reason():
    team = talk({"ann": [None]}, {})
    answer, heard = play(team)
    assert (answer.status, answer.choice) == ("abstained", None)
    assert team.calls("lvagent/reason") == 0
    assert [note.data["prompt"] for note in heard.notes("default_taken")] == ["lvagent/answer"]


# ---- reflection: equations 7, 8 and 4


def test_sums_of_all_judges_and_the_lowest_leaves():
    scores = {
        "ann": {"ann": 9, "bob": 2, "cid": 8},
        "bob": {"ann": 1, "bob": 10, "cid": 9},
        "cid": {"ann": 9, "bob": 5, "cid": 9},
    }
    team = talk({"ann": ["A", "C"], "bob": ["B"], "cid": ["C", "C"]}, scores)
    answer, heard = play(team)
    (pruned,) = heard.notes("pruned")
    assert pruned.data == {"agent": "bob", "scores": {"ann": 19, "bob": 17, "cid": 26}}
    assert answer.choice == "C"
    assert answer.reason == "ann says C in round 2"
    assert all("Round" not in text for text in team.told("shared/score")), "peers judge words alone"


def test_of_equal_sums_the_lower_rank_leaves():
    team = talk({"ann": ["A", "A"], "bob": ["B", "A"], "cid": ["C"]}, cards(ann=5, bob=5, cid=5))
    _, heard = play(team)
    assert [note.data["agent"] for note in heard.notes("pruned")] == ["cid"]


def test_a_judge_that_cannot_be_read_is_left_out_of_the_sum():
    team = talk(
        {"ann": ["A", "C"], "bob": ["B"], "cid": ["C", "C"]},
        {"cid": {"ann": 8, "bob": 3, "cid": 9}},
    )
    _, heard = play(team)
    assert heard.notes("pruned")[0].data["scores"] == {"ann": 8, "bob": 3, "cid": 9}


def test_the_history_holds_answers_reasons_scores_and_who_left_round_by_round():
    team = talk({"ann": ["A", "A", "C"], "bob": ["B"], "cid": ["C", "C"]}, LOW_BOB)
    play(team)
    second, third = team.told("lvagent/key_again")[:2], team.told("lvagent/key_again")[2]
    for text in second:
        assert "ann (score 27): A. ann says A in round 1" in text
        assert (
            "bob [left: the others found it unconvincing] (score 6): B. bob says B in round 1"
            in text
        )
        assert "cid (score 15): C. cid says C in round 1" in text
    assert (
        third.index("Round 1")
        < third.index("bob [left")
        < third.index("Round 2")
        < third.index("cid [left")
    )
    assert "ann (score 18): A. ann says A in round 2" in third
    assert all(times == [] for times in team.times("lvagent/key_again")), (
        "later key information comes from words"
    )


def test_new_key_information_decides_what_is_seen_next():
    team = talk({"ann": ["A", "C"], "bob": ["B"], "cid": ["C", "C"]}, LOW_BOB)
    play(team)
    shown = team.times("lvagent/answer")
    assert all(200 <= time < 400 for times in shown[:3] for time in times), "dog"
    assert all(400 <= time < 600 for times in shown[3:] for time in times), "car"


def test_the_last_agent_looks_and_answers_once_more_and_that_stands():
    team = talk({"ann": ["A", "A", "B"], "bob": ["B"], "cid": ["C", "C"]}, LOW_BOB)
    answer, heard = play(team)
    assert [note.data["agent"] for note in heard.notes("pruned")] == ["bob", "cid"]
    assert (answer.choice, answer.reason) == ("B", "ann says B in round 3")
    assert team.calls("lvagent/answer") == 3 + 2 + 1
    assert team.calls("shared/score") == 3 + 2
    assert team.calls("lvagent/key_again") == 2 + 1


def test_rounds_spent_with_several_left_most_votes_win():
    answers = {
        "ann": ["A", "A"],
        "bob": ["B", "B"],
        "cid": ["C", "B"],
        "dan": ["A", None],
        "eve": ["B"],
    }
    team = talk(answers, cards(ann=9, bob=8, cid=7, dan=6, eve=1))
    answer, _ = play(team, LVAgent(team_size=5, max_rounds=2))
    assert answer.choice == "B"  # two of four are no majority, and more than one
    assert team.calls("shared/score") == 5, "no tie, so nobody is scored in the last round"


def test_rounds_spent_and_votes_equal_the_higher_scores_win():
    team = talk({"ann": ["A", "A"], "bob": ["B"], "cid": ["C", "C"]}, cards(ann=3, bob=2, cid=9))
    answer, heard = play(team, LVAgent(max_rounds=2))
    assert answer.choice == "C"
    assert heard.notes("judged")[0].data["scores"] == {"ann": 6, "cid": 18}
    tied = talk({"ann": ["A", "A"], "bob": ["B"], "cid": ["C", "C"]}, cards(ann=3, bob=2, cid=3))
    assert play(tied, LVAgent(max_rounds=2))[0].choice == "A", "equal scores: the better rank"


# ---- answers in words, confidence, budget, manner


def test_answers_in_words_are_compared_by_meaning():
    team = talk(
        {"ann": ["a shoe"], "bob": ["a ball"], "cid": ["some ball"]}, {}, groups=[[1], [2, 3]]
    )
    answer, _ = play(team, question=OPEN)
    assert (answer.choice, answer.text) == (None, "a ball")
    assert team.calls("shared/same_meaning") == 1
    apart = talk(
        {"ann": ["shoe", "ball"], "bob": ["stick"], "cid": ["ball", "ball"]},
        LOW_BOB,
        groups=[[1], [2], [3]],
    )
    answer, heard = play(apart, question=OPEN)
    assert answer.text == "ball"
    assert len(heard.notes("pruned")) == 1


@pytest.mark.parametrize(
    ("said", "confidence"), [("AAA", 0.88), ("AAB", 0.53), ("ABC", 0.26), ("A", None), ("AB", 0.26)]
)
def test_confidence_is_by_the_vote_of_the_first_round(said, confidence):
    names = NAMES[: len(said)]
    answers = {name: [first, "A", "A"] for name, first in zip(names, said, strict=True)}
    answer, _ = play(talk(answers, cards(**dict.fromkeys(names, 5))))
    assert answer.confidence == confidence


def test_a_spent_budget_gives_the_leading_answer_so_far():
    team = talk({"ann": ["A", "A"], "bob": ["B", "B"], "cid": ["C"]}, LOW_BOB)
    run = Run({}, team=team.agents, budget=BudgetSettings(calls=14))
    answer = solve(LVAgent(), FOOTAGE, QUESTION, run).answer
    assert (answer.choice, answer.status) == ("A", "budget_spent")


def test_temperature_and_length_are_the_papers_unless_the_team_file_sets_them():
    sent: dict[str, Options] = {}

    def answering(name: str) -> ScriptedChat:
        def say(_, options):
            sent[name] = options
            return '{"choice": "A"}'

        return ScriptedChat(say, card=Card(name, options=Options(temperature=0.4, max_tokens=900)))

    team = [Agent("ann", answering("ann")), Agent("bob", answering("bob"), (), 0.4, 900)]
    solve(LVAgent(perception=False, reasons=False), FOOTAGE, QUESTION, Run({}, team=team))
    assert (sent["ann"].temperature, sent["ann"].max_tokens) == (0.01, 168)
    assert (sent["bob"].temperature, sent["bob"].max_tokens) == (0.4, 900)


def test_a_team_is_needed():
    with pytest.raises(ConfigError, match="team"):
        LVAgent().answer(FOOTAGE, QUESTION, Run({}))


def test_agents_work_side_by_side():
    """Every call waits until all three agents reach the same step: in sequence they would hang."""
    together = threading.Barrier(3, timeout=PATIENCE)
    team = talk({"ann": ["A"], "bob": ["A"], "cid": ["A"]}, {})

    def waiting(chat: Any) -> ScriptedChat:
        def say(messages, options):
            together.wait()
            return chat.complete(messages, options).text

        return ScriptedChat(say, card=chat.card)

    agents = [replace(agent, chat=waiting(agent.chat)) for agent in team.agents]
    assert solve(LVAgent(), FOOTAGE, QUESTION, Run({}, team=agents)).answer.choice == "A"
    assert team.calls("lvagent/reason") == 3


# ---- subtitles


def test_subtitles_stand_in_every_prompt_of_who_looks():
    lines = [
        Line(Segment(second, second + 2.0), f"line at {second}") for second in range(0, 600, 60)
    ]
    footage = TestFootage(600, lines=lines)
    team = talk({"ann": ["A", "C"], "bob": ["B"], "cid": ["C", "C"]}, LOW_BOB)
    play(team, footage=footage)
    for prompt in ("gate", "key", "key_again", "answer", "reason"):
        assert all(
            '<material name="subtitles">' in text and "line at 540" in text
            for text in team.told(f"lvagent/{prompt}")
        )
    quiet = talk({"ann": ["A"]}, {})
    play(quiet, footage=TestFootage(600))
    assert not any("subtitles" in text for _, _, text in quiet.asked)


def test_subtitles_are_cut_to_those_nearest_to_the_moments_shown():
    lines = [Line(Segment(float(second), second + 1.0), f"word{second}") for second in range(600)]
    footage = TestFootage(600, lines=lines)
    team = talk({"ann": ["A"]}, {})
    method = LVAgent(subtitle_words=32, threshold=None)
    play(team, method, footage=footage)
    (shown,), (text,) = [frames_of(footage)], team.told("lvagent/answer")
    kept = [int(word) for word in re.findall(r"word(\d+)", text)]
    assert len(kept) == 32
    assert kept == sorted(kept)
    assert set(shown) <= set(kept)


def frames_of(footage: TestFootage) -> list[int]:
    """The moments of the latest look."""
    return [int(time) for time in footage.shown[-16:]]
