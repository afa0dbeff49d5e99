"""Training data from a list of captioned stretches of films: what is kept, what is dropped, vectors of the rest."""

from __future__ import annotations

import contextlib
import hashlib
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from longtake.config import Settings, cache_folder
from longtake.errors import ConfigError
from longtake.index.film import Film
from longtake.perception.cardencoder import CardImageTextEncoder
from longtake.perception.minilm import LONGEST, bert_tokenizer
from longtake.perception.protocols import ImageTextEncoder
from longtake.perception.senses import Senses
from longtake.session.films import open_store
from longtake.training import pairs as stored
from longtake.training.captions import Count, Dropped, Rules, keep, read_list
from longtake.training.pairs import Pairs, embed

PAIRS = "pairs.npz"


def prepare(
    data: Path,
    videos: Path,
    settings: Settings,
    rules: Rules,
    frames: int,
    folder: Path,
    advance: Callable[[float], None] = lambda share: None,  # noqa: ARG005
) -> tuple[Pairs, list[str], ImageTextEncoder]:
    """The pairs of a list, what was dropped, and the encoder; kept in ``folder`` for as long as nothing changes."""
    senses = Senses(settings.perception, cache_folder(settings))
    listed = read_list(data)
    identity = _identity(data, _files(listed, videos), senses.encoder, rules, frames)
    kept, note = folder / PAIRS, folder / f"{PAIRS}.json"
    if (known := _known(kept, note, identity)) is not None:
        return *known, senses.encoder
    count, most = tokens_of(senses.encoder)
    clips, dropped = keep(listed, rules, count, most)
    store = open_store(settings)
    try:
        found = embed(
            clips,
            dropped,
            lambda video: Film(videos / video, store, settings, senses=senses),
            frames,
            advance,
        )
    except ConfigError as error:
        why = "; ".join(dropped.lines()) or f"{data} lists none"
        raise ConfigError(f"{error} ({why})") from error
    folder.mkdir(parents=True, exist_ok=True)
    found.save(kept)
    said = _said(found, dropped)
    note.write_text(json.dumps({"identity": identity, "dropped": said}, indent=2), encoding="utf-8")
    return found, said, senses.encoder


def _known(kept: Path, note: Path, identity: str) -> tuple[Pairs, list[str]] | None:
    """The pairs that were kept under this identity; what cannot be read is made anew."""
    try:
        known = json.loads(note.read_text(encoding="utf-8"))
        return (stored.load(kept), known["dropped"]) if known["identity"] == identity else None
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile):
        return None


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


def _files(listed: Sequence[Mapping[str, Any]], videos: Path) -> list[Any]:
    """Which films the list names: where they lie, and what tells whether they were replaced."""
    films = []
    for name in sorted({str(row.get("video")) for row in listed}):
        with contextlib.suppress(OSError, ValueError):
            found = (videos / name).stat()
            films.append([name, found.st_size, found.st_mtime_ns])
    return [str(videos.resolve()), films]


def _identity(
    data: Path, films: list[Any], encoder: ImageTextEncoder, rules: Rules, frames: int
) -> str:
    facts = [
        encoder.key,
        asdict(rules),
        frames,
        hashlib.blake2b(data.read_bytes()).hexdigest(),
        films,
    ]
    return hashlib.blake2b(json.dumps(facts).encode(), digest_size=16).hexdigest()
