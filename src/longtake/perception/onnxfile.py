"""Just enough of the ONNX file format to write a feed-forward network.

An ONNX file is one protocol-buffers message. Writing one needs only two kinds of field, a number
and a length-delimited byte string, which is a page of code; the ``onnx`` package would add 40 MB to
every installation. Field numbers are those of ``onnx.proto`` (ONNX IR version 8); tests check the
result with ``onnx.checker``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

IR_VERSION = 8
OPSET = 13
_FLOAT, _INT64 = 1, 7  # TensorProto.DataType
_AS_FLOAT, _AS_INT, _AS_INTS, _AS_STRING = 1, 2, 7, 3  # AttributeProto.AttributeType


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
    kind = {np.dtype("float32"): _FLOAT, np.dtype("int64"): _INT64}[values.dtype]
    dims = b"".join(_number(1, n) for n in values.shape)
    # ``raw_data`` is little-endian on every machine
    little = np.ascontiguousarray(values).astype(values.dtype.newbyteorder("<"), copy=False)
    raw = little.tobytes()
    return dims + _number(2, kind) + _bytes(8, name) + _bytes(9, raw)


def _attribute(name: str, value: float | int | str | Sequence[int]) -> bytes:
    head = _bytes(1, name)
    if isinstance(value, float):
        return head + _varint(2 << 3 | 5) + struct.pack("<f", value) + _number(20, _AS_FLOAT)
    if isinstance(value, int):
        return head + _number(3, value) + _number(20, _AS_INT)
    if isinstance(value, str):
        return head + _bytes(4, value) + _number(20, _AS_STRING)
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
        self,
        kind: str,
        *inputs: str,
        output: str = "",
        **attributes: float | int | str | Sequence[int],
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
        opset = _bytes(1, "") + _number(2, OPSET)
        return _number(1, IR_VERSION) + _bytes(2, "longtake") + _bytes(7, graph) + _bytes(8, opset)
