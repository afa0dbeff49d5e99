"""VideoAgent beside its Algorithm 1 and sections 3.1 to 3.4."""

import json

import pytest
from support.footages import TestFootage
from support.listening import listening
from support.talking import TalkingFootage

from longtake.agents.run import Run
from longtake.config import BudgetSettings
from longtake.errors import ConfigError
from longtake.llm.backends.scripted import ScriptedChat
from longtake.methods.base import configure
from longtake.methods.videoagent.method import VideoAgent, Wish, widest_middle
from longtake.runner.session import solve
from longtake.types import Question

QUESTION = Question("What is on the sofa?", ("a cat", "a toy", "a hat"))


class Script:
    """An LLM and a captioner that follow a plan, and remember what they were shown."""

    def __init__(self, confidences=(3,), wishes=(), choices=("A", "B", "C"), mute=()):
        self.mute = mute
        self.confidences, self.wishes, self.choices = iter(confidences), iter(wishes), iter(choices)
        self.steps = []
        self.prompts = []
        self.captioned = []

    def llm(self, messages, options):
        step = options.prompt.partition("/")[2]
        self.steps.append(step)
        self.prompts.append(messages[-1].text)
        if step in self.mute:
            return "I would rather not say."
        if step == "predict":
            field = "choice" if "choice" in options.schema["properties"] else "answer"
            return json.dumps({"reason": "because", field: next(self.choices)})
        if step == "grade":
            return json.dumps({"confidence": next(self.confidences)})
        if step == "missing_anywhere":
            return json.dumps({"missing": [description for _, description in next(self.wishes)]})
        return json.dumps(
            {"missing": [{"segment": s, "description": d} for s, d in next(self.wishes)]}
        )

    def captioner(self, messages, options):
        times = [
            part.time for message in messages for part in message.parts if hasattr(part, "time")
        ]
        self.captioned.append(times)
        return json.dumps({"caption": f"seen at {times[0]:.0f}"})


def play(script, footage=None, method=None, question=QUESTION, **limits):
    footage = footage or TestFootage(101, {"a toy on the sofa": [30, 60, 90]})
    run = Run(
        {"llm": ScriptedChat(script.llm), "captioner": ScriptedChat(script.captioner)},
        budget=BudgetSettings(**limits),
    )
    with listening() as heard:
        result = solve(method or VideoAgent(), footage, question, run)
    return result, heard


def test_line_1_the_first_state_is_n_uniform_frames_with_both_ends():
    script = Script()
    play(script)
    assert sorted(t for times in script.captioned for t in times) == [0, 25, 50, 75, 100]


@pytest.mark.parametrize(("confidence", "method"), [(3, {}), (2, {"confidence_threshold": 2})])
def test_lines_3_to_6_a_sure_answer_ends_the_search_after_predict_and_grade(confidence, method):
    script = Script(confidences=[confidence])
    result, _ = play(script, method=VideoAgent(**method))
    assert script.steps == ["predict", "grade"]
    assert (result.answer.choice, result.answer.text) == ("A", "a cat")
    assert result.answer.confidence == confidence / 3


def test_predict_grade_missing_are_three_separate_steps_and_grade_sees_the_reasoning():
    script = Script(confidences=[2, 3], wishes=[[(2, "a toy on the sofa")]])
    play(script)
    assert script.steps == ["predict", "grade", "missing", "predict", "grade"]
    assert "a cat" in script.prompts[1]
    assert "because" in script.prompts[1]


def test_lines_8_and_9_the_frame_of_highest_cosine_inside_the_named_segment_only():
    script = Script(confidences=[1, 3], wishes=[[(3, "a toy on the sofa")]])
    play(script)
    assert script.captioned[-1] == [60]  # 30 fits better, but lies in segment 2


def test_without_segment_selection_the_whole_film_is_searched():
    script = Script(confidences=[1, 3], wishes=[[(3, "a toy on the sofa")]])
    play(script, method=VideoAgent(segment_selection=False))
    assert script.captioned[-1] == [30]
    assert script.steps[2] == "missing_anywhere"  # it is not asked for segments either
    assert "segment" not in script.prompts[2]
    assert "Name at most 5 pictures" in script.prompts[2]


def test_segments_without_anything_unseen_are_not_offered_and_the_paper_sets_no_bound():
    script = Script(confidences=[1, 3], wishes=[[(2, "x")]])
    play(script, TestFootage(6), VideoAgent(initial_frames=4))  # frames 0 1 3 5
    listed = [line for line in script.prompts[2].splitlines() if line[:2] in ("1.", "2.", "3.")]
    assert [line[:2] for line in listed] == ["2.", "3."]
    assert "Name at most 2 pictures" in script.prompts[2]
    script = Script(confidences=[1, 3], wishes=[[(1, "x")]])
    play(script, method=configure(VideoAgent, {"preset": "paper"}))
    assert "Name the pictures to look for" in script.prompts[2]


def test_a_frame_chosen_by_an_earlier_entry_counts_as_seen():
    wishes = [[(2, "a toy on the sofa"), (2, "a toy on the sofa")]]
    script = Script(confidences=[1, 3], wishes=wishes)
    footage = TestFootage(101, {"a toy on the sofa": [30, 33, 90]})
    play(script, footage)
    assert sorted(t for times in script.captioned[5:] for t in times) == [30, 33]


