"""Encoders that run the files described by a card."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from longtake.errors import ModelError
from longtake.perception.cards import EncoderCard, TextTower, Tower
from longtake.perception.cards import card as card_named
from longtake.perception.runtime import Compute, OnnxSession, batches, stack, unit
from longtake.types import Frame

if TYPE_CHECKING:
    from longtake.perception.encoders import EncoderSetup
    from longtake.perception.protocols import Array

_SLICE = 1 << 20
"""Bytes hashed at the head, middle and tail of a file."""


class CardImageEncoder:
    """A vision model described by a card."""

    def __init__(self, card: EncoderCard, folder: Path, *, compute: Compute | None = None) -> None:
        self.card = card
        self.name = card.name
        self.dim = card.dim
        self._compute = compute or Compute()
        file = locate(card, folder, card.image.file)
        self._vision = OnnxSession(file, self._compute)
        self._vision_output = _output(card, card.image, self._vision)
        self._vision_input = _input(card, card.image, self._vision, "pixel_values")
        # by content, not by path: another export of the same model gives other vectors
        self.key = f"{card.name}:{identity(file)}:{card.pixels.key}"

    @property
    def size(self) -> int:
        """Shorter side in pixels that frames need."""
        return self.card.pixels.size

    def images(self, frames: Sequence[Frame]) -> Array:
        """One unit row per frame."""
        parts = []
        for some in batches(frames, self._vision.batch):
            feed = {self._vision_input: self.card.pixels.prepare(some)}
            (values,) = self._vision.run((self._vision_output,), feed)
            parts.append(_pooled(self.card, self.card.image, values))
        return unit(stack(parts, self.dim))


class CardImageTextEncoder(CardImageEncoder):
    """A vision model and its text model, in one space."""

    def __init__(self, card: EncoderCard, folder: Path, *, compute: Compute | None = None) -> None:
        super().__init__(card, folder, compute=compute)
        if card.text is None:
            detail = "this encoder has no text model; use it for images only"
            raise ModelError(card.name, "refused", detail)
        self._tower: TextTower = card.text
        self.logit_scale = card.logit_scale
        self.thresholds: Mapping[str, float] = {}
        file = locate(card, folder, card.text.file)
        tokenizer = locate(card, folder, card.text.tokenizer)
        self._text = OnnxSession(file, self._compute)
        self._text_output = _output(card, card.text, self._text)
        _input(card, card.text, self._text, "input_ids")
        self._tokenizer = _tokenizer(card, tokenizer)
        self.key = f"{self.key}:{identity(file)}:{identity(tokenizer)}"

    def texts(self, texts: Sequence[str]) -> Array:
        """One unit row per text."""
        parts = []
        for some in batches(texts, self._text.batch):
            (values,) = self._text.run((self._text_output,), self._feed(some))
            parts.append(_pooled(self.card, self._tower, values))
        return unit(stack(parts, self.dim))

    def count(self, text: str) -> int:
        """Number of tokens of a text, including the end token, before truncation."""
        prepared = text.lower() if self._tower.lowercase else text
        ids = self._tokenizer.encode(prepared).ids
        return len(ids) + (not ids or ids[-1] != self._tower.end)

    def _feed(self, texts: Sequence[str]) -> dict[str, Any]:
        tower = self._tower
        prepared = [text.lower() for text in texts] if tower.lowercase else list(texts)
        rows = [lay_out(encoding.ids, tower) for encoding in self._tokenizer.encode_batch(prepared)]
        if tower.pad is None:
            width, filler = max(map(len, rows)), tower.end
        else:
            # models trained on fixed-length texts expect the padding to be there
            width, filler = tower.length, tower.pad
        ids = np.full((len(rows), width), filler, np.int64)
        mask = np.zeros_like(ids)
        for number, row in enumerate(rows):
            ids[number, : len(row)] = row
            mask[number, : len(row)] = 1
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        # exports differ in which of these they take
        return {name: feed[name] for name in self._text.inputs if name in feed}


def open_card(
    card: EncoderCard, folder: Path, *, compute: Compute | None = None
) -> CardImageEncoder | CardImageTextEncoder:
    """The encoder that a card describes, with its text model if it has one."""
    kind = CardImageTextEncoder if card.text else CardImageEncoder
    return kind(card, folder, compute=compute)


def open_named_card(setup: EncoderSetup) -> CardImageEncoder | CardImageTextEncoder:
    """The encoder whose card has the given name."""
    return open_card(card_named(setup.name), setup.folder, compute=setup.compute)


def lay_out(ids: Sequence[int], tower: TextTower) -> list[int]:
    """Token ids truncated to the maximum length, always ending with the end token."""
    # CLIP's vector is read at the end token, so truncation must not lose it
    row = list(ids)
    if not row or row[-1] != tower.end:
        row.append(tower.end)
    return row if len(row) <= tower.length else [*row[: tower.length - 1], tower.end]


def locate(card: EncoderCard, folder: Path, file: str) -> Path:
    """The path of a card's file, in the hub's folder layout or directly in the folder."""
    for path in (folder / file, folder / Path(file).name):
        if path.is_file():
            return path
    detail = (
        f"{file} is not in {folder}; fetch it (longtake models pull {card.name}) "
        f"or copy it there from {card.repo}"
    )
    raise ModelError(card.name, "unavailable", detail)


def identity(file: Path) -> str:
    """Hash of a file's size, head, middle and tail: quick even for gigabytes."""
    size = file.stat().st_size
    digest = hashlib.sha256(str(size).encode())
    with file.open("rb") as stream:
        for position in (0, max(size // 2 - _SLICE // 2, 0), max(size - _SLICE, 0)):
            stream.seek(position)
            digest.update(stream.read(_SLICE))
    return digest.hexdigest()[:16]


def _tokenizer(card: EncoderCard, file: Path) -> Any:
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(file))
    # tokenizers raises bare Exception for a file it cannot parse
    except Exception as error:
        raise ModelError(card.name, "refused", f"{file} is not a tokenizer ({error})") from error
    # the file may carry padding and truncation settings; the card's apply instead
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _output(card: EncoderCard, tower: Tower, session: OnnxSession) -> str:
    for name in tower.outputs:
        if name in session.outputs:
            return name
    actual, expected = ", ".join(session.outputs), " or ".join(tower.outputs)
    raise ModelError(card.name, "refused", f"{tower.file} returns {actual}, not {expected}")


def _input(card: EncoderCard, tower: Tower, session: OnnxSession, name: str) -> str:
    if name not in session.inputs:
        actual = ", ".join(session.inputs)
        raise ModelError(card.name, "refused", f"{tower.file} takes {actual}, not {name}")
    return name


def _pooled(card: EncoderCard, tower: Tower, values: Any) -> Any:
    rows = values[:, 0] if tower.pool == "first" else values
    if rows.ndim != 2 or rows.shape[1] != card.dim:
        shape = "×".join(map(str, values.shape))
        detail = f"{tower.file} returns {shape} values, not vectors of length {card.dim}"
        raise ModelError(card.name, "refused", detail)
    return rows
