"""Prepares training data from a list of captioned clips and caches their vectors."""

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
from longtake.training.captions import Count, Dropped, Rules, keep, read_list
from longtake.training.pairs import Pairs, embed, load

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
    """The pairs of a list, a report of what was dropped, and the encoder.

    Pairs are cached in ``folder`` until the list, the films, the encoder or the rules change.
    """
    senses = Senses(settings.perception, cache_folder(settings))
    listed = read_list(data)
    identity = _identity(data, _files(listed, videos), senses.images, rules, frames)
    file, note = folder / PAIRS, folder / f"{PAIRS}.json"
    cached = _cached(file, note, identity)
    if cached is not None:
        return *cached, senses.images
    count, most = tokens_of(senses.images)
    clips, dropped = keep(listed, rules, count, most)
    store = open_store(settings)
    try:
        pairs = embed(
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
    pairs.save(file)
    report = _report(pairs, dropped)
    record = {"identity": identity, "dropped": report}
    note.write_text(json.dumps(record, indent=2), encoding="utf-8")
    return pairs, report, senses.images


def _cached(file: Path, note: Path, identity: str) -> tuple[Pairs, list[str]] | None:
    """The cached pairs with this identity; ``None``, so they are rebuilt, if unreadable."""
    try:
        record = json.loads(note.read_text(encoding="utf-8"))
        if record["identity"] != identity:
            return None
        return load(file), record["dropped"]
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile):
        return None


def tokens_of(encoder: ImageTextEncoder) -> tuple[Count, int]:
    """How the encoder's text side counts tokens, and how many it accepts."""
    if isinstance(encoder, CardImageTextEncoder) and encoder.card.text is not None:
        return encoder.count, encoder.card.text.length
    tokenizer = bert_tokenizer()
    tokenizer.no_truncation()
    return lambda text: len(tokenizer.encode(text).ids), LONGEST


def _report(pairs: Pairs, dropped: Dropped) -> list[str]:
    films = len(set(pairs.videos.tolist()))
    return [f"kept {len(pairs)} clips of {films} films", *dropped.lines()]


def _files(listed: Sequence[Mapping[str, Any]], videos: Path) -> list[Any]:
    """The films that the list names, with size and modification time to detect replacements."""
    films = []
    for name in sorted({str(row.get("video")) for row in listed}):
        with contextlib.suppress(OSError, ValueError):
            status = (videos / name).stat()
            films.append([name, status.st_size, status.st_mtime_ns])
    return [str(videos.resolve()), films]


def _identity(
    data: Path, films: list[Any], encoder: ImageTextEncoder, rules: Rules, frames: int
) -> str:
    content = hashlib.blake2b(data.read_bytes()).hexdigest()
    facts = [encoder.key, asdict(rules), frames, content, films]
    return hashlib.blake2b(json.dumps(facts).encode(), digest_size=16).hexdigest()
