"""The cascade: which stages run, when it stops, and what it hands over."""

import numpy as np
import pytest
from support.footages import TestFootage
from support.listening import listening

from longtake.agents.calibration import Vote, fits_from, leader
from longtake.agents.run import Run, settle
from longtake.config import BudgetSettings
from longtake.errors import BudgetSpent, ConfigError, ModelError
from longtake.llm.backends.scripted import ScriptedChat
from longtake.llm.chat import Card
from longtake.methods.auto.method import Auto, obstacle
from longtake.methods.base import FULL, SMALL
from longtake.methods.baselines.method import closest_moments, in_turns
from longtake.methods.lookup.method import Lookup
from longtake.runner.session import Session, solve
from longtake.types import Answer, Line, Question, Segment

QUESTION = Question("Who leaves?", ("a", "b", "c", "d"))


def stage(name):
    return f"support.stages:{name}"


def fitted(stop_at=0.9, model="scripted", footage="pictures", weights=None):
    """A fit that takes the stages at their word."""
    fit = {"method": "auto", "model": model, "footage": footage, "stop_at": stop_at}
    return [{**fit, "weights": weights or {"odds": 1.0}}]


class Words(TestFootage):
    """A recording of which only words are known."""

    __test__ = False
    has = frozenset()


class Captioned(TestFootage):
    """A film of which only captions are known."""

    __test__ = False
    has = frozenset({"captions"})


def cascade(*names, fits=None, footage=None, budget=None, **fields):
    method = Auto(stages=tuple(map(stage, names)), calibration=fits or fitted(), **fields)
    run = Run({"llm": ScriptedChat(lambda *_: "said")}, budget=budget)
    with listening() as heard:
        result = solve(method, footage or TestFootage(20), QUESTION, run)
    return result.answer, heard


def told(heard, label):
    return [noted.data for noted in heard.notes(label)]


def test_it_stops_at_the_fitted_probability():
    answer, notes = cascade("Sure", "Unsure")
    assert (answer.choice, answer.confidence) == ("A", pytest.approx(0.95))
    assert [data["stop"] for data in told(notes, "decided")] == [True]
    assert len(told(notes, "stage")) == 1


def test_it_goes_on_while_the_answer_is_in_doubt_and_the_likeliest_answer_wins():
    answer, notes = cascade("Unsure", "Silent", "Sure")
    assert answer.choice == "A"
    assert [data["stop"] for data in told(notes, "decided")] == [False, False, True]
    assert cascade("Unsure", "Sure", fits=fitted(stop_at=0.2))[0].choice == "B"
    assert len(told(cascade("Sure", "Unsure", every_stage=True)[1], "stage")) == 2


@pytest.mark.parametrize("other", [{"model": "other"}, {"footage": "captions"}])
def test_a_probability_is_stated_only_for_the_model_and_footage_that_it_was_fitted_to(other):
    answer, notes = cascade("Unsure", "Sure", fits=fitted(**other))
    assert answer.confidence is None
    # nothing is checked here, and no later stage would look at pictures
    assert (answer.choice, len(told(notes, "stage"))) == ("B", 1)


def test_over_captions_the_first_answer_stands_unless_a_fit_says_otherwise():
    film = Captioned(20)
    assert cascade("Unsure", "Sure", footage=film)[0].choice == "B"
    assert cascade("Silent", "Sure", footage=film)[0].choice == "A"
    assert cascade("Unsure", "Sure", footage=film, fits=fitted(footage="captions"))[0].choice == "A"


def test_a_fit_without_a_stop_states_a_probability_and_leaves_the_rule_to_support():
    answer, notes = cascade("Unsure", "Sure", fits=fitted(stop_at=None))
    assert (answer.choice, answer.confidence) == ("B", pytest.approx(0.3))
    assert len(told(notes, "stage")) == 1


