"""Weights in files: reads PyTorch's without PyTorch, writes networks as ONNX without ``onnx``.

An ONNX file is one protocol-buffers message. Writing one needs only two kinds of field, a number
and a length-delimited byte string, which is a page of code; the ``onnx`` package would add 40 MB to
every installation. Field numbers are those of ``onnx.proto`` (ONNX IR version 8); tests check the
result with ``onnx.checker``. PyTorch's files are pickles, of which only plain tensors are read.
"""

from __future__ import annotations

import pickle
import struct
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_FLOAT = 1  # TensorProto.DataType
_AS_INT, _AS_INTS = 2, 7  # AttributeProto.AttributeType


def _varint(value: int) -> bytes:
    value &= 0xFFFFFFFFFFFFFFFF  # negative numbers are written in two's complement
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)  # wire type 0


def _bytes(field: int, value: bytes | str) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return _varint(field << 3 | 2) + _varint(len(raw)) + raw  # wire type 2


def _tensor(name: str, values: NDArray[Any]) -> bytes:
    dims = b"".join(_number(1, n) for n in values.shape)
    raw = np.ascontiguousarray(values, "<f4").tobytes()  # little-endian on every machine
    return dims + _number(2, _FLOAT) + _bytes(8, name) + _bytes(9, raw)


def _attribute(name: str, value: int | Sequence[int]) -> bytes:
    head = _bytes(1, name)
    if isinstance(value, int):
        return head + _number(3, value) + _number(20, _AS_INT)
    return head + b"".join(_number(8, item) for item in value) + _number(20, _AS_INTS)


def _value(name: str, shape: Iterable[int | str]) -> bytes:
    dims = b""
    for size in shape:
        # an axis has a fixed size, or a name if it varies
        dims += _bytes(1, _bytes(2, size) if isinstance(size, str) else _number(1, size))
    return _bytes(1, name) + _bytes(2, _bytes(1, _number(1, _FLOAT) + _bytes(2, dims)))


class Network:
    """Writes a float network node by node; every call returns the name of its output."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._nodes: list[bytes] = []
        self._weights: dict[str, bytes] = {}

    def weight(self, name: str, values: NDArray[Any]) -> str:
        """Store an array under a name that nodes can use as input."""
        self._weights[name] = _tensor(name, values)
        return name

    def node(
        self, kind: str, *inputs: str, output: str = "", **attributes: int | Sequence[int]
    ) -> str:
        """Add one operation."""
        out = output or f"{kind.lower()}_{len(self._nodes)}"
        body = b"".join(_bytes(1, name) for name in inputs) + _bytes(2, out) + _bytes(4, kind)
        body += b"".join(_bytes(5, _attribute(name, value)) for name, value in attributes.items())
        self._nodes.append(body)
        return out

    def model(
        self, inputs: Mapping[str, Sequence[int | str]], outputs: Mapping[str, Sequence[int | str]]
    ) -> bytes:
        """The complete file; axes that vary are given by name."""
        graph = b"".join(_bytes(1, node) for node in self._nodes) + _bytes(2, self._name)
        graph += b"".join(_bytes(5, tensor) for tensor in self._weights.values())
        graph += b"".join(_bytes(11, _value(name, shape)) for name, shape in inputs.items())
        graph += b"".join(_bytes(12, _value(name, shape)) for name, shape in outputs.items())
        opset = _bytes(1, "") + _number(2, 13)
        # ONNX IR version 8, opset 13: what every ONNX Runtime that we accept reads
        return _number(1, 8) + _bytes(2, "longtake") + _bytes(7, graph) + _bytes(8, opset)


class _Unpickler(pickle.Unpickler):
    """Of what a pickle may name, loads storages of numbers and tensors in them; nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ALLOWED[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"{module}.{name} is not part of a tensor") from None

    def persistent_load(self, pid: Any) -> tuple[str, str]:
        """The key of a storage and the type of its numbers."""
        _, dtype, key, *_ = pid
        return key, dtype


def _rebuild(storage: Any, offset: Any, shape: Any, strides: Any, *_gradients: Any) -> Any:
    return storage, offset, shape, strides


_ALLOWED: dict[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): OrderedDict,
    ("torch._utils", "_rebuild_tensor_v2"): _rebuild,
    ("torch", "FloatStorage"): "<f4",
    ("torch", "LongStorage"): "<i8",
}


def read_weights(path: Path) -> dict[str, NDArray[Any]]:
    """Tensors by name, of a file in PyTorch's old format whose hash was compared already."""
    with path.open("rb") as file:
        # a magic number, a version, the sizes of C types, the tensors, the keys of the storages
        *_, state, keys = [_Unpickler(file).load() for _ in range(5)]
        dtypes = dict(storage for storage, *_ in state.values())
        values = {}
        for key in keys:
            dtype = np.dtype(dtypes[key])
            (count,) = struct.unpack("<q", file.read(8))
            values[key] = np.frombuffer(file.read(count * dtype.itemsize), dtype)
    tensors = {}
    for name, ((key, _), offset, shape, strides) in state.items():
        numbers = values[key][offset:]
        steps = [step * numbers.itemsize for step in strides]
        tensors[name] = np.lib.stride_tricks.as_strided(numbers, shape, steps)
    return tensors
