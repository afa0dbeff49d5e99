"""LVAgent beside its paper, with agents that say what they are told to."""

import re
import threading
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.footages import TestFootage
from support.listening import listening
from support.patience import PATIENCE
from support.talking import TalkingFootage, Team

from longtake.agents.run import Agent, Run
from longtake.agents.team import Opinion, majority, prune, tally
from longtake.algorithms import sampling
from longtake.config import BudgetSettings
from longtake.errors import ConfigError
from longtake.footage.look import clip_scorer
from longtake.llm.backends.scripted import ScriptedChat
from longtake.llm.chat import Card, Options, Reply
from longtake.llm.structured.ask import ReplyForm
from longtake.methods.base import configure
from longtake.methods.lvagent.method import AgentReasonReply, LVAgent
from longtake.perception.minilm import MeanPooling
from longtake.runner.session import solve
from longtake.tracing.events import ScoresSet
from longtake.types import Line, Question, Segment
from longtake_bench import selection

QUESTION = Question("What is thrown?", ("a ball", "a stick", "a shoe"))
OPEN = Question("What is thrown?")
FOOTAGE = TalkingFootage([("cat", 200), ("dog", 200), ("car", 200)])
NAMES = ("ann", "bob", "cid")


def cards(**points: int) -> dict[str, dict[str, int]]:
    """Every judge gives the same scores."""
    return dict.fromkeys(points, points)


LOW_BOB = cards(ann=9, bob=2, cid=5)
APART = {"ann": ["A"] * 3, "bob": ["B"] * 3, "cid": ["C"] * 3}
"""Nobody ever agrees."""


def play(
    team: Team, method: LVAgent | None = None, question: Question = QUESTION, footage: Any = FOOTAGE
) -> Any:
    with listening() as heard:
        answer = solve(method or LVAgent(), footage, question, Run({}, team=team.agents)).answer
    return answer, heard


# ==== discussion, line by line


def test_two_of_three_agree_and_the_first_round_ends_it():
    team = Team({"ann": ["A"], "bob": ["B"], "cid": ["B"]}, {})
    answer, heard = play(team)
    assert (answer.choice, answer.text, answer.reason) == ("B", "a stick", "bob says B in round 1")
    assert team.calls("lvagent/gate") == team.calls("lvagent/key") == 3
    assert team.calls("lvagent/answer") == team.calls("lvagent/reason") == 3
    assert team.calls("shared/score") == 0
    assert len(answer.evidence) == 3
    assert not heard.notes("pruned")


def test_the_answer_is_a_letter_alone_and_the_reason_comes_from_the_same_frames():
    team = Team({"ann": ["A"]}, {})
    play(team)
    assert team.times("lvagent/answer") == team.times("lvagent/reason")
    assert team.told("lvagent/answer")[0].endswith('Its fields:\n"choice": one of "A", "B", "C"')
    assert "A. a ball" in team.told("lvagent/reason")[0].partition("You gave this answer")[2]


def test_two_abstentions_keep_one_vote_from_being_more_than_half():
    answers = {"ann": ["A", "A", "B"], "bob": [None, None], "cid": [None]}
    answer, heard = play(Team(answers, cards(ann=9, bob=5, cid=2)))
    assert [note.data["agent"] for note in heard.notes("pruned")] == ["cid", "bob"]
    assert answer.choice == "B", "the last agent answers once more, and that stands"


def test_an_unread_answer_is_an_abstention_and_is_not_asked_for_a_reason():
    team = Team({"ann": [None]}, {})
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
    team = Team({"ann": ["A", "C"], "bob": ["B"], "cid": ["C", "C"]}, scores)
    answer, heard = play(team)
    (pruned,) = heard.notes("pruned")
    assert pruned.data == {"agent": "bob", "scores": {"ann": 19, "bob": 17, "cid": 26}}
    assert answer.choice == "C"
    assert answer.reason == "ann says C in round 2"
    assert all("Round" not in text for text in team.told("shared/score")), "peers judge words alone"


