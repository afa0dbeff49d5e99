"""Encoders made from a card and a folder that holds its files."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from longtake.errors import ModelError
from longtake.perception.cards import Card, TextTower, Tower
from longtake.perception.runtime import Compute, Session, batches, stack, unit
from longtake.types import Frame

if TYPE_CHECKING:
    from longtake.perception.protocols import Array

_SLICE = 1 << 20


class CardImageEncoder:
    """A vision model described by a card."""

    def __init__(self, card: Card, folder: Path, *, compute: Compute | None = None) -> None:
        self.card = card
        self.name = card.name
        self.dim = card.dim
        self._compute = compute or Compute()
        file = locate(card, folder, card.image.file)
        self._vision = Session(file, self._compute)
        self._vision_output = _output(card, card.image, self._vision)
        self._vision_input = _input(card, card.image, self._vision, "pixel_values")
        self.key = f"{card.name}:{identity(file)}:{card.pixels.key}"

    @property
    def size(self) -> int:
        """Shorter side that frames need."""
        return self.card.pixels.size

    def images(self, frames: Sequence[Frame]) -> Array:
        """One unit row per frame."""
        parts = (
            self._vision.run(
                (self._vision_output,), {self._vision_input: self.card.pixels.prepare(some)}
            )[0]
            for some in batches(frames, self._vision.batch)
        )
        return unit(stack((_pooled(self.card, self.card.image, part) for part in parts), self.dim))


class CardImageTextEncoder(CardImageEncoder):
    """A vision model and its text model, in one space."""

    def __init__(self, card: Card, folder: Path, *, compute: Compute | None = None) -> None:
        super().__init__(card, folder, compute=compute)
        if card.text is None:
            raise ModelError(
                card.name, "refused", "this encoder has no text side; use it for images only"
            )
        self._tower: TextTower = card.text
        self.logit_scale = card.logit_scale
        self.logit_bias = card.logit_bias
        self.thresholds: Mapping[str, float] = {
            name: cut.value for name, cut in card.thresholds.items()
        }
        file, tokenizer = (
            locate(card, folder, card.text.file),
            locate(card, folder, card.text.tokenizer),
        )
        self._text = Session(file, self._compute)
        self._text_output = _output(card, card.text, self._text)
        _input(card, card.text, self._text, "input_ids")
        self._tokenizer = _tokenizer(card, tokenizer)
        self.key = f"{self.key}:{identity(file)}:{identity(tokenizer)}"

    def texts(self, texts: Sequence[str]) -> Array:
        """One unit row per text."""
        parts = (
            self._text.run((self._text_output,), self._feed(some))[0]
            for some in batches(texts, self._text.batch)
        )
        return unit(stack((_pooled(self.card, self._tower, part) for part in parts), self.dim))

    def count(self, text: str) -> int:
        """Tokens of a text, the end token included, before anything is cut."""
        given = text.lower() if self._tower.lowercase else text
        ids = self._tokenizer.encode(given).ids
        return len(ids) + (not ids or ids[-1] != self._tower.end)

    def _feed(self, texts: Sequence[str]) -> dict[str, Any]:
        tower = self._tower
        given = [text.lower() for text in texts] if tower.lowercase else list(texts)
        rows = [lay_out(encoding.ids, tower) for encoding in self._tokenizer.encode_batch(given)]
        width = tower.length if tower.pad is not None else max(map(len, rows))
        ids = np.full((len(rows), width), tower.end if tower.pad is None else tower.pad, np.int64)
        mask = np.zeros_like(ids)
        for number, row in enumerate(rows):
            ids[number, : len(row)] = row
            mask[number, : len(row)] = 1
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        return {name: feed[name] for name in self._text.inputs if name in feed}


def open_card(
    card: Card, folder: Path, *, compute: Compute | None = None
) -> CardImageEncoder | CardImageTextEncoder:
    """The encoder a card describes: with a text side where the card has one."""
    kind = CardImageTextEncoder if card.text else CardImageEncoder
    return kind(card, folder, compute=compute)


def lay_out(ids: Sequence[int], tower: TextTower) -> list[int]:
    """Token numbers cut to the longest length and closed by the end token."""
    row = list(ids)
    if not row or row[-1] != tower.end:
        row.append(tower.end)
    return row if len(row) <= tower.length else [*row[: tower.length - 1], tower.end]


def locate(card: Card, folder: Path, file: str) -> Path:
    """A card's file, in the hub's layout or lying flat in the folder."""
    for path in (folder / file, folder / Path(file).name):
        if path.is_file():
            return path
    raise ModelError(
        card.name,
        "unavailable",
        f"{file} is not in {folder}; fetch it (longtake models pull {card.name}) or copy it there from {card.repo}",
    )


def identity(file: Path) -> str:
    """A file's size and hashed head, middle and tail: a name for its content, at no cost for gigabytes."""
    size = file.stat().st_size
    digest = hashlib.sha256(str(size).encode())
    with file.open("rb") as stream:
        for position in (0, max(size // 2 - _SLICE // 2, 0), max(size - _SLICE, 0)):
            stream.seek(position)
            digest.update(stream.read(_SLICE))
    return digest.hexdigest()[:16]


def _tokenizer(card: Card, file: Path) -> Any:
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(file))
    # tokenizers raises bare Exception for a file it cannot parse
    except Exception as error:
        raise ModelError(card.name, "refused", f"{file} is not a tokenizer ({error})") from error
    tokenizer.no_padding()  # a stored tokenizer may carry settings of its own; the card's hold
    tokenizer.no_truncation()
    return tokenizer


def _output(card: Card, tower: Tower, session: Session) -> str:
    for name in tower.outputs:
        if name in session.outputs:
            return name
    there = ", ".join(session.outputs)
    raise ModelError(
        card.name, "refused", f"{tower.file} gives {there}, not {' or '.join(tower.outputs)}"
    )


def _input(card: Card, tower: Tower, session: Session, name: str) -> str:
    if name not in session.inputs:
        there = ", ".join(session.inputs)
        raise ModelError(card.name, "refused", f"{tower.file} takes {there}, not {name}")
    return name


def _pooled(card: Card, tower: Tower, values: Any) -> Any:
    rows = values[:, 0] if tower.pool == "first" else values
    if rows.ndim != 2 or rows.shape[1] != card.dim:
        shape = "×".join(map(str, values.shape))
        raise ModelError(
            card.name, "refused", f"{tower.file} gives {shape} values, not vectors of {card.dim}"
        )
    return rows
