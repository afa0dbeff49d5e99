"""Rerankers: cross-encoders that read a question and a text together.

An encoder compares two vectors that were made apart; a cross-encoder sees both texts at once and is
trained to tell whether one answers the other. It is too slow for all lines of a film (20 ms a pair
on two cores), so it reads the few that retrieval found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from longtake.errors import ModelError
from longtake.perception.cards import HubFiles
from longtake.perception.minilm import bert_tokenizer
from longtake.perception.protocols import Array
from longtake.perception.runtime import Compute, OnnxSession, batches, sha256, stack

BUILT_IN = "ms-marco-minilm"
FILE = "ms-marco-minilm-l12-v2-int8.onnx"
"""``cross-encoder/ms-marco-MiniLM-L12-v2`` (Apache-2.0) with int8 weights."""
SHA256 = "1225ccd6afd0f1b43a1b08bf67cd1cb68c05aafb443e9d8450015b8b3837ffd1"
MEASURED = {"question": -10.5, "account": -9.0, "support": -4.5}
"""Fitted by ``benchmarks/reranker_thresholds.py``; docs/evidence.md says what they do."""
LONGEST = 512
"""The maximum of tokens in the model's own configuration; of a longer pair the text is cut."""
PAIRS = 8
"""Pairs per run."""

RERANKERS: dict[str, HubFiles] = {
    card.name: card
    for card in (
        HubFiles(
            "bge-reranker-base",
            "BAAI/bge-reranker-base",
            "main",
            ("onnx/model.onnx", "tokenizer.json"),
        ),
        HubFiles(
            "gte-reranker-modernbert-base",
            "Alibaba-NLP/gte-reranker-modernbert-base",
            "main",
            ("onnx/model_quantized.onnx", "tokenizer.json"),
        ),
    )
}
"""Larger rerankers on the model hub (MIT; Apache-2.0). Their files are those that public code
downloads, looked up on 2026-11-19 in stored copies; none was run here."""
FILES = ("model.onnx", "onnx/model.onnx", "onnx/model_quantized.onnx")


class OnnxReranker:
    """A cross-encoder with one logit per pair."""

    def __init__(
        self,
        model: Path,
        tokenizer: Any,
        *,
        key: str,
        thresholds: Mapping[str, float] | None = None,
        compute: Compute | None = None,
    ) -> None:
        self.key = key
        self.thresholds: Mapping[str, float] = thresholds or {}
        self._tokenizer = tokenizer
        # the text is cut, never the question
        tokenizer.enable_truncation(LONGEST, strategy="only_second")
        self._session = OnnxSession(model, compute or Compute())

    @cached_property
    def _inputs(self) -> frozenset[str]:
        return frozenset(self._session.inputs)

    @cached_property
    def _output(self) -> str:
        return next(iter(self._session.outputs))

    def scores(self, question: str, texts: Sequence[str]) -> Array:
        """One logit per text."""
        # texts of similar length share a batch, so that little of it is padding
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        parts = []
        for places in batches(order, PAIRS):
            pairs = [(question, texts[place]) for place in places]
            parts.append(self._batch(self._tokenizer.encode_batch(pairs)))
        scores = np.zeros(len(texts), np.float32)
        scores[order] = stack(parts, 1)[:, 0]
        return scores

    def _batch(self, encoded: Sequence[Any]) -> Array:
        width = max(len(pair.ids) for pair in encoded)
        feed = {
            name: np.zeros((len(encoded), width), np.int64)
            for name in ("input_ids", "attention_mask", "token_type_ids")
        }
        for row, pair in enumerate(encoded):
            feed["input_ids"][row, : len(pair.ids)] = pair.ids
            feed["attention_mask"][row, : len(pair.ids)] = 1
            feed["token_type_ids"][row, : len(pair.ids)] = pair.type_ids
        used = {name: values for name, values in feed.items() if name in self._inputs}
        (logits,) = self._session.run([self._output], used)
        logits = np.asarray(logits, np.float32).reshape(len(encoded), -1)
        if logits.shape[1] != 1:
            detail = f"has {logits.shape[1]} outputs per pair; a reranker has one"
            raise ModelError(self.key, "refused", detail)
        return logits


def open_built_in(folder: Path, compute: Compute) -> OnnxReranker | None:
    """The built-in reranker; ``None`` if it is not downloaded."""
    model = folder / FILE
    if not model.is_file():
        return None
    return OnnxReranker(
        model,
        bert_tokenizer(),
        key=f"{BUILT_IN}:{SHA256[:16]}",
        thresholds=MEASURED,
        compute=compute,
    )


def open_folder(name: str, folder: Path, compute: Compute) -> OnnxReranker:
    """A reranker from a folder with one of :data:`FILES` and its tokenizer."""
    from tokenizers import Tokenizer

    model = next((folder / each for each in FILES if (folder / each).is_file()), None)
    words = folder / "tokenizer.json"
    if model is None or not words.is_file():
        detail = f"{folder} holds no model.onnx with a tokenizer.json"
        if name in RERANKERS:
            detail += f"; longtake models pull {name}"
        raise ModelError(name, "unavailable", detail)
    key = f"{name}:{sha256(model)[:16]}"
    return OnnxReranker(model, Tokenizer.from_file(str(words)), key=key, compute=compute)
