"""Strong encoders, one card each: where the files are, how inputs are prepared, how they are run.

Nothing on a card is guessed: every number names its source. Hashes are not on the card; they are
recorded as the hub states them when the files are fetched. Cards have no thresholds, because no
source gives one for these models: VideoDetective's scene threshold of 0.82 was set on
SigLIP-SO400M/14-384, not on SigLIP 2 base.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from longtake.errors import ModelError, unknown
from longtake.perception.protocols import Array, Preprocessing
from longtake.perception.runtime import Compute, OnnxSession, batches, stack, token_feed, unit
from longtake.types import Frame

if TYPE_CHECKING:
    from longtake.perception.encoders import EncoderSetup


@dataclass(frozen=True)
class Tower:
    """One ONNX file, and the output that is the vector."""

    file: str
    outputs: tuple[str, ...]
    """Names of the output in order of preference."""
    pool: Literal["vector", "first"] = "vector"
    """``vector``: the output is a vector; ``first``: the first token of a sequence is taken."""


@dataclass(frozen=True)
class TextTower(Tower):
    """The text model: its tokenizer and the layout of token ids."""

    tokenizer: str = "tokenizer.json"
    length: int = 77
    """Maximum number of tokens including the end token; longer texts are truncated."""
    end: int = 0
    """Id of the token that ends every text."""
    pad: int | None = None
    """Token that fills every text to ``length``; ``None``: end tokens, to the longest text of a
    batch."""
    lowercase: bool = False


@dataclass(frozen=True)
class EncoderCard:
    """Everything that must be known about an encoder to fetch and run its files."""

    name: str
    repo: str
    revision: str
    dim: int
    pixels: Preprocessing
    image: Tower
    text: TextTower | None = None
    logit_scale: float | None = None

    @property
    def files(self) -> tuple[str, ...]:
        """The files to fetch."""
        if self.text is None:
            return (self.image.file,)
        return (self.image.file, self.text.file, self.text.tokenizer)


@dataclass(frozen=True)
class HubFiles:
    """Files of a model that another package runs."""

    name: str
    repo: str
    revision: str
    files: tuple[str, ...]


WHISPER = HubFiles(
    "whisper",
    # what faster-whisper itself downloads for "small"
    "Systran/faster-whisper-small",
    # as public code pins it, looked up in stored copies
    "536b0662742c02347bc0e980a01041f333bce120",
    ("config.json", "model.bin", "tokenizer.json", "vocabulary.txt"),
)
"""The Whisper model that ``longtake models pull whisper`` downloads, 0.5 GB."""
_MEAN, _STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet

CARDS: dict[str, EncoderCard] = {
    card.name: card
    for card in (
        EncoderCard(
            # preprocessing: openai/clip-vit-base-patch32, preprocessor_config.json
            # dimension, maximum length: the same, config.json (projection_dim,
            # max_position_embeddings)
            # end token: openai/CLIP, clip/simple_tokenizer.py (<|endoftext|> is the last of 49,408)
            # outputs: transformers.js, CLIPVisionModelWithProjection and
            # CLIPTextModelWithProjection
            # revision: public code that pins it, looked up in stored copies
            # logit scale: openai/CLIP, README.md (“cosine similarities … times 100”)
            # license: MIT (openai/CLIP)
            name="clip-vit-base-patch32",
            repo="Xenova/clip-vit-base-patch32",
            revision="d15189d7028b43f1d3e65039190477f6af591c2a",
            dim=512,
            pixels=Preprocessing(
                side=224,
                resize=224,
                mean=(0.48145466, 0.4578275, 0.40821073),
                std=(0.26862954, 0.26130258, 0.27577711),
                filter="bicubic",
            ),
            image=Tower("onnx/vision_model.onnx", ("image_embeds",)),
            text=TextTower("onnx/text_model.onnx", ("text_embeds",), length=77, end=49407),
            logit_scale=100.0,
        ),
        EncoderCard(
            # preprocessing: google/siglip2-base-patch16-224, preprocessor_config.json (resample 2,
            # 0.5)
            # texts: google-research/big_vision issue 157 (length 64); huggingface/transformers pull
            # 43101 (lower case, padding to 64)
            # revision, token ids, outputs, logit scale exp(4.724453449249268): the model page of
            # SortaPhotos/siglip2-base-patch16-224-onnx, a mirror of them
            # license: Apache-2.0
            name="siglip2-base-patch16-224",
            repo="onnx-community/siglip2-base-patch16-224-ONNX",
            revision="ba1f3b0843f24bc5417d38e19c37b287d719b2f4",
            dim=768,
            pixels=Preprocessing(
                side=224,
                resize=224,
                mean=(0.5,) * 3,
                std=(0.5,) * 3,
                filter="bilinear",
                fit="squash",
            ),
            image=Tower("onnx/vision_model.onnx", ("pooler_output", "image_embeds")),
            text=TextTower(
                "onnx/text_model.onnx",
                ("pooler_output", "text_embeds"),
                length=64,
                end=1,
                pad=0,
                lowercase=True,
            ),
            logit_scale=math.exp(4.724453449249268),
        ),
        EncoderCard(
            # preprocessing: Xenova/dinov2-base, preprocessor_config.json (256, crop 224, resample
            # 3), and models derived from dinov2-small (pszemraj/dinov2-small-film-shot-classifier)
            # revision: public code that pins it, looked up in stored copies
            # dimension: facebookresearch/dinov2, models/vision_transformer.py (vit_small, embed_dim
            # 384)
            # license: Apache-2.0
            name="dinov2-small",
            repo="Xenova/dinov2-small",
            revision="c2bb04a51fab207c420665f1946016107bffc701",
            dim=384,
            pixels=Preprocessing(side=224, resize=256, filter="bicubic", mean=_MEAN, std=_STD),
            image=Tower("onnx/model.onnx", ("last_hidden_state",), pool="first"),
        ),
    )
}


def card(name: str) -> EncoderCard:
    """The card with the given name; the error for an unknown one suggests the nearest."""
    try:
        return CARDS[name]
    except KeyError:
        raise unknown("encoder", name, CARDS) from None


_SLICE = 1 << 20
"""Bytes hashed at the head, middle and tail of a file."""


class _TowerNetwork:
    """One tower of a card, ready to run."""

    def __init__(
        self, card: EncoderCard, tower: Tower, folder: Path, compute: Compute, *, takes: str
    ) -> None:
        self._card, self._tower = card, tower
        file = locate(card, folder, tower.file)
        # by content, not by path: another export of the same model gives other vectors
        self.key = identity(file)
        self.session = OnnxSession(file, compute)
        self._output = next((name for name in tower.outputs if name in self.session.outputs), "")
        if not self._output:
            actual, expected = ", ".join(self.session.outputs), " or ".join(tower.outputs)
            raise self._refused(f"returns {actual}, not {expected}")
        if takes not in self.session.inputs:
            raise self._refused(f"takes {', '.join(self.session.inputs)}, not {takes}")

    def vectors(self, feeds: Iterable[dict[str, Any]]) -> Array:
        """One unit row per item of the batches."""
        parts = []
        for feed in feeds:
            (values,) = self.session.run((self._output,), feed)
            rows = values[:, 0] if self._tower.pool == "first" else values
            if rows.ndim != 2 or rows.shape[1] != self._card.dim:
                shape = "×".join(map(str, values.shape))
                raise self._refused(
                    f"returns {shape} values, not vectors of length {self._card.dim}"
                )
            parts.append(rows)
        return unit(stack(parts, self._card.dim))

    def _refused(self, problem: str) -> ModelError:
        return ModelError(self._card.name, "refused", f"{self._tower.file} {problem}")


class CardImageEncoder:
    """A vision model described by a card."""

    def __init__(self, card: EncoderCard, folder: Path, *, compute: Compute | None = None) -> None:
        self.card = card
        self.name = card.name
        self.dim = card.dim
        self._compute = compute or Compute()
        self._vision = _TowerNetwork(card, card.image, folder, self._compute, takes="pixel_values")
        self.key = f"{card.name}:{self._vision.key}:{card.pixels.key}"

    @property
    def size(self) -> int:
        """Shorter side in pixels that frames need."""
        return self.card.pixels.size

    def images(self, frames: Sequence[Frame]) -> Array:
        """One unit row per frame."""
        prepare = self.card.pixels.prepare
        some = batches(frames, self._vision.session.batch)
        return self._vision.vectors({"pixel_values": prepare(each)} for each in some)


class CardImageTextEncoder(CardImageEncoder):
    """A vision model and its text model, in one space."""

    def __init__(self, card: EncoderCard, folder: Path, *, compute: Compute | None = None) -> None:
        super().__init__(card, folder, compute=compute)
        assert card.text is not None
        self._tower = card.text
        self.logit_scale = card.logit_scale
        self.thresholds: Mapping[str, float] = {}
        tokenizer = locate(card, folder, card.text.tokenizer)
        self._text = _TowerNetwork(card, card.text, folder, self._compute, takes="input_ids")
        self._tokenizer = _tokenizer(card, tokenizer)
        self.key = f"{self.key}:{self._text.key}:{identity(tokenizer)}"

    def texts(self, texts: Sequence[str]) -> Array:
        """One unit row per text."""
        return self._text.vectors(map(self._feed, batches(texts, self._text.session.batch)))

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
            feed = token_feed(rows, filler=tower.end)
        else:
            # models trained on fixed-length texts expect the padding to be there
            feed = token_feed(rows, filler=tower.pad, width=tower.length)
        # exports differ in which of these they take
        return {name: feed[name] for name in self._text.session.inputs if name in feed}


def open_card(
    card: EncoderCard, folder: Path, *, compute: Compute | None = None
) -> CardImageEncoder | CardImageTextEncoder:
    """The encoder that a card describes, with its text model if it has one."""
    kind = CardImageTextEncoder if card.text else CardImageEncoder
    return kind(card, folder, compute=compute)


def open_named_card(setup: EncoderSetup) -> CardImageEncoder | CardImageTextEncoder:
    """The encoder whose card has the given name."""
    return open_card(card(setup.name), setup.folder, compute=setup.compute)


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
