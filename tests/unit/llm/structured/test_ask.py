import re
from pathlib import Path

import numpy as np
import pytest
from pydantic import BaseModel
from support.listening import listening

from longtake import prompts
from longtake.errors import ConfigError, ModelError
from longtake.llm.backends.scripted import ScriptedChat
from longtake.llm.chat import Card, Image, Options, Reply, say
from longtake.llm.structured.ask import ask, with_options
from longtake.llm.structured.fit import LinesByDistance
from longtake.llm.structured.schema import Letter
from longtake.prompts import Plain
from longtake.tracing.events import FramesSeen
from longtake.types import Frame, Line, Question, Segment

QUESTION = Question("Who?", ("the man", "the dog"))


class Guess(BaseModel):
    choice: Letter = None


@pytest.fixture(autouse=True)
def prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {
        "t/guess": "You watch films.\n\n---\n\n$question\n\n$notes\n\nWhich?",
        "t/look": "Before.\n\n$frames\n\nSay what you see.",
    }
    shipped = prompts.load
    monkeypatch.setattr(
        prompts,
        "load",
        lambda name: prompts.Prompt(name, texts[name]) if name in texts else shipped(name),
    )


def guess(chat: ScriptedChat, **more: object) -> object:
    return ask(chat, "t/guess", Guess, question=QUESTION, notes="a dog barks", **more)  # type: ignore[call-overload]


def test_a_typed_reply_and_what_was_sent_for_it() -> None:
    chat = ScriptedChat(['{"choice": "(B)"}'])
    assert guess(chat) == Guess.model_construct(choice="B")
    (system, user), options = chat.asked[0]
    assert system.role == "system"
    assert system.text.startswith("Text between <material>")
    assert system.text.endswith("You watch films.")
    assert (
        user.text.index("A. the man") < user.text.index("a dog barks") < user.text.index("Which?")
    )
    assert user.text.endswith(
        'Reply with one JSON object and nothing else. Its fields:\n"choice": one of "A", "B"'
    ), "the form of the reply closes the prompt, in words"
    assert "properties" not in user.text
    assert options.schema is not None
    assert options.schema["properties"]["choice"]["enum"] == ["A", "B"]
    assert options.prompt == "t/guess"


def test_an_unreadable_reply_is_asked_for_once_more_with_the_reason() -> None:
    chat = ScriptedChat(['{"choice": "A or B"}', '{"choice": "A"}'])
    with listening() as heard:
        assert guess(chat) == Guess.model_construct(choice="A")
    again = chat.asked[1][0]
    assert again[-2] == say("assistant", '{"choice": "A or B"}')
    assert "must be exactly one letter of A, B" in again[-1].text
    assert again[:2] == chat.asked[0][0], "the prefix stays, so that a prefix cache serves it"
    assert len(heard.notes("asked_again")) == 1
    assert not heard.notes("default_taken")


def test_after_two_unreadable_replies_the_default_stands_and_an_event_says_so() -> None:
    chat = ScriptedChat(["dunno", "A or B", '{"choice": "A"}'])
    with listening() as heard:
        assert guess(chat, default=None) is None
    (note,) = heard.notes("default_taken")
    assert note.data["prompt"] == "t/guess"
    assert len(chat.asked) == 2


def test_without_a_default_an_unreadable_reply_is_an_error() -> None:
    with pytest.raises(ModelError, match="t/guess cannot be used") as raised:
        guess(ScriptedChat(["dunno"] * 2))
    assert raised.value.problem == "unreadable"


def test_plain_text_replies() -> None:
    frame = Frame(75.0, np.zeros((4, 4, 3), np.uint8))
    chat = ScriptedChat(["<think>hm</think>", " A dog. "])
    with listening() as heard:
        assert ask(chat, "t/look", frames=[frame]) == "A dog."
    parts = chat.asked[0][0][1].parts
    assert [getattr(part, "text", "picture") for part in parts] == [
        "Before.",
        "[00:01:15]",
        "picture",
        "Say what you see.",
    ]
    assert isinstance(parts[2], Image)
    (seen,) = heard.of(FramesSeen)
    assert isinstance(seen, FramesSeen)
    assert seen.frames[0].time == 75.0


