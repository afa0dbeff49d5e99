"""Encoders in the folder layout of Hugging Face transformers, run by PyTorch (extra ``gpu``).

``perception.images = "transformers"`` with ``perception.images_folder`` opens any model of the
shapes of CLIP, SigLIP or DINOv2. Everything is read from its folder: the network (``config.json``,
``*.safetensors``), the preparation of pictures (``preprocessor_config.json``) and the tokenizer.
On a GPU it computes in bfloat16; pictures are resized there too. Copying and resizing have one
stream and the network another, so that the pictures of one film are prepared while those of
another are encoded, and decoding on the same GPU waits for neither.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from longtake.errors import MissingExtra, ModelError
from longtake.perception.cards import identity
from longtake.perception.protocols import Array, Preprocessing
from longtake.perception.runtime import Compute, batches, first_line, stack, unit
from longtake.types import Frame

if TYPE_CHECKING:
    from longtake.perception.encoders import EncoderSetup

_FILTERS = {2: "bilinear", 3: "bicubic"}
"""Resampling filters by their numbers in Pillow, which preprocessor files use."""


class TorchImageEncoder:
    """A vision model in a folder."""

    def __init__(self, folder: Path, *, name: str, compute: Compute | None = None) -> None:
        torch = _torch()
        self.name = name
        self.pixels = preprocessing(name, folder)
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self._dtype = torch.bfloat16 if self.device == "cuda" else torch.float32
        self._model = _load(name, folder, self._dtype, self.device)
        compute = compute or Compute()
        self._batch = compute.batch or (64 if self.device == "cuda" else 4)
        self._compiled = compute.compiled
        network = _network(self._model)
        self._network = torch.compile(network) if self._compiled else network
        # one batch at a time: the network fills the GPU, and films share it
        self._turn = threading.Lock()
        self._stream = torch.cuda.Stream() if self.device == "cuda" else None
        self._preparing = torch.cuda.Stream() if self.device == "cuda" else None
        blank = torch.zeros(self._batch, 3, self.pixels.side, self.pixels.side)
        self.dim = int(self._vectors(blank).shape[1])
        weights = " ".join(map(identity, sorted(folder.glob("*.safetensors"))))
        digest = hashlib.sha256(weights.encode()).hexdigest()[:16]
        self.key = f"{name}:{digest}:{self.pixels.key}:{self._dtype}"

    @property
    def size(self) -> int:
        """Shorter side in pixels that frames need."""
        return self.pixels.size

    def images(self, frames: Sequence[Frame]) -> Array:
        """One unit row per frame."""
        parts = []
        for some in batches(frames, self._batch):
            # a compiled network is compiled again for every size of a batch
            padding = self._batch - len(some) if self._compiled else 0
            pixels = self._ready([*some, *[some[-1]] * padding])
            with self._turn, _on(self._stream):
                values = self._vectors(pixels)
            # waiting for the result is not part of the turn: the next batch is queued meanwhile
            with _on(self._stream):
                parts.append(values[: len(some)].float().cpu().numpy())
        return unit(stack(parts, self.dim))

    def _ready(self, frames: Sequence[Frame]) -> Any:
        """Prepared frames that the network's stream may use."""
        with _on(self._preparing):
            pixels = self._prepared(frames)
        if self._stream is not None:
            self._stream.wait_stream(self._preparing)
            pixels.record_stream(self._stream)
        return pixels

    def _vectors(self, pixels: Any) -> Any:
        torch = _torch()
        with torch.inference_mode():
            return self._network(pixels.to(self.device, self._dtype))

    def _prepared(self, frames: Sequence[Frame]) -> Any:
        """Frames × 3 × side × side, resized and normalised where the network runs."""
        return normalised(self._squares(frames), self.pixels)

    def _squares(self, frames: Sequence[Frame]) -> Any:
        torch = _torch()
        shapes = {frame.pixels.shape for frame in frames}
        if len(shapes) > 1:  # frames of several films
            return torch.cat([self._squares([frame]) for frame in frames])
        stacked = torch.from_numpy(np.stack([frame.pixels for frame in frames]))
        values = stacked.to(self.device).permute(0, 3, 1, 2).float()
        return resized(values, self.pixels)


class TorchImageTextEncoder(TorchImageEncoder):
    """A vision model and its text model, in one space."""

    thresholds: Mapping[str, float] = {}

    def __init__(self, folder: Path, *, name: str, compute: Compute | None = None) -> None:
        super().__init__(folder, name=name, compute=compute)
        self.folder = folder
        scale = getattr(self._model, "logit_scale", None)
        self.logit_scale = None if scale is None else float(scale.detach().exp())
        self._tokenizer = _tokenizer(name, folder)
        self.longest = int(self._tokenizer.model_max_length)

    def texts(self, texts: Sequence[str]) -> Array:
        """One unit row per text."""
        torch = _torch()
        parts = []
        for some in batches(texts, self._batch):
            with self._turn, _on(self._stream), torch.inference_mode():
                values = self.text_features(self._model, some)
                parts.append(values.float().cpu().numpy())
        return unit(stack(parts, self.dim))

    def text_features(self, model: Any, texts: Sequence[str]) -> Any:
        """Vectors of texts by a model that reads this encoder's tokens."""
        # SigLIP was trained on texts padded to their full length
        feed = self._tokenizer(
            list(texts), padding="max_length", truncation=True, return_tensors="pt"
        )
        return _features(model.get_text_features(**feed.to(model.device)))

    def count(self, text: str) -> int:
        """Number of tokens of a text, before truncation."""
        return len(self._tokenizer(text, truncation=False).input_ids)

    def squares(self, frames: Sequence[Frame]) -> NDArray[np.uint8]:
        """Frames × 3 × side × side: what :class:`TrainableEncoder` is trained on."""
        return np.asarray(self._squares(frames).byte().cpu().numpy())