def test_the_history_holds_answers_reasons_scores_and_who_left_round_by_round():
    team = Team({"ann": ["A", "A", "C"], "bob": ["B"], "cid": ["C", "C"]}, LOW_BOB)
    play(team)
    *second, third = team.told("lvagent/key_again")
    left = "bob [left: the others found it unconvincing] (score 6): B. bob says B in round 1"
    for text in second:
        assert "ann (score 27): A. ann says A in round 1" in text
        assert left in text
        assert "cid (score 15): C. cid says C in round 1" in text
    places = [third.index(part) for part in ("Round 1", "bob [left", "Round 2", "cid [left")]
    assert places == sorted(places)
    assert "ann (score 18): A. ann says A in round 2" in third
    assert not any(team.times("lvagent/key_again")), "later key information comes from words"


def test_new_key_information_decides_what_is_seen_next():
    team = Team({"ann": ["A", "C"], "bob": ["B"], "cid": ["C", "C"]}, LOW_BOB)
    play(team)
    shown = team.times("lvagent/answer")
    assert all(200 <= time < 400 for times in shown[:3] for time in times), "dog"
    assert all(400 <= time < 600 for times in shown[3:] for time in times), "car"


def test_the_last_agent_looks_and_answers_once_more_and_that_stands():
    team = Team({"ann": ["A", "A", "B"], "bob": ["B"], "cid": ["C", "C"]}, LOW_BOB)
    answer, heard = play(team)
    assert [note.data["agent"] for note in heard.notes("pruned")] == ["bob", "cid"]
    assert (answer.choice, answer.reason) == ("B", "ann says B in round 3")
    asked = [team.calls(p) for p in ("lvagent/answer", "shared/score", "lvagent/key_again")]
    assert asked == [3 + 2 + 1, 3 + 2, 2 + 1]


def test_rounds_spent_with_several_left_most_votes_win():
    answers = {"ann": "AA", "bob": "BB", "cid": "CB", "dan": ["A", None], "eve": "B"}
    team = Team(answers, cards(ann=9, bob=8, cid=7, dan=6, eve=1))
    answer, _ = play(team, LVAgent(team_size=5, max_rounds=2))
    assert answer.choice == "B"  # two of four are no majority, and more than one
    assert team.calls("shared/score") == 5, "no tie, so nobody is scored in the last round"


@pytest.mark.parametrize(("score", "winner"), [(9, "C"), (3, "A")], ids=["higher", "better rank"])
def test_rounds_spent_and_votes_equal_the_higher_scores_win_then_the_better_rank(score, winner):
    answers = {"ann": ["A", "A"], "bob": ["B"], "cid": ["C", "C"]}
    answer, heard = play(Team(answers, cards(ann=3, bob=2, cid=score)), LVAgent(max_rounds=2))
    assert answer.choice == winner
    assert heard.notes("judged")[0].data["scores"] == {"ann": 6, "cid": 2 * score}


# ---- answers in words, confidence, budget, manner


def test_answers_in_words_are_compared_by_meaning():
    said = {"ann": ["a shoe"], "bob": ["a ball"], "cid": ["some ball"]}
    team = Team(said, {}, groups=[[1], [2, 3]])
    answer, _ = play(team, question=OPEN)
    assert (answer.choice, answer.text) == (None, "a ball")
    assert team.calls("shared/same_meaning") == 1
    said = {"ann": ["shoe", "ball"], "bob": ["stick"], "cid": ["ball", "ball"]}
    answer, heard = play(Team(said, LOW_BOB, groups=[[1], [2], [3]]), question=OPEN)
    assert answer.text == "ball"
    assert len(heard.notes("pruned")) == 1


