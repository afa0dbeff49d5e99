"""Weights in files: reads PyTorch's without PyTorch, writes networks as ONNX without ``onnx``.

An ONNX file is one protocol-buffers message. Writing one needs only two kinds of field, a number
and a length-delimited byte string, which is a page of code; the ``onnx`` package would add 40 MB to
every installation. Field numbers are those of ``onnx.proto`` (ONNX IR version 8); tests check the
result with ``onnx.checker``. PyTorch's files are pickles, of which only plain tensors are allowed.
"""

from __future__ import annotations

import pickle
import struct
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from longtake.errors import ModelError

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


MAGIC = 0x1950A86A20F9469CFC6C
PROTOCOL = 1001


@dataclass(frozen=True)
class _Kind:
    """Stands in for a torch storage type."""

    dtype: str


@dataclass(frozen=True)
class _Storage:
    key: str
    kind: _Kind
    count: int


@dataclass(frozen=True)
class _Tensor:
    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def _rebuild(
    storage: _Storage, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], *_: Any
) -> _Tensor:
    if not isinstance(storage, _Storage):
        raise pickle.UnpicklingError("a tensor without a storage")
    return _Tensor(storage, int(offset), tuple(map(int, shape)), tuple(map(int, strides)))


_ALLOWED: dict[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): OrderedDict,
    ("torch._utils", "_rebuild_tensor_v2"): _rebuild,
    ("torch", "FloatStorage"): _Kind("<f4"),
    ("torch", "HalfStorage"): _Kind("<f2"),
    ("torch", "LongStorage"): _Kind("<i8"),
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ALLOWED[module, name]
        except KeyError:
            raise pickle.UnpicklingError(
                f"{module}.{name} is not allowed in a weights file"
            ) from None

    def persistent_load(self, pid: Any) -> _Storage:
        if not (isinstance(pid, tuple) and len(pid) >= 5 and pid[0] == "storage"):
            raise pickle.UnpicklingError("a persistent object that is not a storage")
        _, kind, key, _, count = pid[:5]
        if not isinstance(kind, _Kind):
            raise pickle.UnpicklingError("a storage of unknown type")
        return _Storage(str(key), kind, int(count))


# a hostile or damaged pickle can make the unpickler raise nearly anything
_REJECTED = (pickle.UnpicklingError, ValueError, TypeError, KeyError, IndexError, AttributeError)


def read_weights(path: Path) -> dict[str, NDArray[Any]]:
    """Tensors by name; raises :class:`ModelError` for any file that is not plain weights."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            return _read(file, size)
    except OSError as error:
        detail = f"cannot be read ({error.strerror or error})"
        raise ModelError(str(path), "unavailable", detail) from error
    except _REJECTED as error:
        raise ModelError(str(path), "refused", f"not a plain weights file: {error}") from error
    except (EOFError, struct.error, MemoryError, OverflowError) as error:
        detail = "not a plain weights file: it is cut off or damaged"
        raise ModelError(str(path), "refused", detail) from error


def _read(file: IO[bytes], size: int) -> dict[str, NDArray[Any]]:
    if _Unpickler(file).load() != MAGIC or _Unpickler(file).load() != PROTOCOL:
        raise ValueError("it does not begin as one")
    # sizes of C types on the machine that wrote it; the storages do not depend on them
    _Unpickler(file).load()
    state = _Unpickler(file).load()
    keys = _Unpickler(file).load()
    tensors = list(state.values()) if isinstance(state, dict) else [state]
    if not all(isinstance(value, _Tensor) for value in tensors):
        raise ValueError("it contains something other than tensors")
    storages = {tensor.storage.key: tensor.storage for tensor in state.values()}
    values: dict[str, NDArray[Any]] = {}
    for key in keys:
        storage = storages[key]
        (count,) = struct.unpack("<q", file.read(8))
        dtype = np.dtype(storage.kind.dtype)
        # checked before reading: a damaged count must not allocate gigabytes
        if count != storage.count or not 0 <= count * dtype.itemsize <= size:
            raise ValueError(f"storage {key} is not of the size it declares")
        raw = file.read(count * dtype.itemsize)
        values[key] = np.frombuffer(raw, dtype, count)
    return {
        str(name): _materialise(tensor, values[tensor.storage.key])
        for name, tensor in state.items()
    }


def _materialise(tensor: _Tensor, values: NDArray[Any]) -> NDArray[Any]:
    shape, strides = tensor.shape, tensor.strides
    if len(shape) != len(strides) or min((tensor.offset, *shape, *strides), default=0) < 0:
        raise ValueError("a tensor of impossible shape")
    # as_strided checks nothing, so a tensor must not reach beyond its storage
    reach = tensor.offset + sum((n - 1) * step for n, step in zip(shape, strides, strict=True) if n)
    if 0 not in shape and reach >= len(values):
        raise ValueError("a tensor that reaches beyond its storage")
    steps = tuple(step * values.itemsize for step in strides)
    # copied, so that the result does not keep the whole file's buffer alive
    return np.lib.stride_tricks.as_strided(values[tensor.offset :], shape, steps).copy()