@pytest.mark.parametrize(
    ("asked", "names", "choice", "stages"),
    [
        ("Who leaves?", ("Told", "Seen", "Sure"), "A", 2),
        ("What does b say?", ("Told", "Seen"), "B", 1),  # what is said is told by what is said
        ("Who leaves?", ("Told", "Sure"), "B", 1),  # nothing is left that looks
        ("Who leaves?", ("Silent", "Seen", "Sure"), "A", 2),
    ],
)
def test_it_stops_at_a_supported_answer_and_words_alone_are_confirmed_by_a_look(
    asked, names, choice, stages
):
    chat = ScriptedChat(lambda *_: "said", card=Card("scripted", vision=True))
    method, question = Auto(stages=tuple(map(stage, names))), Question(asked, QUESTION.options)
    with listening() as heard:
        run = Run({"llm": chat, "vlm": chat})
        answer = solve(method, TestFootage(20), question, run, check=True).answer
    assert (answer.choice, len(told(heard, "stage"))) == (choice, stages)
    assert answer.confidence is None


def test_without_a_fit_the_latest_supported_vote_leads_and_with_one_the_likeliest_answer():
    votes = [Vote("a", "A", supported=True), Vote("b", "B", supported=True), Vote("c", "C")]
    assert leader(votes, QUESTION, None) == (1, None)
    assert leader(votes[2:], QUESTION, None) == (0, None)
    words = [Vote("a", text="the green cup"), Vote("b", text="a lamp"), Vote("c", text="Green cup")]
    (fit,) = fits_from(fitted(weights={"agreeing": 2.0}), "test")
    assert leader(words, Question("What is it?"), fit) == (2, pytest.approx(0.88, abs=0.01))


def test_stages_that_cannot_run_or_fail_are_passed_over_with_an_event():
    answer, notes = cascade("Crowd", "Broken", "Sure")
    assert answer.choice == "A"
    assert told(notes, "planned")[0]["skipped"] == {stage("Crowd"): "no team was given"}
    assert told(notes, "stage_failed")[0]["why"] == "out of order"


def test_without_any_answer_it_abstains_or_raises_what_went_wrong():
    assert cascade("Broken", "Silent")[0].reason == "cannot tell"
    with pytest.raises(ConfigError, match="out of order"):
        cascade("Broken")
    # an abstention of a stage that looked at less does not hide the error
    with pytest.raises(ConfigError, match="out of order"):
        cascade("Silent", "Broken")


def test_a_model_that_is_gone_is_not_asked_again_by_every_stage():
    method = Auto(stages=tuple(map(stage, ("Silent", "Unsure", "Sure"))))
    chat = ScriptedChat(lambda *_: ModelError("scripted", "unavailable", "nobody answers"))
    with listening() as heard, pytest.raises(ModelError, match="nobody answers"):
        solve(method, TestFootage(20), QUESTION, Run({"llm": chat}), check=False)
    assert len(chat.asked) == 1
    assert [data["why"] for data in told(heard, "stage_skipped")] == ["scripted is unavailable"]


@pytest.mark.parametrize("complete", [False, True])
def test_a_leader_that_a_budget_keeps_from_improving_is_no_answer_cut_short(complete):
    run = Run({"llm": ScriptedChat(lambda *_: "said")})
    run.propose(Answer("A"), complete=complete)
    spent = BudgetSpent("calls", "1", run.ledger.best, complete=run.ledger.complete)
    assert settle(spent).status == ("answered" if complete else "budget_spent")
    run.propose(Answer("B"))
    assert not run.ledger.complete


def test_a_spent_budget_leaves_the_answer_of_the_stages_before():
    answer, notes = cascade("Unsure", "Sure", budget=BudgetSettings(calls=1))
    # not the "D" that the second stage proposed on its way
    assert (answer.choice, answer.status) == ("B", "answered")
    assert told(notes, "stage_cut")


