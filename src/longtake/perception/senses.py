"""The models that see, read and hear, each loaded when first needed and then kept."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from longtake.config import PerceptionSettings
from longtake.errors import ConfigError
from longtake.perception.asr import MoonshineListener
from longtake.perception.catalogue import image_text_encoder
from longtake.perception.conse import ConSE
from longtake.perception.efficientnet import EfficientNetLite2
from longtake.perception.minilm import MiniLM
from longtake.perception.ocr import RapidReader
from longtake.perception.protocols import ImageTextEncoder, Listener, Reader
from longtake.perception.retrieval import RetrievalHead
from longtake.perception.runtime import Compute
from longtake.perception.whisper import WhisperListener


class Senses:
    """What the settings say, made real on demand; shared by every film of a session."""

    def __init__(self, settings: PerceptionSettings, cache: Path) -> None:
        self.settings = settings
        self._cache = cache
        self._compute = Compute(threads=settings.threads, batch=settings.batch)

    @cached_property
    def looker(self) -> EfficientNetLite2:
        """Features and tags of pictures."""
        return EfficientNetLite2(self._cache, compute=self._compute)

    @cached_property
    def sentences(self) -> MiniLM:
        """Texts by meaning."""
        return MiniLM(compute=self._compute)

    @cached_property
    def encoder(self) -> ImageTextEncoder:
        """Pictures and texts in one space."""
        name = self.settings.encoder
        if name == ConSE.name:
            return ConSE(self._cache, images=self.looker, texts=self.sentences)
        folder = Path(self.settings.encoder_folder) if self.settings.encoder_folder else None
        return image_text_encoder(name, self._cache, folder=folder, compute=self._compute)

    @cached_property
    def retriever(self) -> RetrievalHead | None:
        """Who scores clips against texts, where a trained head is named."""
        if not self.settings.retriever:
            return None
        return RetrievalHead(Path(self.settings.retriever), self.encoder, compute=self._compute)

    @cached_property
    def reader(self) -> Reader | None:
        """Who reads on-screen text, if anybody."""
        return RapidReader(compute=self._compute) if self.settings.reader else None

    @cached_property
    def listener(self) -> Listener | None:
        """Who hears speech, if anybody."""
        if self.settings.listener == "none":
            return None
        if self.settings.listener == "moonshine":
            return MoonshineListener(compute=self._compute)
        if not self.settings.whisper_model:
            raise ConfigError(
                "perception.listener is whisper; name its model in perception.whisper_model",
                key="perception.whisper_model",
            )
        return WhisperListener(self.settings.whisper_model)
