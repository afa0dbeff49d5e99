"""Speech recognition by faster-whisper (extra ``whisper``): many languages, detected by itself.

Its model must be on disk, or a hub reachable. On a GPU, stretches of speech are recognised in
batches.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from longtake.errors import MissingExtra, ModelError
from longtake.perception.protocols import Heard
from longtake.perception.runtime import Compute
from longtake.stopping import check_stop
from longtake.types import Line, Segment

if TYPE_CHECKING:
    from longtake.perception.protocols import Samples


BATCH = 16
"""Stretches of up to 30 seconds that a GPU recognises at once."""


class WhisperListener:
    """Any CTranslate2 Whisper model, by size (``base``) or folder."""

    def __init__(
        self,
        model: str | Path = "base",
        *,
        cache: Path | None = None,
        download: bool = False,
        compute: Compute | None = None,
    ) -> None:
        try:
            from faster_whisper import BatchedInferencePipeline, WhisperModel
        except ImportError as error:
            raise MissingExtra("whisper", "speech recognition by Whisper") from error
        threads = (compute or Compute()).threads
        try:
            engine = WhisperModel(
                str(model),
                cpu_threads=threads,
                download_root=str(cache) if cache else None,
                local_files_only=not download,
            )
        # errors of the hub and of the runtime share no base class
        except Exception as error:
            detail = f"cannot be loaded ({error}); give a folder, or allow the download"
            raise ModelError(f"whisper {model}", "unavailable", detail) from error
        key = f"faster-whisper:{Path(model).name}"
        if engine.model.device == "cuda":
            self._set(engine, f"{key}:batched", BatchedInferencePipeline(engine))
        else:
            self._set(engine, key)

    @classmethod
    def around(cls, engine: Any, key: str, batched: Any = None) -> WhisperListener:
        """Wrap an engine that is already loaded, and the pipeline that gives it batches."""
        listener = cls.__new__(cls)
        listener._set(engine, key, batched)
        return listener

    def _set(self, engine: Any, key: str, batched: Any = None) -> None:
        self._engine, self._batched = engine, batched
        self._lock = threading.Lock()
        self.key = key
        self.languages: tuple[str, ...] = tuple(engine.supported_languages)

    def listen(self, samples: Samples, start: float = 0.0) -> Heard:
        """Lines in the spoken language, with film times."""
        samples = np.ascontiguousarray(samples, np.float32)
        if len(samples) == 0:
            return Heard()
        lines = []
        with self._lock:  # segments are decoded while they are iterated
            parts, info = self._transcribed(samples)
            for part in parts:
                check_stop()
                text = part.text.strip()
                if text:
                    end = max(part.end, part.start)
                    lines.append(Line(Segment(start + part.start, start + end), text))
        return Heard(tuple(lines), (), info.language if lines else None)

    def _transcribed(self, samples: Samples) -> Any:
        """Lines, decoded while they are iterated, and what is known about the sound."""
        if self._batched is None:
            return self._engine.transcribe(samples, vad_filter=True)
        # without time stamps a line would be as long as its stretch, up to half a minute
        return self._batched.transcribe(
            samples, vad_filter=True, batch_size=BATCH, without_timestamps=False
        )