@pytest.mark.parametrize(
    ("said", "confidence"), [("AAA", 0.88), ("AAB", 0.53), ("ABC", 0.26), ("A", None), ("AB", 0.26)]
)
def test_confidence_is_by_the_vote_of_the_first_round(said, confidence):
    names = NAMES[: len(said)]
    answers = {name: [first, "A", "A"] for name, first in zip(names, said, strict=True)}
    answer, _ = play(Team(answers, cards(**dict.fromkeys(names, 5))))
    assert answer.confidence == confidence


def test_a_spent_budget_gives_the_leading_answer_so_far():
    team = Team({"ann": ["A", "A"], "bob": ["B", "B"], "cid": ["C"]}, LOW_BOB)
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

    team = [Agent("ann", answering("ann")), Agent("bob", answering("bob"), 0.4, 900)]
    solve(LVAgent(perception=False, reasons=False), FOOTAGE, QUESTION, Run({}, team=team))
    assert (sent["ann"].temperature, sent["ann"].max_tokens) == (0.01, 168)
    assert (sent["bob"].temperature, sent["bob"].max_tokens) == (0.4, 900)


def test_a_team_is_needed():
    with pytest.raises(ConfigError, match="team"):
        LVAgent().answer(FOOTAGE, QUESTION, Run({}))


def test_agents_work_side_by_side():
    """Every call waits until all three agents reach the same step: in sequence they would hang."""
    together = threading.Barrier(3, timeout=PATIENCE)
    team = Team({"ann": ["A"], "bob": ["A"], "cid": ["A"]}, {})

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
    lines = [Line(Segment(at, at + 2.0), f"line at {at}") for at in range(0, 600, 60)]
    team = Team({"ann": ["A", "C"], "bob": ["B"], "cid": ["C", "C"]}, LOW_BOB)
    play(team, footage=TestFootage(600, lines=lines))
    for prompt in ("gate", "key", "key_again", "answer", "reason"):
        for text in team.told(f"lvagent/{prompt}"):
            assert '<material name="subtitles">' in text
            assert "line at 540" in text
    quiet = Team({"ann": ["A"]}, {})
    play(quiet, footage=TestFootage(600))
    assert not any("subtitles" in text for _, _, text in quiet.asked)


def test_subtitles_are_cut_to_those_nearest_to_the_moments_shown():
    lines = [Line(Segment(float(at), at + 1.0), f"word{at}") for at in range(600)]
    footage = TestFootage(600, lines=lines)
    team = Team({"ann": ["A"]}, {})
    play(team, LVAgent(subtitle_words=32, threshold=None), footage=footage)
    kept = [int(word) for word in re.findall(r"word(\d+)", team.told("lvagent/answer")[0])]
    assert len(kept) == 32
    assert kept == sorted(kept)
    assert set(footage.shown[-16:]) <= set(kept)


SIX = TalkingFootage(
    [("cat", 100), ("cat", 100), ("dog", 100), ("dog", 100), ("car", 100), ("boat", 100)]
)


# ==== perception and selection, equation by equation


def perceived(team: Team, method: LVAgent | None = None, question=QUESTION, footage=SIX) -> Any:
    return play(team, method, question, footage)[1]


# ---- selection: equation 1


def test_the_pseudo_label_is_what_most_say_and_ties_all_count():
    assert selection.pseudo_labels(["A", "A", "B"]) == {"A"}
    assert selection.pseudo_labels(["A", "B", None]) == {"A", "B"}
    assert selection.pseudo_labels([None, None]) == frozenset()


def test_equation_1_agreement_with_the_pseudo_label():
    votes = {
        "ann": ["A", "B", "C", None],
        "bob": ["A", "B", "A", None],
        "cid": ["B", None, "B", None],
    }
    found = selection.agreement(votes)
    # labels: A; B; A, B and C; none
    assert found == {
        "ann": [True, True, True, False],
        "bob": [True, True, True, False],
        "cid": [False, False, True, False],
    }


