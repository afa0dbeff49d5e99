from pathlib import Path

from longtake.footage.plain import CaptionedFootage
from longtake.llm.backends.scripted import ScriptedChat
from longtake.llm.chat import Card, Options, Price, say
from longtake.llm.middleware import Cached, ReplyStore, Traced
from longtake.tracing.events import FramesSeen, Seen, Stream, emit, note, step
from longtake.tracing.sinks import Meter


def test_usage_is_summed_by_model_and_prompt_and_a_cached_reply_costs_nothing(
    tmp_path: Path,
) -> None:
    meter = Meter()
    store = ReplyStore(tmp_path)
    priced = ScriptedChat(lambda *_: "ok", card=Card("a", price=Price(1e6, 1e6, 1e6, "test")))
    with Stream(meter).active():
        chat = Traced(Cached(priced, store))
        once = chat.complete([say("user", "x")], Options(prompt="p"))
        chat.complete([say("user", "x")], Options(prompt="p"))
        note("retry")
    assert meter.total == once.usage == meter.by_model["a"] == meter.by_prompt["p"]
    assert once.usage.cost == once.usage.tokens_in + once.usage.tokens_out
    assert meter.cached == 1
    assert meter.notes == {"retry": 1}


class Letters:
    name = "letters"

    def texts(self, texts):
        raise AssertionError("nothing is compared here")


def test_frames_count_once_whether_they_were_shown_or_read_as_captions() -> None:
    meter = Meter()
    footage = CaptionedFootage("film", ["a cat", "a dog", "a car"], Letters())
    with Stream(meter).active():
        for number in (1, 2):
            with step("look", round=number):
                footage.captions([0.0, 2.0])
        emit(FramesSeen(purpose="p", frames=(Seen(2.0, "x"), Seen(1.0, "y"))))
    assert (meter.seen, meter.rounds) == (3, 2)
    assert meter.notes == {}
