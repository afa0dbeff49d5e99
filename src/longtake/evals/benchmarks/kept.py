"""Vectors of captions, kept on disk: ten methods on one benchmark encode its captions once."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from longtake.events import note_once
from longtake.index.store import write_atomically
from longtake.perception.minilm import MiniLM

FOLDER = "captions"
"""Where they are kept in the cache."""
MANY = 16
"""Texts from which on vectors are kept: the captions of a film, not a question with its options."""


class KeptSentences:
    """A sentence encoder that remembers long lists of texts."""

    def __init__(self, encoder: MiniLM, folder: Path) -> None:
        self.name = encoder.name
        self._encoder, self._folder = encoder, folder

    def texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit row per text."""
        if len(texts) < MANY:
            return self._encoder.texts(texts)
        file = self._folder / f"{self._digest(texts)}.npy"
        kept = _load(file, len(texts))
        if kept is not None:
            return kept
        rows = self._encoder.texts(texts)
        self._keep(file, rows)
        return rows

    def _digest(self, texts: Sequence[str]) -> str:
        # the whole list: a quantised encoder's rows depend on what shares their batch
        digest = hashlib.sha256(self._encoder.key.encode())
        for text in texts:
            digest.update(b"\0" + text.encode(errors="surrogatepass"))
        return digest.hexdigest()

    def _keep(self, file: Path, rows: NDArray[np.float32]) -> None:
        data = io.BytesIO()
        np.save(data, rows, allow_pickle=False)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            write_atomically(file, data.getvalue())
        except OSError as error:
            note_once("not_kept", file=str(file), why=str(error))


def _load(file: Path, count: int) -> NDArray[np.float32] | None:
    try:
        rows = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None  # absent, or damaged: made again
    return rows if len(rows) == count else None
