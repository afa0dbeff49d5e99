"""Lookup: what is said and written is searched before anything is looked at."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from processes import Bags
from support.footages import TestFootage

from longtake.agents.calibration import Fit
from longtake.agents.overview import CitedSentence, FilmOverview
from longtake.agents.run import Run
from longtake.config import BudgetSettings
from longtake.errors import ConfigError, ModelError
from longtake.footage.plain import CaptionedFootage
from longtake.llm.backends.scripted import ScriptedChat
from longtake.llm.chat import Card, Reply
from longtake.methods.lookup import method
from longtake.methods.lookup.method import Lookup, wants_account
from longtake.retrieval.citing import LOOK, NO_QUESTION, NOT_FOUND, passages_stating
from longtake.retrieval.passages import Passage, excerpt, is_misread, read, screens
from longtake.retrieval.ranking import RELEVANT, choose, queries_of, relevance_with_type
from longtake.retrieval.who_said import UNRELATED, shared_words
from longtake.runner.session import solve
from longtake.types import Evidence, Line, Question, Segment

SAID = [
    Line(Segment(10, 12), "welcome to the harbour"),
    Line(Segment(12, 15), "the golden compass weighs twelve stones"),
    Line(Segment(15, 18), "and nobody could lift it"),
    Line(Segment(80, 84), "the compass was sold to Leo at the end"),
]
QUESTION = Question("How heavy is the golden compass?", ("ten stones", "twelve stones"))
OPEN = Question("How heavy is the golden compass?")


@pytest.fixture
def footage():
    return TestFootage(100, lines=SAID)


def asked(reply, question, footage, **fields):
    prompts = []

    def script(messages, options):
        prompts.append(messages[-1].text)
        if options.prompt == "shared/verify":
            return json.dumps({"supports": [], "contradicts": []})
        return reply if isinstance(reply, str) else json.dumps(reply)

    run = Run({"llm": ScriptedChat(script)})
    return solve(Lookup(**fields), footage, question, run, check=True).answer, prompts


def test_the_answer_cites_the_passage_that_holds_it(footage):
    answer, prompts = asked("It weighs twelve stones.", OPEN, footage, neighbours=0)
    assert (answer.status, answer.text) == ("answered", "It weighs twelve stones.")
    (cited,) = answer.evidence
    assert (cited.segment, cited.source) == (Segment(12, 15), "speech")
    assert cited.text == "the golden compass weighs twelve stones"
    assert "0:12 speech: the golden compass" in prompts[0]
    # what it cites holds the answer, so that no further check is needed
    assert len(prompts) == 1


@pytest.mark.parametrize(("words", "read"), [(3, 1), (13, 2), (20, 3)])
def test_the_best_passages_are_read_up_to_a_number_of_words(footage, words, read):
    """The best one always."""
    answer, prompts = asked("It weighs twelve stones.", OPEN, footage, max_words=words)
    assert "the golden compass weighs twelve stones" in prompts[0]
    assert sum(line.text in prompts[0] for line in SAID) == read
    assert answer.status == "answered"


def test_a_question_with_options_can_have_a_number_of_captions_of_its_own(footage):
    captions = CaptionedFootage("film", [line.text for line in SAID], Bags())

    def shown(question, film, **fields):
        _, prompts = asked("twelve stones", question, film, neighbours=0, **fields)
        return sum(prompts[0].count(f" {source}:") for source in ("speech", "caption"))

    fewer = {"max_passages": 2, "passages_for_options": 1}
    assert (shown(QUESTION, captions, **fewer), shown(OPEN, captions, **fewer)) == (1, 2)
    assert (shown(QUESTION, footage, **fewer), shown(OPEN, footage, **fewer)) == (2, 2)
    assert shown(QUESTION, captions, max_passages=2) == 2
    with pytest.raises(ConfigError, match="passages_for_options"):
        Lookup(passages_for_options=0)


def test_a_small_model_is_not_asked_how_sure_it_is(footage):
    assert asked({"choice": "B"}, QUESTION, footage)[0].confidence is None


def test_neighbours_come_along(footage):
    _, prompts = asked({"choice": "B"}, QUESTION, footage, max_passages=1)
    assert "welcome to the harbour" in prompts[0]
    assert "nobody could lift it" in prompts[0]
    assert "sold to Leo" not in prompts[0]


def test_a_sound_file_has_no_pictures_that_may_tell():
    class SoundFile(TestFootage):
        has = frozenset()

    answer, _ = asked("his own", Question("Which xylophone does he polish?"), SoundFile(30))
    assert (answer.status, answer.reason) == ("abstained", NOT_FOUND)


def test_nothing_that_bears_on_the_question_is_an_abstention_without_a_call(footage):
    question = Question("Which xylophone does Ruprecht polish?")
    answer, prompts = asked("his own", question, footage)
    assert (answer.status, answer.reason) == ("abstained", f"{NOT_FOUND}; {LOOK}")
    assert prompts == []


def test_small_talk_is_told_what_is_answered(footage):
    answer, prompts = asked("", Question("tell me a xylophone joke"), footage)
    assert (answer.status, answer.reason, prompts) == ("abstained", NO_QUESTION, [])


@pytest.mark.parametrize("reply", ["", "Not told.", "It weighs forty pounds."])
def test_an_answer_that_no_passage_holds_is_not_given(reply, footage):
    answer, _ = asked(reply, OPEN, footage)
    assert (answer.status, answer.text, answer.evidence) == ("abstained", "", ())


def test_a_choice_that_no_passage_holds_is_checked_as_any_answer(footage):
    question = Question(QUESTION.text, ("forty pounds", "ninety pounds"))
    answer, prompts = asked({"choice": "B"}, question, footage)
    assert (answer.status, answer.choice, answer.evidence) == ("unsupported", "B", ())
    assert len(prompts) == 2


def test_an_unreadable_choice_is_an_abstention(footage):
    run = Run({"llm": ScriptedChat(lambda *_: "I cannot say.")})
    assert solve(Lookup(), footage, QUESTION, run).answer.status == "abstained"


def test_an_answer_that_only_repeats_the_question_is_replaced_by_the_line(footage):
    answer, _ = asked("the golden compass", OPEN, footage)
    assert answer.text == "the golden compass weighs twelve stones"


def test_temporal_words_select_a_stretch(footage):
    question = Question("At the end of the film, what happens to the compass?")
    _, prompts = asked("sold", question, footage)
    assert "sold to Leo" in prompts[0]
    assert "twelve stones" not in prompts[0]


TALK = [
    Line(Segment(0, 30), "Anna: Let us begin with the weather. It will rain all day tomorrow."),
    Line(Segment(30, 60), "Ben: We should choose a solar battery. It never has to be replaced."),
    Line(Segment(60, 90), "Anna: A solar battery costs four euros more than a plain one."),
    Line(Segment(90, 120), "Ben: Then we take the plain battery for the first version."),
    Line(Segment(300, 330), "Anna: Lunch is at noon in the large hall behind the garden."),
]


def test_an_account_has_several_sentences_with_the_stretch_as_context():
    footage = TestFootage(400, lines=TALK)
    question = Question("What do they think of a solar battery and what it costs?")
    reply = "Ben wants a solar one, which never has to be replaced. It costs four euros more."
    answer, prompts = asked(reply, question, footage)
    assert (answer.status, answer.text) == ("answered", reply)
    assert answer.context.overlap(Segment(30, 120)) >= 45
    # the lines that support it are cited, and nothing else
    said = " ".join(line.text for line in TALK)
    assert all(each.text.partition(": ")[2] in said for each in answer.evidence)
    assert any("costs four euros more" in each.text for each in answer.evidence)
    assert "costs four euros more" in prompts[0]


def test_no_stretch_ends_after_the_film():
    footage = TestFootage(97, lines=TALK[:4])
    question = Question("What do they think of the plain battery for the first version?")
    answer, _ = asked("Then they take it, for a solar one costs euros more.", question, footage)
    assert answer.status == "answered"
    assert answer.context.end == 97


def test_sentences_of_an_account_that_were_not_said_are_dropped():
    footage = TestFootage(400, lines=TALK)
    question = Question("Why did they choose the plain battery?")
    reply = (
        "They chose the plain battery. A solar one costs four euros more."
        " Customers complained about fires in warehouses. It costs nine euros more."
    )
    answer, _ = asked(reply, question, footage)
    # the first only repeats the question, and nobody spoke of fires or of nine euros
    assert answer.text == "A solar one costs four euros more."


def test_an_account_of_which_nothing_is_left_is_an_abstention():
    footage = TestFootage(400, lines=TALK)
    question = Question("Why do they take the plain battery for the first version")
    for reply in ("Elephants.", "The notes do not support any answer.", ""):
        answer, _ = asked(reply, question, footage)
        assert (answer.status, answer.text) == ("abstained", "")


def test_what_nobody_says_may_be_written(monkeypatch):
    footage = TestFootage(400, lines=TALK)
    sign = Line(Segment(200, 204), "The volcano erupted because the ice melted")
    monkeypatch.setattr(footage, "onscreen", lambda within=None: [sign])
    question = Question("Why did the volcano erupt because the ice")
    answer, prompts = asked("the ice melted", question, footage)
    assert (answer.text, answer.evidence[0].source) == ("the ice melted", "onscreen")
    assert len(prompts) == 1  # nothing that is said bears on it


def test_what_a_film_is_about_is_told_from_its_overview():
    footage = TestFootage(400, lines=TALK)
    question = Question("What is this film about?")
    answer, prompts = asked("They choose a battery. Lunch is at noon.", question, footage)
    assert answer.status == "answered"
    assert "rain" in prompts[0]
    assert "Lunch" in prompts[0]
    # a sentence each, as it was said
    said = " ".join(line.text for line in TALK)
    assert all(each.text.partition(": ")[2] in said for each in answer.evidence)


def test_what_a_film_is_about_is_quoted_where_a_model_makes_it_up():
    footage = TestFootage(400, lines=TALK)
    answer, _ = asked("Elephants burn.", Question("What is this film about?"), footage)
    assert answer.status == "answered"
    assert answer.evidence
    for each in answer.evidence:
        assert f"“{each.text}”" in answer.text


def test_what_a_film_with_title_cards_is_about_names_each_part():
    cards = [Line(Segment(150 * n, 150 * n + 3), f"{n}. THE BATTERY") for n in (1, 2)]
    footage = TestFootage(400, lines=TALK, onscreen=cards)
    answer, _ = asked("Elephants burn.", Question("What is this film about?"), footage)
    assert answer.text == "Its parts: 1. THE BATTERY; 2. THE BATTERY."
    assert [each.segment for each in answer.evidence] == [card.segment for card in cards]


def test_a_summary_that_a_model_wrote_before_is_the_answer(monkeypatch):
    footage = TestFootage(400, lines=TALK)
    summary = CitedSentence("They talk of lunch.", 300.0, 304.0, "speech", "Lunch is at noon.")
    written = FilmOverview((), (summary,), "some model")
    monkeypatch.setattr(method, "make_overview", lambda footage: written)
    answer, prompts = asked("", Question("What is this film about?"), footage)
    assert (answer.text, prompts) == ("They talk of lunch.", [])
    assert answer.evidence == (Evidence(Segment(300, 304), "speech", "Lunch is at noon."),)


def test_when_something_is_said_is_told_without_a_model():
    footage = TestFootage(400, lines=TALK)
    answer, prompts = asked("", Question("When does she say that lunch is at noon?"), footage)
    assert not prompts
    assert answer.text.endswith(f': "{TALK[-1].text}"')
    assert answer.evidence[0].segment.start in TALK[-1].segment


def test_nothing_said_about_it_is_an_abstention_without_a_call():
    footage = TestFootage(400, lines=TALK)
    answer, prompts = asked("x", Question("Why did the volcano erupt in Iceland?"), footage)
    assert (answer.status, prompts) == ("abstained", [])


@pytest.mark.parametrize(
    ("question", "seconds", "expected"),
    [
        ("What is the battery like?", 900, True),
        ("What is the battery like?", 300, False),
        ("Who chose the battery?", 900, False),
        ("When does she mention the battery?", 900, False),
        ("Why was it chosen?", 300, True),
    ],
)
def test_a_long_talk_is_told_about_in_several_sentences(question, seconds, expected):
    spoken = [Line(Segment(0, 5), "one"), Line(Segment(seconds - 5, seconds), "two")]
    assert wants_account(Question(question), spoken) == expected


def test_what_was_given_as_a_fact_is_told_in_one_line():
    spoken = [Line(Segment(0, 5), "one"), Line(Segment(895, 900), "two")]
    assert not wants_account(Question("What is the battery like?", kind="fact"), spoken)


def test_long_options_are_not_searched_for():
    long = tuple(f"{word} and then all of them went home to eat and to sleep well" for word in "ab")
    footage = TestFootage(400, lines=TALK)
    assert queries_of(footage, Question("What happened?", long)) == ["What happened?"]
    assert queries_of(footage, Question("Who?", ("Anna", "Ben"))) == ["Who?", "Anna", "Ben"]


def test_lines_shown_together_are_one_passage_and_a_lasting_screen_is_one():
    lines = [
        Line(Segment(0, 2), "NARRATOR"),
        Line(Segment(0, 2), "Sara Kraft"),
        Line(Segment(0, 2), "呈"),
        Line(Segment(2, 5), "NARRATOR"),
        Line(Segment(2, 5), "Sara Kraft"),
        Line(Segment(5, 6), "NARRATOR"),
        Line(Segment(5, 6), "Leo"),
    ]
    first, second = screens(lines)
    assert (first.text, first.segment) == ("NARRATOR / Sara Kraft", Segment(0, 5))
    # short screens are shown whole: "Leo" would say nothing alone
    assert (second.text, second.segment) == ("NARRATOR / Leo", Segment(5, 6))


def test_of_a_long_screen_only_what_is_new_is_shown():
    menu = ["Files", "Edit", "View", "Tools", "Help", "Window"]
    lines = [Line(Segment(0, 2), text) for text in menu]
    lines += [Line(Segment(2, 4), text) for text in (*menu, "Does it look OK?")]
    assert [passage.text for passage in screens(lines)][1] == "Does it look OK?"


def test_speech_that_is_cut_in_mid_sentence_is_read_as_one():
    one = Passage("speech", (Line(Segment(0, 2), "we live in Green"),))
    other = Passage("speech", (Line(Segment(2, 4), "Meadow Maryland"),))
    ((both, share),) = passages_stating("Green Meadow", "Where?", [one, other])
    assert (both.segment, share) == (Segment(0, 4), 1.0)


def test_the_best_passage_stands_right_above_the_question(footage):
    _, prompts = asked("sold", Question("To whom was the compass sold?"), footage)
    listed = [line for line in prompts[0].splitlines() if "speech:" in line]
    assert "sold to Leo" in listed[-1]


@pytest.mark.parametrize(
    ("question", "reply"),
    [
        ("What colour is the compass?", "golden compass"),
        ("How many harbours are there?", "harbour"),
    ],
)
def test_an_answer_is_of_the_kind_that_was_asked_for(question, reply):
    plain = TestFootage(100, lines=[Line(Segment(10, 12), "welcome to the compass harbours")])
    answer, prompts = asked(reply, Question(question), plain)
    assert (answer.status, prompts) == ("abstained", [])


def test_once_a_passage_bears_on_the_question_weaker_ones_are_read_too():
    lines = [
        Line(Segment(0, 2), "get a license"),
        Line(Segment(50, 52), "a license is totally free"),
    ]
    scores = np.array([0.7, 0.3])
    passages = [Passage("speech", (line,)) for line in lines]
    assert choose(scores, passages, most=4, neighbours=0) == [0, 1]
    assert choose(scores - 0.4, passages, most=4, neighbours=0) == []


def test_a_passage_with_a_name_is_preferred_where_a_name_is_asked_for(footage):
    passages = [
        Passage("onscreen", (Line(Segment(0, 1), "Tiffany Antopolski"),)),
        Passage("onscreen", (Line(Segment(1, 2), "Close Window"),)),
    ]
    named, other = relevance_with_type(np.array([0.4, 0.4]), passages, "name")
    assert (named - other) == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("kind", "text", "chosen"),
    [
        ("colour", "it hangs behind the red curtain", []),
        ("number", "the tour takes two hours", []),
        ("name", "Tiffany Antopolski", [0]),
    ],
)
def test_a_name_makes_a_passage_bear_on_the_question_a_colour_or_a_number_does_not(
    kind, text, chosen
):
    passages = [Passage("onscreen", (Line(Segment(0, 2), text),))]
    weak = np.array([RELEVANT - 0.1])
    assert relevance_with_type(weak, passages, kind)[0] > RELEVANT
    assert choose(weak, passages, most=4, neighbours=0, kind=kind) == chosen


def test_of_small_print_only_what_is_around_the_closest_line_is_read(footage):
    texts = [f"terms number {n}" for n in range(20)]
    texts[12] = "the fee is nine crowns"
    screen = Passage("onscreen", tuple(Line(Segment(0, 2), text) for text in texts))
    part = excerpt(footage, "what is the fee", screen)
    assert [line.text for line in part.lines] == texts[10:15]


def test_misread_small_print_is_left_out():
    blurred = ["connt mesning", "pradition emheaced", "sopyvighi law", "woeld befoey", "bestheos"]
    clear = ["the terms apply", "no claims", "all rights", "made here", "in two parts"]
    pages = [[*lines, "by law"] for lines in (blurred, clear)]
    screens = [Passage("onscreen", tuple(Line(Segment(0, 1), t) for t in page)) for page in pages]
    assert [is_misread(screen) for screen in screens] == [True, False]


def test_a_passage_that_holds_the_answer_to_another_question_is_not_cited():
    said = ["The paper anchor belongs to Mona.", "The golden anchor belongs to Mona."]
    passages = [Passage("speech", (Line(Segment(n, n + 1), t),)) for n, t in enumerate(said)]
    ((cited, share),) = passages_stating("Mona", "Who owns the golden anchor?", passages)
    assert (cited.text, share) == (said[1], 1.0)


def test_speech_and_text_never_share_a_passage(footage):
    sources = {passage.source for passage in read(footage, None)}
    assert sources <= {"speech", "onscreen"}


def test_a_yes_that_only_repeats_the_question_is_no_answer():
    form = Line(Segment(10, 12), "Allow changes? Yes / No. A license for the lawyer.")
    question = Question("Do you need a lawyer to get a license?")
    answer, _ = asked("Yes, you need a lawyer.", question, TestFootage(60, lines=[form]))
    assert answer.text in ("", form.text)


@pytest.mark.parametrize(("order", "start"), [("first", 60), ("last", 90)])
def test_the_first_and_the_last_time_that_something_is_said(order, start):
    lines = [*TALK[2:4], Line(Segment(200, 230), "Ben: There is no plain answer.")]
    question = Question(f"When is the word battery {order} mentioned?")
    answer, prompts = asked("", question, TestFootage(400, lines=lines))
    assert answer.evidence[0].segment.start in Segment(start, start + 30)
    assert prompts == []


COMMONS = [
    Line(Segment(0, 10), "We licensed it under Creative Commons, and Creative"),
    Line(Segment(11, 14), "Commons licenses are free."),
    Line(Segment(14, 18), "The best idea came last: a license for everybody."),
    Line(Segment(100, 104), "The creative mind ends here."),
    Line(Segment(120, 124), "Commons of another kind."),
]


@pytest.mark.parametrize(
    ("question", "text", "starts"),
    [
        (
            "List every time that Creative Commons is mentioned.",
            "2 times in what is said and 1 time in what is written on screen: 00:00:03, 00:00:08,"
            " 00:00:50 (all of 00:05:00 read); pictures not looked at",
            [3, 8, 50],
        ),
        (
            "How often is the word license said?",
            "3 times in what is said and 0 times in what is written on screen (all of 00:05:00"
            " read); pictures not looked at",
            [0, 11, 16],
        ),
        ("When is Creative Commons last mentioned?", 'At 00:00:50: "CREATIVE COMMONS"', [50]),
        ("When is the idea first mentioned?", f'At 00:00:14: "{COMMONS[2].text}"', [14]),
    ],
)
def test_every_occurrence_is_cited_without_a_model(question, text, starts):
    shown = [Line(Segment(50, 55), "CREATIVE COMMONS"), Line(Segment(55, 57), "CREATIVE COMMONS")]
    footage = TestFootage(300, lines=COMMONS, onscreen=shown)
    answer, prompts = asked("7", Question(question), footage)
    assert (answer.status, answer.text) == ("answered", text)
    assert [int(cited.segment.start) for cited in answer.evidence] == starts
    assert prompts == []


def test_words_that_do_not_occur_are_said_to_be_missing():
    footage = TestFootage(300, lines=COMMONS)
    answer, prompts = asked("7", Question("pizza", kind="count"), footage)
    missing = '"pizza" is not in what is said (all of 00:05:00 read); pictures not looked at'
    assert (answer.status, answer.reason, prompts) == ("abstained", missing, [])


def test_words_that_were_perhaps_misheard_are_named_but_not_counted():
    lines = [*COMMONS[:2], Line(Segment(40, 44), "To understand creative comments.")]
    question = Question("How often is Creative Commons mentioned?")
    answer, _ = asked("7", question, TestFootage(300, lines=lines))
    assert answer.text.startswith("2 times in what is said")
    assert 'perhaps also 00:00:40 "To understand creative comments."' in answer.text
    assert len(answer.evidence) == 2


def test_who_said_something_is_told_by_the_closest_line():
    footage = TestFootage(400, lines=[*TALK, Line(Segment(340, 350), "Nobody: knows that.")])
    answer, prompts = asked("Eve", Question("Who said that lunch is at noon in the hall?"), footage)
    assert answer.text.startswith('Anna: "Lunch is at noon')
    assert answer.evidence[0].text.startswith("Anna: Lunch is at noon")
    assert prompts == []


def test_who_said_something_is_unknown_if_two_said_it_or_nobody_is_named():
    both = [
        *TALK,
        Line(Segment(340, 350), "Ben: Lunch is at noon in the large hall behind the garden."),
    ]
    unnamed = [*TALK[:4], Line(Segment(340, 350), "Lunch is at noon in the large hall.")]
    for lines in (both, unnamed):
        question = Question("Who said that lunch is at noon in the large hall?")
        answer, prompts = asked("Eve", question, TestFootage(400, lines=lines))
        assert (answer.status, prompts) == ("abstained", [])
        assert answer.reason.startswith("it is unknown who said it; the closest line is")


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("Who said that the metal case costs ten euros?", "Ben"),
        ("Who asked whether the metal case costs ten euros?", "Anna"),
        ("Who complained about the T-shirt that the DVD shows?", "Carl"),
    ],
)
def test_who_asked_something_did_not_say_it(question, named):
    lines = [
        Line(Segment(0, 4), "Anna: The metal case costs ten euros?"),
        Line(Segment(4, 8), "Ben: A metal case costs ten euros."),
        Line(Segment(8, 12), "Carl: The D_V_D_ shows an ugly shirt again."),
        *(Line(Segment(20, 21), f"{name}: Yeah.") for name in ("Anna", "Ben", "Carl")),
    ]
    answer, _ = asked("Eve", Question(question), TestFootage(30, lines=lines))
    assert answer.text.startswith(f'{named}: "')


@pytest.mark.parametrize(("end", "status"), [(4, "answered"), (8, "abstained")])
def test_who_said_something_while_others_talk_must_be_clearer(end, status):
    lines = [
        Line(Segment(0, end), "Anna: The case is too heavy for small children."),
        Line(Segment(4, 8), "Ben: The case is too heavy for children."),
        *(Line(Segment(20, 21), f"{name}: Yeah.") for name in ("Anna", "Ben")),
    ]
    question = Question("Who said that the case is too heavy for children?")
    answer, _ = asked("Eve", question, TestFootage(30, lines=lines))
    assert answer.status == status


class Pets(TestFootage):
    """Cats and kittens are close in meaning, dogs less so."""

    def meanings(self, texts):
        rows = {"cat": (1, 0), "kitten": (0.8, 0.6), "dog": (0.3, 0.954)}
        return np.array([rows[text] for text in texts])


def test_words_that_are_close_in_meaning_are_shared_in_part():
    shares = shared_words(Pets(10), "the cat", ["A cat.", "Our kittens!", "My dog!", "It is so."])
    assert shares.tolist() == pytest.approx([1, (0.8 - UNRELATED) / (1 - UNRELATED), 0, 0])
    assert shared_words(Pets(10), "it is so", ["A cat.", "It is so."]).tolist() == [0, 0]


def test_a_phrase_does_not_go_on_with_another_speaker():
    lines = [
        Line(Segment(0, 2), "Anna: That was creative"),
        Line(Segment(2, 4), "Ben: Commons are fine."),
        Line(Segment(4, 6), "Anna: commons of course."),
        Line(Segment(6, 8), "Ben: Yes."),
    ]
    question = Question("How often is Creative Commons mentioned?")
    answer, _ = asked("7", question, TestFootage(10, lines=lines))
    (cited,) = answer.evidence
    assert cited.text == "Anna: That was creative commons of course."


def test_what_one_speaker_says_is_told_from_their_lines():
    question = Question("How often does Anna mention the battery?")
    answer, _ = asked("7", question, TestFootage(400, lines=TALK))
    assert [cited.text for cited in answer.evidence] == [TALK[2].text]
    question = Question("What did Ben say about the battery?")
    _, prompts = asked("", question, TestFootage(400, lines=TALK))
    assert "Ben: Then we take the plain battery" in prompts[0]
    assert "Anna: A solar battery" not in prompts[0]


def test_the_odds_of_letters_are_asked_for_only_where_a_fit_rests_on_them(footage):
    """The letter that the model writes stands, whatever its odds."""
    asked_for = []

    def script(messages, options):
        asked_for.append(bool(options.letters))
        if options.letters:
            return Reply("A", odds={"A": 0.6, "B": 0.2})
        return '{"choice": "B"}'

    def answer(*fits):
        run = Run({"llm": ScriptedChat(script, card=Card("scripted", letters=True))})
        return solve(Lookup(), footage, QUESTION, run, check=True, fits=fits).answer

    assert answer().confidence is None
    assert asked_for == [False]
    fit = Fit("lookup", "scripted", "pictures", {"odds": 1.0})
    assert (answer(fit).choice, answer(fit).confidence) == ("B", 0.25)
    assert asked_for[1:3] == [False, True]


def test_an_answer_is_not_lost_with_its_odds(footage):
    def script(messages, options):
        return ModelError("scripted", "timeout", "slow") if options.letters else '{"choice": "B"}'

    fit = Fit("lookup", "scripted", "pictures", {"odds": 1.0})

    def answer(**more):
        chat = ScriptedChat(script, card=Card("scripted", letters=True))
        return solve(Lookup(), footage, QUESTION, Run({"llm": chat}, **more), fits=[fit]).answer

    assert (answer().choice, answer().status) == ("B", "answered")
    cut = answer(budget=BudgetSettings(calls=1))
    assert (cut.choice, cut.status) == ("B", "budget_spent")


MOMENTS = Question("List every moment when somebody boasts.")


def test_moments_without_words_are_read_by_a_model_part_by_part(footage):
    answer, prompts = asked({"lines": [1, 1, 9]}, MOMENTS, footage, max_words=8)
    # parts of 4, 6, 5 and 9 words, of which the first two make more than eight
    assert len(prompts) == 4
    assert answer.text == (
        "4 times in what is said: 00:00:10, 00:00:12, 00:00:15, 00:01:20"
        " (all of 00:01:40 read by a model); pictures not looked at"
    )
    assert [cited.text for cited in answer.evidence] == [line.text for line in SAID]


def test_a_small_model_does_not_read_everything_for_moments(footage):
    prompts = []

    def script(_messages, options):
        prompts.append(options.prompt)
        return "It weighs twelve stones."

    model = ScriptedChat(script)
    model.card = replace(model.card, small="told")
    question = Question("List every moment when a weight is told.")
    solve(Lookup(), footage, question, Run({"llm": model}))
    assert "lookup/moments" not in prompts


def test_moments_that_a_budget_leaves_out_are_told(footage):
    run = Run({"llm": ScriptedChat(lambda *_: '{"lines": [1]}')}, budget=BudgetSettings(calls=2))
    answer = solve(Lookup(max_words=8), footage, MOMENTS, run, check=True).answer
    assert answer.status == "budget_spent"
    assert "2 times in what is said" in answer.text
    assert "(all of 00:01:40 compared, 2 of 4 parts read by a model)" in answer.text


def test_parts_without_a_readable_reply_are_not_said_to_be_read(footage):
    replies = iter(["?"] * 2 + ['{"lines": [1]}'] * 3)
    run = Run({"llm": ScriptedChat(lambda *_: next(replies))})
    answer = solve(Lookup(max_words=8), footage, MOMENTS, run, check=True).answer
    assert "(all of 00:01:40 compared, 3 of 4 parts read by a model)" in answer.text


def test_no_such_moment_is_an_abstention(footage):
    answer, _ = asked({"lines": []}, MOMENTS, footage)
    assert answer.status == "abstained"
    assert answer.reason.startswith(f"{NOT_FOUND} (all of 00:01:40 read by a model)")
