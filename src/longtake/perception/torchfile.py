"""Reading the weights in a torch file without torch, and without executing the file.

A ``.pth`` written by ``torch.save`` before 1.6 is five pickles and then the raw storages::

    magic · protocol · system info · state dict · storage keys · (int64 count, raw values) per key

A pickle is a program. This reader lets it name only five things (an ordered dict, the function that
rebuilds a tensor, three storage types), replaces the torch ones by harmless stand-ins, and rejects
everything else.
"""

from __future__ import annotations

import pickle
import struct
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from longtake.errors import ModelError

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