@given(
    st.dictionaries(
        st.sampled_from("abcdef"),
        st.lists(st.sampled_from(["A", "B", None]), min_size=3, max_size=3),
        min_size=1,
    )
)
def test_somebody_agrees_wherever_anybody_answers(votes):
    found = selection.agreement(votes)
    for question in range(3):
        answered = any(given[question] is not None for given in votes.values())
        assert any(row[question] for row in found.values()) == answered
        assert all(
            not row[question] for name, row in found.items() if votes[name][question] is None
        )


# ---- stage 1: equation 2


def test_each_agent_has_a_preview_of_four_random_frames_of_its_own():
    first, second = (Team({"ann": ["A"], "bob": ["A"], "cid": ["A"]}, {}) for _ in range(2))
    perceived(first)
    perceived(second)
    shown = first.times("lvagent/gate")
    assert all(len(times) == 4 and times == sorted(times) for times in shown)
    assert len({tuple(times) for times in shown}) == 3
    assert sorted(first.times("lvagent/gate")) == sorted(second.times("lvagent/gate")), (
        "the same in another run"
    )
    assert sorted(first.times("lvagent/gate")) == sorted(first.times("lvagent/key"))


def test_who_says_yes_watches_sixteen_frames_of_the_whole_film_and_needs_no_key():
    team = Team(APART, cards(ann=9, bob=5, cid=1), whole=True)
    perceived(team)
    shown = team.times("lvagent/answer")
    stretches = np.array_split(np.arange(600), 16)
    for times in shown:
        assert all(time in stretch for time, stretch in zip(times, stretches, strict=True))
    assert team.calls("lvagent/gate") == 3, "asked in the first round only"
    assert team.calls("lvagent/key") == team.calls("lvagent/key_again") == 0
    assert shown[0] != shown[3] != shown[5], "drawn anew each round"


@pytest.mark.parametrize("own", [False, True])
def test_agents_that_watch_the_whole_film_may_draw_their_own_frames(own):
    team = Team({"ann": ["A"], "bob": ["B"], "cid": ["B"]}, {}, whole=True)
    perceived(team, LVAgent(own_frames=own))
    ann, bob, cid = team.times("lvagent/answer")
    assert (ann == bob == cid) is not own


@pytest.mark.parametrize(("own", "draws"), [(False, 1), (True, 3)])
def test_agents_that_look_for_the_same_see_the_same_unless_each_draws_its_own(own, draws):
    team = Team({"ann": ["A"], "bob": ["A"], "cid": ["A"]}, {})
    play(team, LVAgent(own_frames=own))
    assert len({tuple(times) for times in team.times("lvagent/answer")}) == draws


def test_released_shows_agents_what_they_looked_for_at_first_and_reasons_from_the_whole_film():
    for preset, told in (("released", True), ("full", False)):
        team = Team({"ann": ["A", "C"], "bob": ["B"], "cid": ["C", "C"]}, LOW_BOB)
        play(team, configure(LVAgent, {"preset": preset}))
        again = team.told("lvagent/key_again")
        assert all(("In round 1 you looked for: " in text) is told for text in again)
        assert (team.times("lvagent/reason") != team.times("lvagent/answer")) is told


def test_the_paper_cuts_no_subtitles():
    paper = configure(LVAgent, {"preset": "paper"})
    # a day of film
    assert paper.subtitle_words > 5 * 86_400


@pytest.mark.parametrize(("again", "keys"), [(True, 0), (False, 2)])
def test_as_printed_everybody_looks_for_new_key_information_in_later_rounds(again, keys):
    answers = {"ann": ["A", "A"], "bob": ["B", "B"], "cid": ["C", "A"]}
    team = Team(answers, LOW_BOB, whole=True)
    perceived(team, LVAgent(whole_again=again))
    assert team.calls("lvagent/key_again") == keys


def test_an_unread_gate_means_the_whole_film_and_an_unread_key_is_the_question():
    team = Team({"ann": ["A"]}, {}, mute=("lvagent/gate",))
    perceived(team)
    assert len(team.times("lvagent/answer")[0]) == 16
    assert team.calls("lvagent/key") == 0
    keyless = Team({"ann": ["A"]}, {}, mute=("lvagent/key",))
    heard = perceived(keyless)
    assert [event.label for event in heard.of(ScoresSet)] == ["chunks: What is thrown?"]