def test_a_reply_cut_off_while_thinking_is_told_so() -> None:
    chat = ScriptedChat([Reply("", thinking="long", finish="length"), '{"choice": "B"}'])
    guess(chat)
    assert "think less" in chat.asked[1][0][-1].text


def test_a_reply_that_was_cut_off_is_quoted_briefly() -> None:
    rambling = '{"reason": "' + " ".join(f"and so on {number}" for number in range(300))
    chat = ScriptedChat([Reply(rambling, finish="length"), '{"choice": "B"}'])
    with listening() as heard:
        assert guess(chat).choice == "B"
    *_, said, again = chat.asked[1][0]
    assert "ran out of room" in again.text or "cut off" in again.text
    assert said.text == rambling[:200], "quoting a long cut reply makes the model repeat it"
    assert heard.notes("asked_again")


def test_a_reply_that_repeats_itself_counts_as_cut_off() -> None:
    looping = '{"reason": "The man ' + "and the dog and the man " * 40
    chat = ScriptedChat([Reply(looping), '{"choice": "B"}'])
    with listening() as heard:
        assert guess(chat).choice == "B"
    assert heard.notes("reply_looped")
    assert len(chat.asked[1][0][-2].text) < 80, "the loop is not shown again"
    chat = ScriptedChat([Reply('{"choice": "B"}\n' * 30)])
    assert guess(chat).choice == "B"


def test_a_model_that_takes_no_pictures_is_not_shown_any() -> None:
    chat = ScriptedChat(["never"], card=Card("blind", vision=False))
    with pytest.raises(ModelError, match="takes no pictures"):
        ask(chat, "t/look", frames=[Frame(0.0, np.zeros((4, 4, 3), np.uint8))])


def test_standing_options_and_those_of_a_step() -> None:
    chat = ScriptedChat(
        lambda *_: '{"choice": "A"}', card=Card("m", options=Options(temperature=0.3, max_tokens=9))
    )
    guess(chat)
    guess(chat, temperature=0.9, seed=5)
    guess(with_options(chat, max_tokens=33))  # type: ignore[arg-type]
    sent = [(options.temperature, options.max_tokens, options.seed) for _, options in chat.asked]
    assert sent == [(0.3, 9, None), (0.9, 9, 5), (0.3, 33, None)]


def test_notes_too_long_for_the_context_lose_their_middle() -> None:
    notes = [f"[{number}] something happens that is worth a line" for number in range(400)]
    chat = ScriptedChat(
        ['{"choice": "A"}'], card=Card("small", context=2000, options=Options(max_tokens=200))
    )
    with listening() as heard:
        ask(chat, "t/guess", Guess, question=QUESTION, notes=notes)
    text = chat.asked[0][0][1].text
    assert "[0] something" in text
    assert "[399] something" in text
    assert "[200] something" not in text
    (note,) = heard.notes("notes_trimmed")
    gone = note.data["lines_left_out"]["notes"]
    assert f"(… {gone} lines left out …)" in text
    assert text.count("something happens") == 400 - gone
    assert 400 - gone > 50, "no more is left out than needed"


def test_the_endpoints_own_tokenizer_decides_where_there_is_one() -> None:
    class Counting(ScriptedChat):
        def count(self, text: str) -> int:
            return len(text.split())

    notes = [f"{number} aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" for number in range(400)]
    chat = Counting(
        ['{"choice": "A"}'], card=Card("m", context=2000, options=Options(max_tokens=200))
    )
    with listening() as heard:
        ask(chat, "t/guess", Guess, question=QUESTION, notes=notes)
    assert not heard.notes("notes_trimmed"), "800 words fit, though the estimate says they do not"


