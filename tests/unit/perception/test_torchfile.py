"""The restricted reader of torch's old weight files."""

import collections
import io
import pickle
import struct

import numpy as np
import pytest

from longtake.errors import ModelError
from longtake.perception.efficientnet import packaged_weights
from longtake.perception.weight_files import MAGIC, PROTOCOL, read_weights


class Global:
    """Pickles as a bare reference to ``module.name``."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name


class Call:
    """Pickles as a call, as torch's tensors do."""

    def __init__(self, function: Global, *arguments: object) -> None:
        self.function, self.arguments = function, arguments


class Storage:
    def __init__(self, key: str, kind: str, count: int) -> None:
        self.key, self.kind, self.count = key, kind, count


class Writer(pickle._Pickler):  # the Python one: its opcodes can be written by hand
    def save(self, obj, save_persistent_id=True):
        if isinstance(obj, Global):
            self.write(b"c" + obj.module.encode() + b"\n" + obj.name.encode() + b"\n")
        elif isinstance(obj, Call):
            self.save(obj.function)
            self.save(obj.arguments)
            self.write(b"R")
        elif isinstance(obj, Storage):
            self.save(("storage", Global("torch", obj.kind), obj.key, "cpu", obj.count, None))
            self.write(b"Q")
        else:
            super().save(obj, save_persistent_id)


def dumped(value: object) -> bytes:
    buffer = io.BytesIO()
    Writer(buffer, 2).dump(value)
    return buffer.getvalue()


def tensor(storage: Storage, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> Call:
    rebuild = Global("torch._utils", "_rebuild_tensor_v2")
    return Call(rebuild, storage, offset, shape, strides, False, collections.OrderedDict())


def weights_file(path, state, storages, *, magic=MAGIC, counts=None):
    parts = [
        dumped(magic),
        dumped(PROTOCOL),
        dumped({"little_endian": True}),
        dumped(state),
        dumped(list(storages)),
    ]
    for key, values in storages.items():
        parts += [struct.pack("<q", (counts or {}).get(key, len(values))), values.tobytes()]
    path.write_bytes(b"".join(parts))
    return path


def test_tensors_come_out_with_their_shapes_and_strides(tmp_path):
    values = np.arange(12, dtype="<f4")
    ints = np.array([7], "<i8")
    state = {
        "rows": tensor(Storage("a", "FloatStorage", 12), 0, (3, 4), (4, 1)),
        "turned": tensor(Storage("a", "FloatStorage", 12), 0, (4, 3), (1, 4)),
        "tail": tensor(Storage("a", "FloatStorage", 12), 10, (2,), (1,)),
        "count": tensor(Storage("b", "LongStorage", 1), 0, (), ()),
    }
    read = read_weights(weights_file(tmp_path / "w.pth", state, {"a": values, "b": ints}))
    assert np.array_equal(read["rows"], values.reshape(3, 4))
    assert np.array_equal(read["turned"], values.reshape(3, 4).T)
    assert read["tail"].tolist() == [10, 11]
    assert read["count"] == 7


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("os", "system"),
        ("builtins", "eval"),
        ("builtins", "getattr"),
        ("subprocess", "Popen"),
        ("torch", "load"),
        ("collections", "Counter"),
        ("numpy", "frombuffer"),
    ],
)
def test_any_other_name_is_refused_and_nothing_runs(tmp_path, module, name):
    mark = tmp_path / "ran"
    argument = f"touch {mark}" if module in ("os", "subprocess") else f"open({str(mark)!r}, 'w')"
    path = weights_file(tmp_path / "evil.pth", {"x": Call(Global(module, name), argument)}, {})
    with pytest.raises(ModelError, match=rf"{module}\.{name} is not allowed"):
        read_weights(path)
    assert not mark.exists()


@pytest.mark.parametrize("place", range(5))
def test_a_hostile_pickle_is_refused_wherever_it_stands(tmp_path, place):
    mark = tmp_path / "ran"
    parts = [dumped(MAGIC), dumped(PROTOCOL), dumped({}), dumped({}), dumped([])]
    parts[place] = dumped(Call(Global("os", "system"), f"touch {mark}"))
    (tmp_path / "evil.pth").write_bytes(b"".join(parts))
    with pytest.raises(ModelError, match=r"os\.system"):
        read_weights(tmp_path / "evil.pth")
    assert not mark.exists()


def test_the_hostile_pickle_of_these_tests_would_run_elsewhere(tmp_path):
    mark = tmp_path / "ran"
    pickle.loads(dumped(Call(Global("os", "system"), f"touch {mark}")))
    assert mark.exists()


def test_a_tensor_may_not_reach_beyond_its_storage(tmp_path):
    values = np.arange(4, dtype="<f4")
    for offset, shape, strides in (
        (0, (5,), (1,)),
        (2, (3,), (1,)),
        (0, (2, 2), (3, 1)),
        (0, (2,), (-1,)),
    ):
        state = {"x": tensor(Storage("a", "FloatStorage", 4), offset, shape, strides)}
        with pytest.raises(ModelError, match="not a plain weights file"):
            read_weights(weights_file(tmp_path / "w.pth", state, {"a": values}))


def test_a_storage_must_be_of_the_size_it_declares(tmp_path):
    values = np.arange(4, dtype="<f4")
    for count in (3, 5, -1, 1 << 60):
        state = {"x": tensor(Storage("a", "FloatStorage", 4), 0, (4,), (1,))}
        with pytest.raises(ModelError, match="not a plain weights file"):
            read_weights(
                weights_file(tmp_path / "w.pth", state, {"a": values}, counts={"a": count})
            )


def test_what_is_not_tensors_is_refused(tmp_path):
    with pytest.raises(ModelError, match="something other than tensors"):
        read_weights(weights_file(tmp_path / "w.pth", {"epoch": 3}, {}))


@pytest.mark.parametrize(
    "content", [b"", b"PK\x03\x04 a newer file", b"\x80\x02K\x01.", b"\x80\x02" + b"(" * 50]
)
def test_other_files_are_refused_by_name(tmp_path, content):
    (tmp_path / "w.pth").write_bytes(content)
    with pytest.raises(ModelError, match=r"w\.pth: not a plain weights file"):
        read_weights(tmp_path / "w.pth")


def test_a_cut_off_file_is_refused(tmp_path):
    content = packaged_weights().read_bytes()
    (tmp_path / "w.pth").write_bytes(content[:-1000])
    with pytest.raises(ModelError, match="not a plain weights file"):
        read_weights(tmp_path / "w.pth")


def test_a_missing_file_says_so(tmp_path):
    with pytest.raises(ModelError, match="cannot be read"):
        read_weights(tmp_path / "none.pth")
