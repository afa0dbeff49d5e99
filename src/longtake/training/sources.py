"""Training data from a list of captioned stretches of films: what is kept, what is dropped, vectors of the rest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from longtake.config import Settings, cache_folder
from longtake.footage.film import Film
from longtake.opening import open_store
from longtake.perception.cardencoder import CardImageTextEncoder
from longtake.perception.minilm import LONGEST, bert_tokenizer
from longtake.perception.protocols import ImageTextEncoder
from longtake.perception.senses import Senses
from longtake.training import pairs as stored
from longtake.training.captions import Count, Dropped, Rules, keep, read_list
from longtake.training.pairs import Pairs, embed

PAIRS = "pairs.npz"


def prepare(
    data: Path, videos: Path, settings: Settings, rules: Rules, frames: int, folder: Path,
    advance: Callable[[float], None] = lambda share: None,  # noqa: ARG005
) -> tuple[Pairs, list[str], ImageTextEncoder]:  # fmt: skip
    """The pairs of a list, what was dropped, and the encoder; kept in ``folder`` for as long as nothing changes."""
    senses = Senses(settings.perception, cache_folder(settings))
    identity = _identity(data, senses.encoder, rules, frames)
    kept, note = folder / PAIRS, folder / f"{PAIRS}.json"
    if kept.is_file() and note.is_file():
        known = json.loads(note.read_text(encoding="utf-8"))
        if known["identity"] == identity:
            return stored.load(kept), known["dropped"], senses.encoder
    count, most = tokens_of(senses.encoder)
    clips, dropped = keep(read_list(data), rules, count, most)
    store = open_store(settings)
    found = embed(clips, dropped, lambda video: Film(videos / video, store, settings, senses=senses), frames, advance)
    folder.mkdir(parents=True, exist_ok=True)
    found.save(kept)
    said = _said(found, dropped)
    note.write_text(json.dumps({"identity": identity, "dropped": said}, indent=2), encoding="utf-8")
    return found, said, senses.encoder


def tokens_of(encoder: ImageTextEncoder) -> tuple[Count, int]:
    """How the encoder's text side counts tokens, and how many it takes in."""
    if isinstance(encoder, CardImageTextEncoder) and encoder.card.text is not None:
        return encoder.count, encoder.card.text.length
    tokenizer = bert_tokenizer()
    tokenizer.no_truncation()
    return lambda text: len(tokenizer.encode(text).ids), LONGEST


def _said(found: Pairs, dropped: Dropped) -> list[str]:
    films = len(set(found.videos.tolist()))
    return [f"kept {len(found)} clips of {films} films", *dropped.lines()]


def _identity(data: Path, encoder: ImageTextEncoder, rules: Rules, frames: int) -> str:
    content = data.read_bytes() if data.is_file() else b""
    facts = [encoder.key, asdict(rules), frames, hashlib.blake2b(content).hexdigest()]
    return hashlib.blake2b(json.dumps(facts).encode(), digest_size=16).hexdigest()
