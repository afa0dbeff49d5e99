"""LVAgent's ablations (Tables 3, 4 and 6), its bounds and its presets."""

from __future__ import annotations

import pytest
from support.discussing import FOOTAGE, LOW_BOB, NAMES, OPEN, QUESTION, cards, play, talk

from longtake.agents.run import Run
from longtake.errors import ConfigError
from longtake.llm.chat import Reply
from longtake.llm.structured.ask import ReplyForm
from longtake.methods.base import configure
from longtake.methods.lvagent.method import AgentReasonReply, LVAgent
from longtake.runner.session import solve

# ---- Tables 3, 4 and 6


def test_best_score_keeps_everybody_and_takes_the_highest_after_the_last_round():
    answers = {"ann": ["A"] * 3, "bob": ["B"] * 3, "cid": ["C"] * 3}
    team = talk(answers, cards(ann=3, bob=2, cid=9))
    answer, heard = play(team, LVAgent(discussion="best_score"))
    assert answer.choice == "C"
    assert not heard.notes("pruned")
    assert team.calls("lvagent/answer") == team.calls("shared/score") == 9
    assert "[left" not in "".join(team.told("lvagent/key_again"))
    agreed = talk(
        {"ann": ["A", "B"], "bob": ["B", "B"], "cid": ["C", "C"]}, cards(ann=3, bob=2, cid=9)
    )
    assert play(agreed, LVAgent(discussion="best_score"))[0].choice == "B", (
        "consensus still ends it"
    )


def test_decide_by_agent_the_best_ranked_answers_from_history_and_video():
    answers = {"ann": ["A"] * 3, "bob": ["B"] * 3, "cid": ["C"] * 3}
    team = talk(answers, cards(ann=3, bob=2, cid=9), decision="B")
    answer, heard = play(team, LVAgent(discussion="decide_by_agent"))
    assert answer.choice == "B"
    assert not heard.notes("pruned")
    (asked,) = [one for one in team.asked if one[1] == "lvagent/decide"]
    assert asked[0] == "ann"
    assert "cid (score 27): C. cid says C in round 3" in asked[2]
    assert set(team.times("lvagent/answer")[-3]) <= set(team.times("lvagent/decide")[0])


def test_without_reflection_one_round_and_the_vote():
    team = talk({"ann": ["A"], "bob": ["B"], "cid": ["C"]}, {})
    answer, _ = play(team, LVAgent(reflection=False))
    assert (answer.choice, team.calls("shared/score"), team.calls("lvagent/answer")) == ("A", 0, 3)


def test_without_perception_many_frames_over_the_whole_film_drawn_anew_each_round():
    team = talk({"ann": ["A", "C"], "bob": ["B"], "cid": ["C", "C"]}, LOW_BOB)
    play(team, LVAgent(perception=False))
    shown = team.times("lvagent/answer")
    assert [len(times) for times in shown] == [128] * 5
    assert shown[0] == shown[1] == shown[2] != shown[3]
    assert (
        team.calls("lvagent/gate")
        == team.calls("lvagent/key")
        == team.calls("lvagent/key_again")
        == 0
    )


def test_the_team_is_the_best_ranked_of_those_given():
    team = talk({"ann": ["A"], "bob": ["A"], "cid": ["B"], "dan": ["B"]}, {})
    answer, heard = play(team)
    assert answer.choice == "A"
    assert heard.notes("not_seated")[0].data == {"agents": ["dan"], "team_size": 3}
    assert {name for name, _, _ in team.asked} == set(NAMES)


# ---- bounds and presets


@pytest.mark.parametrize("discussion", ["dynamic", "best_score", "decide_by_agent"])
@pytest.mark.parametrize("question", [QUESTION, OPEN], ids=["letters", "words"])
@pytest.mark.parametrize(
    "more",
    [{}, {"perception": False}, {"reflection": False}, {"max_rounds": 2}, {"reasons": False}],
)
def test_bounds_are_reached_when_nobody_ever_agrees(discussion, question, more):
    said = {"ann": ["A"] * 3, "bob": ["B"] * 3, "cid": ["C"] * 3}
    spoken = {"ann": ["ball"] * 3, "bob": ["stick"] * 3, "cid": ["shoe"] * 3}
    team = talk(said if question.options else spoken, LOW_BOB, groups=[[1], [2], [3]], decision="A")
    # every chunk passes, and an agent that need not watch it all is asked twice in round 1
    method = LVAgent(discussion=discussion, threshold=-1.0, **more)
    run = Run({}, team=team.agents)
    solve(method, FOOTAGE, question, run)
    bounds = method.bounds(FOOTAGE.duration, question)
    assert bounds.calls == len(team.asked)
    looks = ("gate", "key", "answer", "reason", "decide")
    assert bounds.frames == sum(
        len(times) for look in looks for times in team.times(f"lvagent/{look}")
    )
    assert (
        bounds.prompt_words
        >= sum(len(text.split()) for _, _, text in team.asked) - bounds.frames * 5
    )


@pytest.mark.parametrize("field", ["team_size", "max_rounds", "chunks", "frames_per_chunk"])
def test_what_must_be_at_least_one(field):
    with pytest.raises(ConfigError, match=field):
        configure(LVAgent, {field: 0})


def test_a_reason_that_was_cut_is_used_as_it_stands():
    cut = Reply('{"reason": "The person in the red coat throws the ball', finish="length")
    read = ReplyForm.of(AgentReasonReply, {}).read(cut)
    assert read.reason.endswith("throws the ball")


def test_presets():
    printed = configure(LVAgent, {"preset": "paper"})
    assert (printed.calibration, printed.native_whole, printed.threshold) == ("sum", False, 0.8)
    released = configure(LVAgent, {"preset": "released"})
    assert (released.question_term, released.threshold, released.native_whole) == (
        False,
        None,
        True,
    )
    ours = LVAgent()
    assert (ours.team_size, ours.max_rounds, ours.chunks, ours.frames_per_chunk) == (3, 3, 6, 16)
    assert (ours.preview_frames, ours.global_frames, ours.blank_frames, ours.key_words) == (
        4,
        16,
        128,
        50,
    )
