"""The models that see, read and hear, each loaded on first use and then kept."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from longtake.config import PerceptionSettings
from longtake.errors import ModelError, unknown
from longtake.perception.cards import WHISPER, card
from longtake.perception.efficientnet import EfficientNetLite2
from longtake.perception.encoders import (
    BuiltIns,
    card_folder,
    open_encoder,
    open_image_text_encoder,
)
from longtake.perception.ocr import RapidReader
from longtake.perception.protocols import (
    ImageEncoder,
    ImageTextEncoder,
    Reranker,
    SpeechRecognizer,
    TextReader,
)
from longtake.perception.reranker import BUILT_IN, RERANKERS, open_built_in, open_folder
from longtake.perception.retriever import RetrievalHead
from longtake.perception.runtime import Compute, return_memory
from longtake.perception.speech import MoonshineListener, VoiceEncoder, open_whisper


class PerceptionModels(BuiltIns):
    """The models that the settings name; shared by every film of a session."""

    def __init__(
        self, settings: PerceptionSettings, cache: Path, *, images: ImageTextEncoder | None = None
    ) -> None:
        compute = Compute(threads=settings.threads, batch=settings.batch, compiled=settings.compile)
        super().__init__(cache, compute)
        self.settings = settings
        self._images = images

    @cached_property
    def images(self) -> ImageTextEncoder:
        """Pictures and texts in one space, for search (``perception.images``)."""
        if self._images is not None:
            return self._images
        folder = self.settings.images_folder
        return open_image_text_encoder(self.settings.images, self, folder=folder)

    @cached_property
    def scene_encoder(self) -> ImageEncoder:
        """How pictures look, for finding where that changes (``perception.scene_encoder``)."""
        folder = self.settings.scene_encoder_folder
        return open_encoder(self.settings.scene_encoder, self, folder=folder)

    @cached_property
    def retriever(self) -> RetrievalHead | None:
        """The trained head that scores clips against texts, if one is configured."""
        if not self.settings.retriever:
            return None
        return RetrievalHead(Path(self.settings.retriever), self.images)

    @cached_property
    def reranker(self) -> Reranker | None:
        """What reads questions and texts together; ``None`` if off or not downloaded."""
        name, folder = self.settings.reranker, self.settings.reranker_folder
        if name == "none":
            return None
        if folder or name != BUILT_IN:
            if not folder and name not in RERANKERS:
                raise unknown("reranker", name, [BUILT_IN, *RERANKERS, "none"])
            place = Path(folder).expanduser() if folder else card_folder(name, self.cache)
            return open_folder(name, place, self.compute)
        return open_built_in(self.cache / "models", self.compute)

    @cached_property
    def reader(self) -> TextReader | None:
        """The reader of on-screen text, unless switched off."""
        return RapidReader(compute=self.compute) if self.settings.reader else None

    @cached_property
    def listener(self) -> SpeechRecognizer | None:
        """The speech recogniser, unless switched off."""
        if self.settings.listener == "none":
            return None
        if self.settings.listener == "moonshine":
            return MoonshineListener(compute=self.compute)
        pulled = card_folder(WHISPER.name, self.cache)
        if not self.settings.whisper_model and not (pulled / "model.bin").is_file():
            detail = "not downloaded yet (0.5 GB): longtake models pull whisper"
            raise ModelError(WHISPER.name, "unavailable", detail)
        return open_whisper(self.settings.whisper_model or str(pulled))

    def free(self, model: object) -> None:
        """Free the memory of a built-in model; it is loaded again on use."""
        if isinstance(model, EfficientNetLite2 | MoonshineListener | RapidReader):
            model.unload()
            return_memory()

    @cached_property
    def voices(self) -> VoiceEncoder:
        """How voices sound."""
        return VoiceEncoder()


def is_downloaded(name: str, cache: Path) -> bool:
    """Whether ``longtake models pull`` has put the files of a card, or Whisper's, in the cache."""
    files = WHISPER.files if name == WHISPER.name else card(name).files
    return all((card_folder(name, cache) / file).is_file() for file in files)
