"""Which captioned clips are used for training, and how the others are reported."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from processes import Captions

from longtake.agents.run import Run
from longtake.errors import ConfigError
from longtake.llm.backends.scripted import ScriptedChat
from longtake.perception.minilm import LONGEST
from longtake.types import Segment
from longtake_bench.training import data
from longtake_bench.training.data import (
    CaptionedClip,
    CaptionRules,
    Dropped,
    keep,
    read_list,
    shorten,
    tokens_of,
)
from longtake_bench.training.fit import recall


def words(text: str) -> int:
    return len(text.split())


LONG_ENOUGH = " ".join(f"word{n}" for n in range(20))


def row(start=0, end=60, caption=LONG_ENOUGH, video="a.mp4"):
    return {"video": video, "start": start, "end": end, "caption": caption}


def test_five_seconds_to_twelve_minutes_and_twenty_tokens():
    rows = [
        row(0, 5),
        row(0, 4.9),
        row(0, 720),
        row(0, 720.1),
        row(caption="too short"),
        row(caption=LONG_ENOUGH[:-7]),
    ]
    kept, dropped = keep(rows, CaptionRules(), words, 77)
    assert [clip.segment for clip in kept] == [Segment(0, 5), Segment(0, 720)]
    assert dropped.reasons == {
        "shorter than 5 s": 1,
        "longer than 720 s": 1,
        "caption of fewer than 20 tokens": 2,
    }
    assert "dropped 2: caption of fewer than 20 tokens (row 5, 2 tokens)" in dropped.lines()


@pytest.mark.parametrize(
    "bad",
    [{"video": "a"}, row(start="x"), row(5, 3), row(caption=None), row(video=""), row(start=-1)],
)
def test_rows_that_say_too_little_are_dropped_and_counted(bad):
    kept, dropped = keep([bad, row()], CaptionRules(), words, 77)
    assert len(kept) == 1
    assert dropped.lines() == ["dropped 1: no video, start, end and caption (row 1)"]


def test_long_captions_lose_their_last_sentences():
    assert (
        shorten("One two three. Four five! Six seven eight.", 5, words)
        == "One two three. Four five!"
    )
    assert shorten("One two three four five six.", 4, words) == "One two three four"
    kept, dropped = keep([row(caption=f"{LONG_ENOUGH}. And more.")], CaptionRules(), words, 20)
    assert kept[0].caption == f"{LONG_ENOUGH}."
    assert dropped.lines() == ["shortened 1 captions"]


def test_a_model_rewrites_captions_that_are_too_long():
    told = [f"{LONG_ENOUGH} {end}" for end in ("one", "two. And more.", "three")]
    replies = {"one": f" {LONG_ENOUGH}\n", "two": "word " * 30, "three": "too short"}
    asked = []

    def reply(messages, options):
        asked.append(messages[-1].text)
        return next(text for end, text in replies.items() if end in asked[-1])

    chat = ScriptedChat(reply)
    rows = [row(caption=caption) for caption in (*told, LONG_ENOUGH)]
    kept, dropped = keep(rows, CaptionRules(), words, 20, Run({"llm": chat}))
    # a rewritten caption must fit too; one that does not is shortened as without a model
    assert [clip.caption for clip in kept] == [LONG_ENOUGH] * 4
    assert dropped.lines() == ["rewrote 1 captions", "shortened 2 captions"]
    assert len(asked) == 3
    assert all("at most 14 words" in text for text in asked)


def test_tokens_are_those_of_the_text_side():
    count, most = tokens_of(object())
    assert most == LONGEST
    assert count("a dog") == 4  # with its two marks
    assert count("word " * 1000) > 1000


def test_lists_in_three_forms(tmp_path):
    (tmp_path / "a.jsonl").write_text("\n".join(json.dumps(row(n)) for n in range(2)) + "\n\n")
    (tmp_path / "a.json").write_text(json.dumps([row(0), row(1)]))
    (tmp_path / "a.csv").write_text(
        f"video,start,end,caption\na.mp4,0,60,{LONG_ENOUGH}\na.mp4,1,60,{LONG_ENOUGH}\n"
    )
    kept = [
        keep(read_list(tmp_path / f"a.{kind}"), CaptionRules(), words, 77)[0]
        for kind in ("jsonl", "json", "csv")
    ]
    assert kept[0] == kept[1] == kept[2]
    assert len(kept[0]) == 2


def test_annotations_as_their_authors_publish_them(tmp_path):
    file = tmp_path / "annotations.json"

    def rows(annotations):
        file.write_text(json.dumps(annotations))
        return [(row["video"], row["start"], row["end"], row["caption"]) for row in read_list(file)]

    # ActivityNet Captions: train.json, val_1.json and val_2.json
    sentences = {"duration": 82.7, "timestamps": [[0.8, 19.9], [17, 60]], "sentences": ["a", " b"]}
    expected = [("v_x", 0.8, 19.9, "a"), ("v_x", 17, 60, " b")]
    assert rows({"v_x": sentences}) == expected
    # YouCook2: youcookii_annotations_trainval.json
    steps = [{"id": 0, "segment": [25, 37], "sentence": "cut it"}]
    about = {"subset": "training", "recipe_type": "212", "duration": 90.1, "annotations": steps}
    assert rows({"database": {"y": about}}) == [("y", 25, 37, "cut it")]
    # ViTT: ViTT-annotations.json, in milliseconds; a video may be annotated more than once
    sections = [{"timestamp": 260, "tag": "Opening"}, {"timestamp": 16000, "tag": "Closing"}]
    once = [("z", 0.26, 16.0, "Opening"), ("z", 16.0, None, "Closing")]
    vitt = [{"id": "z", "annotations": sections}] * 2
    assert rows(vitt) == once * 2
    lines = tmp_path / "ViTT-annotations.json"
    lines.write_text("".join(json.dumps(row) + "\n" for row in vitt))
    assert read_list(lines) == read_list(file)
    # the end of the last section is not stated, and not guessed
    _, dropped = keep(read_list(lines), CaptionRules(least_tokens=0), words, 77)
    assert dropped.reasons == {"no video, start, end and caption": 2}


def test_films_of_a_dataset_are_found_without_their_suffix(tmp_path):
    deep = tmp_path / "training" / "212" / "y.mkv"
    deep.parent.mkdir(parents=True)
    for file in (deep, deep.with_suffix(".json"), deep.with_suffix(".srt"), tmp_path / "a.mp4"):
        file.touch()
    listed = [{"video": "y"}, {"video": "a.mp4"}, {"video": "gone" * 99}, {"video": "\0"}]
    assert data._paths(listed, tmp_path) == {
        "y": deep,
        "a.mp4": tmp_path / "a.mp4",
        "gone" * 99: tmp_path / ("gone" * 99),
        "\0": tmp_path / "\0",
    }


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.jsonl", "{", "not valid JSON"),
        ("a.json", '{"a": 1}', "not a list of objects"),
        ("a.json", "3", "not a list of objects"),
        ("a.json", '["a"]', "not a list of objects"),
        ("a.json", '["annotations"]', "not a list of objects"),
        ("a.json", '[{"id": "z", "annotations": [{"tag": "t"}]}]', "nor annotations of Activity"),
        ("a.json", '{"v": {"timestamps": [[0, 1]], "sentences": []}}', "malformed"),
        ("b.jsonl", None, "cannot be read"),
    ],
)
def test_lists_that_cannot_be_read(tmp_path, name, text, says):
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(ConfigError, match=says):
        read_list(tmp_path / name)


# ---- vectors


def test_clips_are_seen_through_the_index_of_their_film():
    clips = [
        CaptionedClip("v", Segment(2, 6), "a b"),
        CaptionedClip("v", Segment(0, 10), "c d"),
        CaptionedClip("v", Segment(40, 50), "e"),
        CaptionedClip("broken", Segment(0, 5), "f"),
    ]
    dropped = Dropped()
    embedded = data.embed(clips, dropped, Captions().footage, 3)
    footage = Captions().footage("v")
    assert len(embedded) == 2
    assert embedded.counts.tolist() == [3, 3]
    assert embedded.clip(0) == pytest.approx(footage.embeddings()[[2, 3, 5]], abs=1e-3)
    assert np.asarray(embedded.texts, np.float32) == pytest.approx(
        footage.encode(["a b", "c d"]), abs=1e-3
    )
    assert dropped.reasons == {"beyond the end of its film": 1, "film cannot be read": 1}


def test_a_film_whose_pictures_cannot_be_read_is_dropped():
    def footage(video):
        def at(times):
            if video == "broken":
                raise ConfigError("no picture")
            return times

        return SimpleNamespace(times=np.arange(10.0), duration=10.0, at=at)

    clips = [CaptionedClip(video, Segment(0, 8), "a") for video in ("broken", "v")]
    dropped = Dropped()
    pictures = np.zeros((4, 3, 2, 2), np.uint8)
    made = data.embed(clips, dropped, footage, 4, squares=lambda _: pictures)
    assert (made.videos.tolist(), made.texts.tolist(), made.raw) == (["v"], ["a"], True)
    assert dropped.lines() == ["dropped 1: film cannot be read (no picture)"]


def test_pairs_are_padded():
    made = data.stack([np.eye(3, dtype=np.float32)[:2]], np.eye(3, dtype=np.float32)[:1], ["v"], 4)
    assert made.frames.shape == (1, 4, 3)
    assert made.frames[0, 2:].any() == False  # noqa: E712
    assert (made.counts.tolist(), made.videos.tolist()) == ([2], ["v"])


def test_no_film_is_both_trained_and_tested_on():
    one = np.eye(2, dtype=np.float32)[:1]
    made = data.stack([one] * 30, np.repeat(one, 30, axis=0), [f"v{n % 6}" for n in range(30)], 2)
    train, test = data.held_out(made, 0.3, seed=1)
    assert not set(train.videos.tolist()) & set(test.videos.tolist())
    assert (len(train), len(test)) == (20, 10)
    with pytest.raises(ConfigError, match="two videos"):
        data.held_out(made.only([0, 6]), 0.3, seed=1)


def test_recall_counts_ties_for_the_share_of_orders_in_which_they_are_found():
    scores = np.array([[0.9, 0.1, 0.2], [0.5, 0.5, 0.1], [0.3, 0.2, 0.1]])
    assert recall(scores, 1) == pytest.approx((1 + 0.5 + 0) / 3)
    assert recall(scores, 2) == pytest.approx((1 + 1 + 0) / 3)
    assert recall(scores, 3) == 1
    assert recall(np.zeros((4, 4)), 1) == pytest.approx(1 / 4)