@pytest.mark.parametrize(("pictures", "asked"), [(96, 0), (97, 1), (None, 1)])
def test_a_film_of_96_pictures_is_watched_whole_unasked(pictures, asked):
    footage = TestFootage(300)
    assert footage.native_frames is None
    footage.native_frames = pictures
    team, native = Team({"ann": ["A"]}, {}), Team({"ann": ["A"]}, {})
    perceived(team, footage=footage)
    assert (team.calls("lvagent/gate"), team.calls("lvagent/key")) == (asked, asked)
    perceived(native, LVAgent(native_whole=False), footage=footage)
    assert native.calls("lvagent/gate") == 1


# ---- stage 2: equations 3 and 4


def test_key_information_is_cut_to_its_words():
    team = Team({"ann": ["A"]}, {})
    heard = perceived(team, LVAgent(key_words=3))
    assert "At most 3 words" in team.told("lvagent/key")[0]
    assert [event.label for event in heard.of(ScoresSet)] == ["chunks: ann looks for"]


# ---- stage 3: equation 5


def test_chunks_are_equal_and_random_frames_different_ascending_and_all_where_few():
    assert sampling.equal_chunks(12.0, 3) == [Segment(0, 4), Segment(4, 8), Segment(8, 12)]
    assert sampling.draw([3, 1, 2], 16, Random(0)) == [1, 2, 3]
    some = sampling.draw(range(100), 16, Random(0))
    assert len(set(some)) == 16
    assert some == sorted(some)


def test_similarities_are_spread_over_the_chunks_of_the_film_or_a_known_scale():
    assert sampling.minmax(np.array([0.2, 0.3, 0.6])) == pytest.approx([0, 0.25, 1])
    assert sampling.minmax(np.full(3, 0.7)).tolist() == [0.5, 0.5, 0.5]
    known = sampling.between(np.array([0.1, 0.2, 0.3, 0.9]), 0.2, 0.4)
    assert known == pytest.approx([0, 0, 0.5, 1])


def test_equation_5_is_the_mean_of_two_calibrated_similarities_or_as_printed_their_sum():
    similarity = np.array([[0.2, 0.5], [0.3, 0.1], [0.6, 0.3]])
    over_film = [(0 + 1) / 2, (0.25 + 0) / 2, (1 + 0.5) / 2]
    assert sampling.chunk_scores(similarity) == pytest.approx(over_film)
    on_scale = [(0.2 + 0.8) / 2, (0.4 + 0) / 2, (1 + 0.4) / 2]
    assert sampling.chunk_scores(similarity, (0.1, 0.6)) == pytest.approx(on_scale)
    printed = sampling.chunk_scores(similarity, calibrate=False)
    assert printed == pytest.approx([0.7, 0.4, 0.9])


def test_chunks_above_the_threshold_else_the_best():
    assert sampling.chosen_chunks([0.81, 0.8, 0.95], 0.8) == [0, 2]
    assert sampling.chosen_chunks([0.1, 0.8, 0.3], 0.8) == [1]
    assert sampling.chosen_chunks([0.9, 0.99, 0.95], None) == [1]


@given(st.lists(st.tuples(st.floats(-1, 1), st.floats(-1, 1)), min_size=1, max_size=8))
def test_scores_lie_in_0_to_1_and_something_is_always_chosen(pairs):
    scores = sampling.chunk_scores(np.array(pairs))
    assert ((scores >= 0) & (scores <= 1)).all()
    assert sampling.chosen_chunks(scores, 0.8)
    assert set(sampling.chosen_chunks(scores, 0.8)) >= {int(np.argmax(scores))}


