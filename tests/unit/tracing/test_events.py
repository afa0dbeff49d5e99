import contextvars
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtake.errors import RunError
from longtake.footage.plain import CaptionedFootage
from longtake.llm.backends.scripted import ScriptedChat
from longtake.llm.chat import Card, Options, Price, say
from longtake.llm.middleware import Cached, ReplyStore, Traced
from longtake.tracing import events, trace
from longtake.tracing.events import (
    Answered,
    ChatCalled,
    Drafted,
    Failed,
    FramesSeen,
    Noted,
    RunStarted,
    ScoresSet,
    Seen,
    StepBegan,
    StepEnded,
    Stream,
    ToolCalled,
    emit,
    note,
    step,
)
from longtake.tracing.jsonl import JsonlSink
from longtake.tracing.sinks import Meter
from longtake.types import Answer, Evidence, Segment, Usage

EVERY_KIND = [
    RunStarted(
        method="m",
        question="q?",
        options=("a", "b"),
        film="f.mp4",
        fields={"n": 5},
        models={"llm": "x"},
    ),
    StepBegan(name="look", data={"round": 1}),
    ChatCalled(
        model="x",
        messages=({"role": "user", "text": "hi"},),
        reply="yo",
        usage=Usage(calls=1, cost=None),
    ),
    ToolCalled(name="search", arguments={"text": "cup"}, result="found"),
    FramesSeen(purpose="first look", frames=(Seen(1.5, "abc"),)),
    ScoresSet(label="belief", segments=(Segment(0, 1),), values=(0.5,)),
    Noted(label="default_taken", data={"step": "grade"}),
    StepEnded(step=2, seconds=0.5, error="ModelError"),
    Drafted(text="A dog", anew=True),
    Answered(
        answer=Answer("B", "text", evidence=(Evidence(Segment(1, 2), "frame", "x", 0.9),)),
        usage=Usage(frames=3),
    ),
    Failed(error="ModelError", message="gone"),
]


class Keeper:
    drafts = True

    def __init__(self):
        self.events = []
        self.pictures = {}

    def handle(self, event):
        self.events.append(event)

    def picture(self, digest, jpeg):
        self.pictures[digest] = jpeg()

    def close(self):
        pass


def test_every_kind_of_event_is_covered():
    assert {type(e) for e in EVERY_KIND} == set(events.Event.__args__)


def test_a_trace_reads_back_as_written(tmp_path):
    keeper, path = Keeper(), tmp_path / "run.jsonl"
    stream = Stream(keeper, JsonlSink(path, drafts=True))
    for event in EVERY_KIND:
        stream.emit(event)
    stream.picture("abc", lambda: b"\xff\xd8jpeg")
    stream.picture("abc", lambda: pytest.fail("encoded twice"))
    stream.close()
    read = trace.read(path)
    assert read.events == tuple(keeper.events)
    assert read.pictures == {"abc": b"\xff\xd8jpeg"}
    assert read.complete


def test_drafts_reach_only_the_sinks_that_show_them(tmp_path):
    keeper, path = Keeper(), tmp_path / "run.jsonl"
    plain = SimpleNamespace(handle=lambda event: pytest.fail(f"received {event}"))
    stream = Stream(JsonlSink(path), plain)
    assert not stream.drafts
    with stream.active():
        assert not events.shows_drafts()
    stream = Stream(JsonlSink(path), plain, keeper)
    with stream.active():
        assert events.shows_drafts()
        events.emit(Drafted(text="A"))
    assert [event.text for event in keeper.events] == ["A"]
    assert trace.read(path).events == ()


@pytest.mark.filterwarnings("error")
def test_invalid_utf8_in_names_does_not_end_a_trace(tmp_path):
    stream = Stream(JsonlSink(tmp_path / "run.jsonl"))
    stream.emit(RunStarted(method="m", question="Which?", film="a\udcff.mp4"))
    stream.close()
    (event,) = trace.read(tmp_path / "run.jsonl").events
    assert event.film == "a?.mp4"


@given(cut=st.integers(1, 400))
def test_a_trace_truncated_after_its_first_line_is_readable(tmp_path_factory, cut):
    path = tmp_path_factory.mktemp("t") / "run.jsonl"
    stream = Stream(JsonlSink(path))
    for number in range(5):
        stream.emit(Noted(label="n", data={"number": number}))
    stream.close()
    data = path.read_bytes()
    head = data.index(b"\n") + 1
    path.write_bytes(data[: max(head, len(data) - cut)])
    read = trace.read(path)
    assert [e.data["number"] for e in read.events] == list(range(len(read.events)))
    assert read.complete == path.read_bytes().endswith(b"\n")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not json\n",
        b'{"longtake_trace": 99}\n',
        b'{"longtake_trace": 1}\n{"kind": "nonsense"}\n',
    ],
)
def test_other_files_are_rejected(tmp_path, content):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(RunError):
        trace.read(tmp_path / "x")


def test_steps_nest_and_report_their_errors():
    keeper = Keeper()

    def stumble():
        with step("outer"), step("inner", round=2):
            note("hello", n=1)
            raise ValueError

    with Stream(keeper).active(), pytest.raises(ValueError):  # noqa: PT011
        stumble()
    outer, inner, noted, inner_end, outer_end = keeper.events
    assert (outer.parent, inner.parent, noted.parent) == (None, outer.id, inner.id)
    assert (inner_end.step, inner_end.error) == (inner.id, "ValueError")
    assert (outer_end.step, outer_end.parent) == (outer.id, None)


def test_a_failing_sink_is_dropped_and_the_run_goes_on():
    class Broken(Keeper):
        def handle(self, event):
            raise OSError("disk full")

    keeper = Keeper()
    stream = Stream(Broken(), keeper)
    with pytest.warns(RuntimeWarning, match="Broken was dropped: disk full"):
        stream.emit(Noted(label="one"))
    stream.emit(Noted(label="two"))
    assert [e.label for e in keeper.events] == ["one", "two"]


def test_threads_get_distinct_ids_and_keep_their_step():
    keeper = Keeper()
    with Stream(keeper).active(), step("all"):
        threads = [
            threading.Thread(target=contextvars.copy_context().run, args=(note, f"t{i}"))
            for i in range(20)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    ids = [e.id for e in keeper.events]
    assert len(set(ids)) == len(ids)
    assert {e.parent for e in keeper.events if isinstance(e, Noted)} == {keeper.events[0].id}


def test_without_a_stream_nothing_happens():
    note("nobody listens")
    with step("nor here"):
        pass


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