class TrainableEncoder:
    """The two models of an encoder with weights that can be trained."""

    def __init__(self, encoder: TorchImageTextEncoder, device: Any) -> None:
        self.encoder = encoder
        # whole weights, since a step of 1e-7 would be lost in bfloat16
        self.model = _load(encoder.name, encoder.folder, _torch().float32, device)

    def images(self, squares: Any) -> Any:
        """One unit row per square, on the model's device."""
        values = squares.to(self.model.device).float()
        return _unit(_network(self.model)(normalised(values, self.encoder.pixels)))

    def texts(self, texts: Sequence[str]) -> Any:
        """One unit row per text."""
        return _unit(self.encoder.text_features(self.model, texts))

    def save(self, folder: Path) -> TorchImageTextEncoder:
        """Write the model beside copies of the encoder's other files, and open it."""
        weights = shutil.ignore_patterns("*.safetensors*", "*.bin*")
        shutil.copytree(self.encoder.folder, folder, ignore=weights, dirs_exist_ok=True)
        self.model.save_pretrained(folder)
        return TorchImageTextEncoder(folder, name=self.encoder.name)


def open_transformers(setup: EncoderSetup) -> TorchImageEncoder:
    """The encoder in a folder; with its text model if it has one."""
    config = _json(setup.name, setup.folder / "config.json")
    kind = TorchImageTextEncoder if "text_config" in config else TorchImageEncoder
    return kind(setup.folder, name=setup.name, compute=setup.compute)


def preprocessing(name: str, folder: Path) -> Preprocessing:
    """What ``preprocessor_config.json`` says about pictures."""
    file = folder / "preprocessor_config.json"
    config = _json(name, file)
    try:
        crop = bool(config.get("do_center_crop"))
        size = config["size"]
        resize = int(size.get("shortest_edge") or size["height"])
        side = int(config["crop_size"]["height"]) if crop else resize
        return Preprocessing(
            side=side,
            resize=resize,
            mean=tuple(map(float, config["image_mean"])),  # type: ignore[arg-type]
            std=tuple(map(float, config["image_std"])),  # type: ignore[arg-type]
            filter=_FILTERS[config["resample"]],  # type: ignore[arg-type]
            fit="crop" if crop else "squash",
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        detail = f"{file} does not say how to prepare pictures ({error!r})"
        raise ModelError(name, "refused", detail) from error


def resized(values: Any, pixels: Preprocessing) -> Any:
    """Pictures (n × 3 × height × width) as squares, cropped or squashed as the model expects."""
    from torch.nn import functional

    height, width = values.shape[-2:]
    target = (pixels.side, pixels.side)
    if pixels.fit == "crop":
        scale = pixels.resize / min(width, height)
        target = (round(height * scale), round(width * scale))
    scaled = functional.interpolate(values, target, mode=pixels.filter, antialias=True)
    top, left = (target[0] - pixels.side) // 2, (target[1] - pixels.side) // 2
    square = scaled[..., top : top + pixels.side, left : left + pixels.side]
    # as Pillow does: whole numbers, within their range
    return square.round().clamp(0, 255)


def normalised(squares: Any, pixels: Preprocessing) -> Any:
    """Pictures as the network takes them, on the device where they are."""
    torch = _torch()
    mean = torch.tensor(pixels.mean, device=squares.device)[:, None, None]
    std = torch.tensor(pixels.std, device=squares.device)[:, None, None]
    return (squares / 255 - mean) / std


def _unit(rows: Any) -> Any:
    return _torch().nn.functional.normalize(rows.float(), dim=-1)


def _network(model: Any) -> Callable[[Any], Any]:
    """The model as a function from prepared pictures to vectors."""
    if hasattr(model, "get_image_features"):
        return lambda values: _features(model.get_image_features(pixel_values=values))
    return lambda values: _features(model(pixel_values=values))


def _features(output: Any) -> Any:
    # transformers 5 returns an object, 4 returned the tensor
    return getattr(output, "pooler_output", output)


def _on(stream: Any) -> AbstractContextManager[Any]:
    """Queue work on a stream, if there is one."""
    return nullcontext() if stream is None else _torch().cuda.stream(stream)


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise MissingExtra("gpu", "this encoder") from error
    return torch


def _load(name: str, folder: Path, dtype: Any, device: str) -> Any:
    try:
        from transformers import AutoModel
    except ImportError as error:
        raise MissingExtra("gpu", "this encoder") from error
    if not any(folder.glob("*.safetensors")):
        detail = f"{folder} holds no *.safetensors; copy a model folder of transformers there"
        raise ModelError(name, "unavailable", detail)
    try:
        # only tensors are read, and no code that comes with a model is run
        model = AutoModel.from_pretrained(
            folder,
            local_files_only=True,
            use_safetensors=True,
            trust_remote_code=False,
            dtype=dtype,
        )
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        detail = f"{folder} cannot be loaded ({first_line(error)})"
        raise ModelError(name, "refused", detail) from error
    return model.to(device).eval()


def _tokenizer(name: str, folder: Path) -> Any:
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except (OSError, ValueError, KeyError) as error:
        raise ModelError(name, "refused", f"{folder} has no usable tokenizer ({error})") from error


def _json(name: str, file: Path) -> dict[str, Any]:
    try:
        config = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(name, "unavailable", f"{file} cannot be read ({error})") from error
    if not isinstance(config, dict):
        raise ModelError(name, "refused", f"{file} is not a JSON object")
    return config
