"""Runs ONNX models: sessions, batches, and networks without subnormal weights.

Training with weight decay leaves weights that are not zero but below 1.2e-38, the smallest normal
float. They change no result, yet a processor computes with them a hundred times slower: 255,000
such weights in the text detector of RapidOCR took two thirds of its time. ONNX Runtime can make the
processor round them itself, but only for a whole thread, numpy included.
"""

from __future__ import annotations

import ctypes
import hashlib
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np

from longtake._util import write_atomically
from longtake._util.process_pool import usable_cores
from longtake.errors import ModelError
from longtake.perception.protocols import Array

Span: TypeAlias = tuple[int, int]

_GRAPH, _INITIALIZER, _RAW_DATA = 7, 5, 9  # ModelProto, GraphProto, TensorProto in onnx.proto
_DATA_TYPE, _FLOAT = 2, 1
_VARINT, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5  # wire types of protocol buffers


def without_subnormals(model: bytes) -> bytearray:
    """The same ONNX file, its subnormal float weights replaced by zero."""
    rounded = bytearray(model)
    smallest = np.finfo(np.float32).tiny
    for _, graph in _fields(model, (0, len(model)), _GRAPH):
        for _, tensor in _fields(model, graph, _INITIALIZER):
            if [kind for kind, _ in _fields(model, tensor, _DATA_TYPE)] != [_FLOAT]:
                continue
            for _, (begin, end) in _fields(model, tensor, _RAW_DATA):
                weights = np.frombuffer(rounded, "<f4", (end - begin) // 4, begin)
                weights[np.abs(weights) < smallest] = 0
    return rounded


def _fields(data: bytes, within: Span, wanted: int) -> Iterator[tuple[int, Span]]:
    """The fields of a message with the wanted number: the value of a number, the span of bytes."""
    place, end = within
    while place < end:
        tag, place = _varint(data, place)
        kind, value, begin = tag & 7, 0, place
        if kind == _VARINT:
            value, place = _varint(data, place)
        elif kind == _BYTES:
            length, begin = _varint(data, place)
            place = begin + length
        elif kind in (_FOUR_BYTES, _EIGHT_BYTES):
            place += 4 if kind == _FOUR_BYTES else 8
        else:
            raise ValueError(f"not an ONNX file: wire type {kind} at byte {place}")
        if tag >> 3 == wanted:
            yield value, (begin, place)


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """A number in groups of seven bits, and the place after it."""
    value, shift = 0, 0
    while data[place] & 0x80:
        value |= (data[place] & 0x7F) << shift
        place, shift = place + 1, shift + 7
    return value | data[place] << shift, place + 1


T = TypeVar("T")


@dataclass(frozen=True)
class Compute:
    """How models are run."""

    threads: int = 0
    """Threads per model; 0: one per usable core, at most 8."""
    batch: int = 0
    """Pictures per run; 0: 4 on a CPU, because larger batches overflow its caches, 32 on a GPU."""
    compiled: bool = False
    """Whether PyTorch compiles its models first."""


class OnnxSession:
    """An ONNX model, loaded on first use; :meth:`run` may be called from several threads.

    Loading is lazy because searching an indexed film never runs most of its models.
    """

    def __init__(self, model: Path, compute: Compute, *, optimised: bool = True) -> None:
        self._model, self._compute, self._optimised = model, compute, optimised
        self._loading = threading.Lock()
        self._loaded: Any = None

    @property
    def _session(self) -> Any:
        # two threads must not load the same model twice
        with self._loading:
            if self._loaded is None:
                self._loaded = load_network(self._model, self._compute, optimised=self._optimised)
            return self._loaded

    def unload(self) -> None:
        """Free the memory; the model is loaded again if it is used again."""
        with self._loading:
            self._loaded = None

    @cached_property
    def inputs(self) -> dict[str, Any]:
        """Shapes of the inputs by name."""
        return {node.name: node.shape for node in self._session.get_inputs()}

    @cached_property
    def outputs(self) -> dict[str, Any]:
        """Shapes of the outputs by name."""
        return {node.name: node.shape for node in self._session.get_outputs()}

    @cached_property
    def batch(self) -> int:
        """Pictures per run, as configured or as suits the provider."""
        on_gpu = "CUDAExecutionProvider" in self._session.get_providers()
        return self._compute.batch or (32 if on_gpu else 4)

    def run(self, outputs: Sequence[str], feed: dict[str, Any]) -> list[Any]:
        """Run one batch and return the named outputs."""
        return list(self._session.run(list(outputs), feed))


def load_network(
    model: Path,
    compute: Compute,
    *,
    optimised: bool = True,
    patterns: bool = True,
    rounded: bool = False,
) -> Any:
    """An ONNX Runtime session.

    Without ``patterns`` no plan of the memory is kept for each size of the input: where sizes
    differ all the time, plans only make it grow. ``rounded`` replaces subnormal weights by zero.
    """
    import onnxruntime

    # the GPU build warns on stderr about every node it leaves to the CPU; errors are raised anyway
    onnxruntime.set_default_logger_severity(3)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = compute.threads or min(usable_cores(), 8)
    options.log_severity_level = 3
    options.enable_mem_pattern = patterns
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    # a decoder works beside the encoder, and spinning threads would take its cores
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    preferred = ("CUDAExecutionProvider", "CPUExecutionProvider")
    available = onnxruntime.get_available_providers()
    providers = [name for name in preferred if name in available]
    try:
        source = bytes(without_subnormals(model.read_bytes())) if rounded else str(model)
        return onnxruntime.InferenceSession(source, options, providers=providers)
    # ONNX Runtime's exceptions share no base class of their own
    except Exception as error:
        detail = f"not a usable ONNX model ({first_line(error)})"
        raise ModelError(str(model), "refused", detail) from error


def return_memory() -> None:
    """Give memory that was freed back to the system, where the C library would keep it (glibc)."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def first_line(error: Exception) -> str:
    """The first line of an error, or the name of its class."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Consecutive pieces of at most ``size`` items."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def stack(parts: Iterable[Any], width: int) -> Array:
    """The rows of all parts as one float32 array, of the right width even if there are none."""
    empty = np.zeros((0, width), np.float32)
    return np.concatenate([empty, *parts]).astype(np.float32, copy=False)


def token_feed(rows: Sequence[Sequence[int]], *, filler: int = 0, width: int = 0) -> dict[str, Any]:
    """Token ids of several texts, padded to ``width`` or to the longest, with their masks."""
    ids = np.full((len(rows), width or max(map(len, rows))), filler, np.int64)
    mask = np.zeros_like(ids)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = row
        mask[number, : len(row)] = 1
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}


def unit(rows: Any) -> Array:
    """Rows scaled to unit length; a row of zeros stays zero rather than becoming NaN."""
    rows = np.asarray(rows, np.float32)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(norms > 0, norms, 1), np.float32)


def sha256(path: Path) -> str:
    """Hash of a file's content, in hexadecimal."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        detail = f"cannot be read ({error.strerror or error})"
        raise ModelError(str(path), "unavailable", detail) from error


def checked(path: Path, recorded: str) -> Path:
    """The file, if it has the recorded hash; nothing in it is read before that."""
    if sha256(path) != recorded:
        detail = "is not the file that this version expects; reinstall its package"
        raise ModelError(str(path), "refused", detail)
    return path


def write_once(path: Path, content: Callable[[], bytes]) -> Path:
    """Write ``path`` unless it exists. Processes may race; readers never see a partial file."""
    if path.is_file():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, content())
    return path
