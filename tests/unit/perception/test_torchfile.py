"""The reader of torch's old weight files."""

import collections
import io
import pickle
import struct

import numpy as np
import pytest

from longtake.perception.weight_files import read_weights


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


def weights_file(path, state, storages):
    parts = [dumped(each) for each in ("magic", 1001, {"little_endian": True}, state)]
    parts.append(dumped(list(storages)))
    for values in storages.values():
        parts += [struct.pack("<q", len(values)), values.tobytes()]
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


@pytest.mark.parametrize("name", ["os.system", "builtins.eval", "collections.Counter"])
@pytest.mark.parametrize("place", range(5))
def test_any_other_name_is_refused_wherever_it_stands_and_nothing_runs(tmp_path, name, place):
    mark = tmp_path / "ran"
    touches = f"touch {mark}" if name == "os.system" else f"open({str(mark)!r}, 'w')"
    hostile = dumped(Call(Global(*name.split(".")), touches))
    parts = [dumped(each) for each in (0, 0, {}, {}, [])]
    parts[place] = hostile
    (tmp_path / "evil.pth").write_bytes(b"".join(parts))
    with pytest.raises(pickle.UnpicklingError, match=name):
        read_weights(tmp_path / "evil.pth")
    assert not mark.exists()
    if name == "os.system":  # elsewhere it would run
        pickle.loads(hostile)
        assert mark.exists()