def test_what_cannot_be_trimmed_to_fit_is_an_error_before_it_is_sent() -> None:
    chat = ScriptedChat(["never"], card=Card("tiny", context=300, options=Options(max_tokens=200)))
    with pytest.raises(ModelError, match="the model holds 300") as raised:
        ask(chat, "t/guess", Guess, question=Question("x" * 3000, ("a", "b")), notes="short")
    assert raised.value.problem == "context"
    assert not chat.asked


def test_slots_must_match() -> None:
    with pytest.raises(ConfigError, match=r"\$notes is not filled, \$extra is no slot"):
        ask(ScriptedChat([]), "t/guess", Guess, question=QUESTION, extra=1)


def test_prompts_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "same_meaning.md").write_text("Mine. $question $answers")
    ours = prompts.load("shared/same_meaning")
    with prompts.override(tmp_path):
        mine = prompts.load("shared/same_meaning")
        assert mine.text.startswith("Mine.")
        assert mine.digest != ours.digest == prompts._shipped("shared/same_meaning").digest
        assert prompts.digests("shared/")["shared/same_meaning"] == mine.digest
    (tmp_path / "shared" / "same_meaning.md").write_text("Mine. $question")
    with (
        pytest.raises(ConfigError, match=r"must be \$answers, \$question"),
        prompts.override(tmp_path),
    ):
        pass
    (tmp_path / "shared" / "same_meaning.md").unlink()
    (tmp_path / "shared" / "same_meening.md").write_text("x")
    with (
        pytest.raises(ConfigError, match="did you mean 'shared/same_meaning'"),
        prompts.override(tmp_path),
    ):
        pass


def test_our_own_words_are_set_in_as_they_are() -> None:
    rendered = prompts.Prompt("t", "$a $b $c").render(a=Plain("<b>"), b=3, c="<b>")
    assert rendered.user == ('<b> 3 <material name="c">\n‹b›\n</material>',)


def test_a_second_prompt_that_no_longer_fits_ends_in_the_default() -> None:
    too_long = ModelError("m", "context", "too long")
    with listening() as heard:
        assert guess(ScriptedChat(["dunno", too_long]), default=None) is None
    assert heard.notes("default_taken")
    with pytest.raises(ModelError, match="cannot be used"):
        guess(ScriptedChat(["dunno", too_long]))
    with pytest.raises(ModelError, match="bad key"):
        guess(ScriptedChat(["dunno", ModelError("m", "refused", "bad key")]), default=None)


def test_lines_around_moments_lose_those_farthest_from_them() -> None:
    lines = [Line(Segment(float(n), n + 1.0), f"something is said at {n}") for n in range(400)]
    chat = ScriptedChat(
        ['{"choice": "A"}'], card=Card("small", context=2000, options=Options(max_tokens=200))
    )
    with listening() as heard:
        ask(chat, "t/guess", Guess, question=QUESTION, notes=LinesByDistance(lines, [100.5, 300.5]))
    kept = [int(n) for n in re.findall(r"said at (\d+)", chat.asked[0][0][1].text)]
    assert kept == sorted(kept)
    assert 50 < len(kept) == 400 - heard.notes("notes_trimmed")[0].data["lines_left_out"]["notes"]
    assert max(min(abs(n - 100), abs(n - 300)) for n in kept) <= len(kept) / 4 + 1


def test_the_nearest_lines_within_a_number_of_words() -> None:
    lines = [Line(Segment(float(n), n + 1.0), "two words") for n in range(10)]
    assert [line.segment.start for line in LinesByDistance(lines, [4.5]).within(7)] == [
        3.0,
        4.0,
        5.0,
    ]
    assert LinesByDistance(lines, []).within(100) == lines
    assert LinesByDistance(lines, [0.0]).within(1) == []
