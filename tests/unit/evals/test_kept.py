"""Vectors of captions that are kept on disk."""

from __future__ import annotations

import numpy as np
import pytest

from longtake.evals.benchmarks.files import MANY, KeptSentences

CAPTIONS = [f"a man {number}" for number in range(MANY)]


class Encoder:
    """Counts what it is asked for."""

    name = "counting"
    dim = 384

    def __init__(self, key="one"):
        self.key, self.asked = key, 0

    def texts(self, texts):
        self.asked += len(texts)
        return np.array([[len(text), self.asked] for text in texts], np.float32)


def test_captions_are_encoded_once(tmp_path):
    first, second = Encoder(), Encoder()
    rows = KeptSentences(first, tmp_path / "kept").texts(CAPTIONS)
    assert np.array_equal(KeptSentences(second, tmp_path / "kept").texts(CAPTIONS), rows)
    assert (first.asked, second.asked) == (MANY, 0)


def test_another_encoder_or_another_caption_is_another_entry(tmp_path):
    KeptSentences(Encoder(), tmp_path).texts(CAPTIONS)
    other = Encoder("two")
    KeptSentences(other, tmp_path).texts(CAPTIONS)
    changed = Encoder()
    KeptSentences(changed, tmp_path).texts([*CAPTIONS[:-1], "a dog"])
    assert (other.asked, changed.asked) == (MANY, MANY)


def test_a_question_is_not_kept(tmp_path):
    KeptSentences(Encoder(), tmp_path).texts(["Why?", "yes", "no"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("left", [b"", b"\x93NUMPY", b"not an array"])
def test_a_damaged_file_is_made_again(tmp_path, left):
    KeptSentences(Encoder(), tmp_path).texts(CAPTIONS)
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    file.write_bytes(left)
    assert len(KeptSentences(Encoder(), tmp_path).texts(CAPTIONS)) == MANY
    assert file.read_bytes() == whole


def test_a_folder_that_cannot_be_written_only_costs_time(tmp_path):
    (tmp_path / "kept").write_text("a file, not a folder")
    assert len(KeptSentences(Encoder(), tmp_path / "kept").texts(CAPTIONS)) == MANY
