"""One way to run an ONNX file: sessions, batches, unit rows, files that appear whole or not at all."""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from longtake.errors import ConfigError, ModelError

if TYPE_CHECKING:
    from longtake.perception.protocols import Array

T = TypeVar("T")


@dataclass(frozen=True)
class Compute:
    """How models are run here."""

    threads: int = 0
    """Threads of one model; 0: one per core, at most 8."""
    batch: int = 0
    """Pictures in one run of a model; 0: 4 on a CPU, whose caches a larger one overflows, 32 on a GPU."""
    providers: tuple[str, ...] = ()
    """ONNX Runtime providers in order of preference; empty: CUDA where it is installed, then the CPU."""

    def __post_init__(self) -> None:
        if self.threads < 0 or self.batch < 0:
            raise ConfigError(
                f"threads and batch must be 0 or more, not {self.threads}, {self.batch}"
            )


class Session:
    """An ONNX model, loaded when first used; :meth:`run` may be called from several threads.

    Late, because a film that is already indexed is searched without ever running most of its
    models.
    """

    def __init__(self, model: Path, compute: Compute) -> None:
        self._model, self._compute = model, compute
        self._loading = threading.Lock()
        self._loaded: Any = None

    @property
    def _session(self) -> Any:
        with self._loading:
            if self._loaded is None:
                self._loaded = _load(self._model, self._compute)
            return self._loaded

    @cached_property
    def inputs(self) -> dict[str, Any]:
        """Shapes of what it takes, by name."""
        return {node.name: node.shape for node in self._session.get_inputs()}

    @cached_property
    def outputs(self) -> dict[str, Any]:
        """Shapes of what it gives, by name."""
        return {node.name: node.shape for node in self._session.get_outputs()}

    @cached_property
    def providers(self) -> list[str]:
        """What runs it, in order of preference."""
        return list(self._session.get_providers())

    @cached_property
    def batch(self) -> int:
        """Pictures in one run, where the settings leave it open: a GPU wants many, a CPU's cache few."""
        return self._compute.batch or (32 if "CUDAExecutionProvider" in self.providers else 4)

    def run(self, outputs: Sequence[str], feed: dict[str, Any]) -> list[Any]:
        """The named outputs for one batch."""
        return list(self._session.run(list(outputs), feed))


def _load(model: Path, compute: Compute) -> Any:
    import onnxruntime

    # the GPU build warns on stderr about every node it leaves to the CPU; errors are raised anyway
    onnxruntime.set_default_logger_severity(3)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = compute.threads or min(os.cpu_count() or 1, 8)
    options.log_severity_level = 3
    # waiting threads sleep: a decoder works beside the encoder, and spinning would take its cores
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    providers = _providers(compute.providers, onnxruntime.get_available_providers())
    try:
        return onnxruntime.InferenceSession(str(model), options, providers=providers)
    # its exceptions share no base class of their own
    except Exception as error:
        raise ModelError(
            str(model), "refused", f"not a usable ONNX model ({_first_line(error)})"
        ) from error


def _providers(wanted: tuple[str, ...], available: list[str]) -> list[str]:
    if not wanted:
        return [
            name for name in ("CUDAExecutionProvider", "CPUExecutionProvider") if name in available
        ]
    missing = [name for name in wanted if name not in available]
    if missing:
        raise ConfigError(
            f"ONNX Runtime has no {missing[0]} here; it has {', '.join(available)}", key="providers"
        )
    return list(wanted)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Consecutive pieces of at most ``size`` items."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def stack(parts: Iterable[Any], width: int) -> Array:
    """Rows of all parts as one float32 array, of the right width even when there are none."""
    rows = list(parts)
    return (
        np.concatenate(rows).astype(np.float32, copy=False)
        if rows
        else np.zeros((0, width), np.float32)
    )


def unit(rows: Any) -> Array:
    """Rows scaled to length one; a row of zeros stays zeros rather than becoming NaN."""
    rows = np.asarray(rows, np.float32)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(norms > 0, norms, 1), np.float32)


def sha256(path: Path) -> str:
    """Hash of a file's content, in hexadecimal."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ModelError(
            str(path), "unavailable", f"cannot be read ({error.strerror or error})"
        ) from error


def write_once(path: Path, content: Callable[[], bytes]) -> Path:
    """``path``, written if it is not there yet; two processes may race, a reader never sees half a file."""
    if path.is_file():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content())
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return path