def test_a_segment_with_one_unseen_frame_yields_it():
    script = Script(confidences=[1, 3], wishes=[[(1, "nothing like it")]])
    play(script, TestFootage(9), VideoAgent(initial_frames=5))  # frames 0 2 4 6 8
    assert script.captioned[-1] == [1]


def test_segments_that_are_not_there_or_have_nothing_unseen_are_dropped_with_an_event():
    script = Script(
        confidences=[1, 3], wishes=[[(0, "x"), (99, "x"), (-1, "x"), (2, "a toy on the sofa")]]
    )
    _, heard = play(script)
    assert script.captioned[-1] == [30]
    assert [n.data["segment"] for n in heard.notes("request_dropped")] == [0, 99, -1]


def test_if_all_are_dropped_the_middle_of_the_widest_unseen_interval_is_taken():
    script = Script(confidences=[1, 3], wishes=[[(99, "x")]])
    play(script)
    assert script.captioned[-1] == [12]
    assert widest_middle([0, 4, 20], 21) == 12
    assert widest_middle([0, 1, 2], 3) is None
    assert widest_middle([3], 10) == 6


def test_line_10_notes_are_in_time_order_with_their_times():
    script = Script(confidences=[1, 3], wishes=[[(2, "a toy on the sofa")]])
    play(script)
    notes = [line for line in script.prompts[-1].splitlines() if line.startswith("[00:")]
    times = ("00:00", "00:25", "00:30", "00:50", "01:15", "01:40")
    assert [line[:10] for line in notes] == [f"[00:{time}]" for time in times]
    assert "seen at 30" in notes[2]


@pytest.mark.parametrize("graded", [True, False])
def test_line_2_never_more_than_t_rounds_and_the_last_is_not_graded_nor_any_if_so_set(graded):
    script = Script(confidences=[1, 1], wishes=[[(1, "x")], [(1, "x")]])
    result, _ = play(script, method=VideoAgent(self_evaluation=graded))
    between = ["predict", "grade", "missing"] if graded else ["predict", "missing"]
    assert script.steps == between * 2 + ["predict"]
    assert (result.answer.choice, result.answer.confidence) == ("C", None)


def test_clips_show_the_frames_around_the_index():
    script = Script()
    play(script, method=VideoAgent(caption_unit="clip", initial_frames=3))
    assert sorted(script.captioned) == [[0, 2], [48, 50, 52], [98, 100]]


def test_an_unreadable_answer_is_an_abstention_never_a_guess_and_an_unreadable_grade_is_one():
    script = Script(wishes=[[(1, "x")], [(1, "x")]], mute=("predict", "grade"))
    result, heard = play(script)
    assert (result.answer.choice, result.answer.status) == (None, "abstained")
    assert script.steps.count("missing") == 2
    assert heard.notes("default_taken")


def test_no_more_frames_than_asked_for():
    wishes = [[(segment, f"x{i}") for i in range(20)] for segment in (1, 5)]
    script = Script(confidences=[1, 1], wishes=wishes)
    method = VideoAgent(max_requests=4)
    _result, _ = play(script, method=method)
    assert len(script.captioned) == 5 + 2 * 4


def test_a_spent_budget_gives_the_best_answer_so_far():
    script = Script(confidences=[1, 1], wishes=[[(1, "x")], [(1, "x")]])
    # five captions, predict, grade, missing; no call left for the caption
    result, _ = play(script, calls=8)
    assert (result.answer.choice, result.answer.status) == ("A", "budget_spent")


def test_captions_alone_need_no_captioner_and_are_searched_by_meaning():
    script = Script(confidences=[1, 3], wishes=[[(2, "dog")]])
    result, _ = play(script, TalkingFootage([("cat", 17), ("dog", 1), ("car", 32)]))
    assert script.captioned == []
    assert "[00:00:17] a dog at 0" in script.prompts[-1]
    assert result.usage.frames == 0
    assert {e.source for e in result.answer.evidence} == {"caption"}


def test_open_ended_questions_are_answered_in_words():
    script = Script(confidences=[3], choices=["A small dog."])
    answer = play(script, question=Question("What barks?"))[0].answer
    assert (answer.choice, answer.text, answer.status) == (None, "A small dog.", "answered")


def test_released_a_segment_ends_with_a_seen_frame_and_no_gap_is_filled():
    footage = TestFootage(101, {"a toy on the sofa": [25, 60]})
    state = dict.fromkeys((0, 25, 50, 75, 100), "")
    wishes = [Wish(segment=1, description="a toy on the sofa")]
    with listening() as heard:
        ours = VideoAgent().retrieve(footage, state, wishes)
        released = configure(VideoAgent, {"preset": "released"}).retrieve(footage, state, wishes)
    assert len(ours) == 1
    assert ours[0] not in state
    assert released == []  # frame 25 is closest, and was seen
    assert len(heard.notes("request_dropped")) == 1
    assert not heard.notes("looked_in_the_widest_gap")


def test_presets_and_fields():
    assert configure(VideoAgent, {"preset": "paper", "max_rounds": 5}).max_rounds == 5
    with pytest.raises(ConfigError, match=r"did you mean 'videoagent\.max_rounds'"):
        configure(VideoAgent, {"max_round": 5})
    with pytest.raises(ConfigError, match="unknown preset"):
        configure(VideoAgent, {"preset": "papers"})