def test_the_drawn_frames_of_every_chunk_that_passes_are_shown():
    team = Team({"ann": ["A"]}, {})
    heard = perceived(team, question=Question("What does the dog throw?", QUESTION.options))
    (scores,) = heard.of(ScoresSet)
    assert [round(segment.start) for segment in scores.segments] == [0, 100, 200, 300, 400, 500]
    passed = [number for number, value in enumerate(scores.values) if value > 0.8]
    assert passed == [2, 3], "the dog"
    (times,) = team.times("lvagent/answer")
    shown = [sum(a <= time < a + 100 for time in times) for a in range(0, 600, 100)]
    assert shown == [0, 0, 16, 16, 0, 0]


def test_below_the_threshold_the_best_chunk_alone():
    team = Team({"ann": ["A"]}, {})
    perceived(team, LVAgent(threshold=1.0))
    (times,) = team.times("lvagent/answer")
    assert len(times) == 16
    assert len({time // 100 for time in times}) == 1


def test_the_question_is_compared_as_well():
    about_cats = Question("What does the cat cat cat cat throw?", QUESTION.options)
    both, alone = (
        perceived(Team({"ann": ["A"]}, {}), LVAgent(question_term=term), about_cats)
        for term in (True, False)
    )
    cat, key = both.of(ScoresSet)[0].values[0], alone.of(ScoresSet)[0].values[0]
    assert key < 0.1 < 0.4 < cat < 0.6, "the key says dog, the question cat"


@pytest.mark.parametrize(("calibration", "low", "high"), [("auto", 0, 0.6), ("minmax", 0.7, 1)])
def test_the_ends_of_the_scale_come_from_the_card_where_it_names_them(calibration, low, high):
    footage = TalkingFootage([("cat", 300), ("dog", 300)])
    footage.encoder.thresholds = {"chunk_low": 0.0, "chunk_high": 2.0}
    heard = perceived(Team({"ann": ["A"]}, {}), LVAgent(calibration=calibration), footage=footage)
    assert low < max(heard.of(ScoresSet)[0].values) <= high


def test_as_printed_no_chunk_of_a_weak_encoder_passes_or_all_of_a_strong_one_do():
    """Why calibration is needed: 0.8 on a raw sum depends on the encoder more than on the chunk."""
    weak = np.array([[0.21, 0.24], [0.31, 0.28], [0.19, 0.22]])  # cosines as CLIP gives them
    for rows, printed in ((weak, [1]), (weak + 0.4, [0, 1, 2])):
        raw = sampling.chunk_scores(rows, calibrate=False)
        assert sampling.chosen_chunks(raw, 0.8) == printed
        assert sampling.chosen_chunks(sampling.chunk_scores(rows), 0.8) == [1]


def test_without_a_head_the_mean_of_the_frames_is_compared_and_the_run_says_so():
    heard = perceived(Team({"ann": ["A"]}, {}))
    assert heard.notes("retrieval")[0].data == {"scorer": "mean", "encoder": "words"}
    assert isinstance(clip_scorer(SIX), MeanPooling)
    frames = np.array([[1, 0], [0, 1]], np.float32)
    assert MeanPooling().scores(frames, np.eye(2, dtype=np.float32)) == pytest.approx(
        [0.5**0.5] * 2
    )


VOTES = st.lists(st.sampled_from(["A", "B", "C", None]), min_size=1, max_size=7)


# ==== properties of every vote and every pruning


def opinions_of(votes: Sequence[str | None]) -> list[Opinion]:
    return [Opinion(f"agent {number}", choice) for number, choice in enumerate(votes)]


@given(VOTES, st.randoms(use_true_random=False))
def test_a_majority_is_the_only_answer_of_more_than_half_whoever_speaks_first(votes, random):
    winner = majority(opinions_of(votes))
    most = [choice for choice in "ABC" if votes.count(choice) * 2 > len(votes)]
    assert [winner] == (most or [None])
    shuffled = random.sample(votes, len(votes))
    assert majority(opinions_of(shuffled)) == winner
    assert tally(opinions_of(shuffled)) == tally(opinions_of(votes))


@given(st.lists(st.integers(1, 10), min_size=2, max_size=5))
def test_exactly_one_leaves_and_nobody_with_a_higher_sum(points):
    names = [f"agent{number}" for number in range(len(points))]
    team = Team(
        {name: ["A"] for name in names},
        {judge: dict(zip(names, points, strict=True)) for judge in names},
    )
    opinions = [Opinion(name, "A") for name in names]
    stay, judged = prune(team.agents, opinions, QUESTION)
    (gone,) = [opinion for opinion in judged if opinion.left]
    assert [agent.name for agent in stay] == [name for name in names if name != gone.agent]
    assert gone.score == min(opinion.score for opinion in judged)
    later = judged[judged.index(gone) + 1 :]
    assert all(opinion.score > gone.score for opinion in later), "of equals the later leaves"
    assert [replace(opinion, score=None, left=False) for opinion in judged] == opinions


# ==== ablations (tables 3, 4 and 6), bounds and presets


def test_best_score_keeps_everybody_and_takes_the_highest_after_the_last_round():
    points = cards(ann=3, bob=2, cid=9)
    team = Team(APART, points)
    answer, heard = play(team, LVAgent(discussion="best_score"))
    assert answer.choice == "C"
    assert not heard.notes("pruned")
    assert team.calls("lvagent/answer") == team.calls("shared/score") == 9
    assert "[left" not in "".join(team.told("lvagent/key_again"))
    agreed = Team({"ann": ["A", "B"], "bob": ["B", "B"], "cid": ["C", "C"]}, points)
    answer, _ = play(agreed, LVAgent(discussion="best_score"))
    assert answer.choice == "B", "consensus still ends it"


def test_decide_by_agent_the_best_ranked_answers_from_history_and_video():
    team = Team(APART, cards(ann=3, bob=2, cid=9), decision="B")
    answer, heard = play(team, LVAgent(discussion="decide_by_agent"))
    assert answer.choice == "B"
    assert not heard.notes("pruned")
    (asked,) = [one for one in team.asked if one[1] == "lvagent/decide"]
    assert asked[0] == "ann"
    assert "cid (score 27): C. cid says C in round 3" in asked[2]
    assert set(team.times("lvagent/answer")[-3]) <= set(team.times("lvagent/decide")[0])


def test_without_reflection_one_round_and_the_vote():
    team = Team(APART, {})
    answer, _ = play(team, LVAgent(reflection=False))
    assert (answer.choice, team.calls("shared/score"), team.calls("lvagent/answer")) == ("A", 0, 3)


def test_without_perception_many_frames_over_the_whole_film_drawn_anew_each_round():
    team = Team({"ann": ["A", "C"], "bob": ["B"], "cid": ["C", "C"]}, LOW_BOB)
    play(team, LVAgent(perception=False))
    shown = team.times("lvagent/answer")
    assert [len(times) for times in shown] == [128] * 5
    assert shown[0] == shown[1] == shown[2] != shown[3]
    assert not any(team.calls(f"lvagent/{step}") for step in ("gate", "key", "key_again"))


def test_the_team_is_the_best_ranked_of_those_given():
    team = Team({"ann": ["A"], "bob": ["A"], "cid": ["B"], "dan": ["B"]}, {})
    answer, heard = play(team)
    assert answer.choice == "A"
    assert heard.notes("not_seated")[0].data == {"agents": ["dan"], "team_size": 3}
    assert {name for name, _, _ in team.asked} == set(NAMES)


# ---- bounds and presets


def test_a_reason_that_was_cut_is_used_as_it_stands():
    cut = Reply('{"reason": "The person in the red coat throws the ball', finish="length")
    read = ReplyForm.of(AgentReasonReply, {}).read(cut)
    assert read.reason.endswith("throws the ball")


def test_released_drops_the_question_and_the_threshold():
    released = configure(LVAgent, {"preset": "released"})
    assert (released.question_term, released.threshold) == (False, None)