def test_stages_that_need_what_is_not_there_are_left_out():
    auto, film = Auto(), TestFootage(20)
    blind, seeing_ = Card("reads", vision=False), Card("sees", vision=True)

    def run(card, **more):
        chat = ScriptedChat([], card=card)
        return Run(dict.fromkeys(("llm", "vlm", "captioner"), chat), **more)

    searching = auto.method("search@16")
    assert obstacle(searching, film, run(seeing_)) == ""
    assert "pictures" in obstacle(searching, film, run(blind))
    assert obstacle(searching, Captioned(20), run(seeing_)) == "there are no pictures"
    assert obstacle(searching, film, Run({"llm": ScriptedChat([])})) == "no model in the role vlm"
    film.indexed = False
    assert obstacle(searching, film, run(seeing_)) == ""
    hurried = run(seeing_, budget=BudgetSettings(seconds=600))
    assert obstacle(searching, film, hurried).startswith("the film is not indexed yet")
    assert obstacle(auto.method("videoagent"), film, hurried) == ""
    assert obstacle(auto.method("videoagent"), Words(20), hurried) == "there is nothing to look at"


def seeing(**card):
    known = Card("scripted", vision=True, picture_tokens=90, **card)
    return ScriptedChat(lambda *_: '{"reason": "seen", "choice": "B"}', card=known)


def frames_shown(chat, stages, budget=None, check=False):
    """The frames of each stage, under a rule that lets all of them run."""
    run = Run({"llm": chat, "vlm": chat}, budget=budget)
    with listening() as heard:
        solve(Auto(stages=stages, every_stage=True), TestFootage(900), QUESTION, run, check=check)
    return [data["frames"] for data in told(heard, "stage")]


def test_as_many_frames_are_shown_as_fit_the_context_and_the_budget():
    stages = ("uniform@40", "uniform@400")
    assert frames_shown(seeing(context=100_000), stages) == [40, 400]
    # 4,096 tokens for words, 100 for each picture
    assert frames_shown(seeing(context=14_096), stages) == [40, 100]
    limited = frames_shown(seeing(context=100_000), stages, BudgetSettings(tokens=20_000))
    assert limited[0] == 40
    assert 60 < limited[1] < 160
    # what the first look leaves would be too little for a second
    assert frames_shown(seeing(context=100_000), stages, BudgetSettings(frames=95)) == [86]
    assert frames_shown(seeing(context=100_000, small="told"), stages) == [32]


def test_the_search_shows_what_is_closest_to_the_question_and_each_option_in_turns():
    queries = ["Who leaves?", "Who leaves? a", "Who leaves? b"]
    footage = TestFootage(60, {queries[0]: [5], queries[1]: [6, 30], queries[2]: [50]})
    assert closest_moments(footage, queries, 3, apart=4.0) == [5, 30, 50]
    assert len(closest_moments(footage, queries, 60, apart=4.0)) <= 15
    assert in_turns(np.array([[0.9, 0.1, 0.5], [0.2, 0.8, 0.9]]), 2) == [0, 2]
    assert frames_shown(seeing(context=100_000), ("search@16",)) == [16]
    # 900 seconds hold no more than 900 moments, so the third look would repeat the second
    thrice = frames_shown(seeing(context=200_000), ("search@16", "search@800", "search@1600"))
    assert thrice[0] == 16
    assert 400 < thrice[1] <= 800
    assert len(thrice) == 2


@pytest.mark.parametrize(
    ("fields", "passages"),
    [
        ({"preset": SMALL}, 2),
        ({"preset": SMALL, "passages_for_options": 3}, 3),
        ({"preset": FULL}, Lookup.max_passages),
    ],
)
def test_stages_take_their_settings_and_small_models_read_fewer_captions(fields, passages):
    stage = Session().with_fields("lookup", fields).method("auto").method("lookup")
    with_options = Question("Who?", ("Ann", "Bob"))
    assert stage.most_passages(with_options, captions=True) == passages
    assert stage.most_passages(with_options, captions=False) == Lookup.max_passages
    assert stage.most_passages(Question("Who?"), captions=True) == Lookup.max_passages


def test_words_are_counted_without_a_model():
    lines = [Line(Segment(3, 5), "Two lanterns."), Line(Segment(8, 9), "A lantern.")]
    run = Run({"llm": ScriptedChat([])})
    question = Question("How often is a lantern mentioned?")
    answer = solve(Auto(), TestFootage(20, lines=lines), question, run).answer
    assert answer.text.startswith("2 times in what is said")
    assert [cited.text for cited in answer.evidence] == ["Two lanterns.", "A lantern."]
