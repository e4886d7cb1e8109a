"""The reader of old PyTorch files, on files written here byte by byte with pickle."""

import os
import pickle
import sys
import types
from collections import OrderedDict

import numpy as np
import pytest

from benchmarks.zoo.torch_state import _MAGIC, _PROTOCOL, read_state_dict

STORAGES = {
    "first": np.arange(12, dtype=np.float32),
    "second": np.array([7], dtype=np.int64),
}
# Storage, offset, shape, strides.
TENSORS = {
    "whole": ("first", 0, (3, 4), (4, 1)),
    "transposed": ("first", 1, (2, 3), (1, 4)),
    "scalar": ("second", 0, (), ()),
}


class Tensor:
    def __init__(self, *arguments):
        self.arguments = arguments

    def __reduce__(self):
        key, offset, shape, strides = self.arguments
        rebuild = sys.modules["torch._utils"]._rebuild_tensor_v2
        return rebuild, (Storage(key), offset, shape, strides, False, OrderedDict())


class Storage:
    def __init__(self, key):
        self.key = key


class Pickler(pickle.Pickler):
    def persistent_id(self, value):
        if not isinstance(value, Storage):
            return None
        kind = "FloatStorage" if value.key == "first" else "LongStorage"
        size = STORAGES[value.key].size
        return ("storage", getattr(sys.modules["torch"], kind), value.key, "cpu", size, None)


@pytest.fixture
def torch_names(monkeypatch):
    """Stand-ins for the names that such a file refers to; PyTorch itself is not needed."""
    torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")
    for kind in ("FloatStorage", "LongStorage"):
        setattr(torch, kind, type(kind, (), {"__module__": "torch"}))

    def _rebuild_tensor_v2():
        """Never called: only its name is written."""

    _rebuild_tensor_v2.__module__ = "torch._utils"
    _rebuild_tensor_v2.__qualname__ = "_rebuild_tensor_v2"
    utils._rebuild_tensor_v2 = _rebuild_tensor_v2
    torch._utils = utils
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch._utils", utils)


def write(path, content, magic=_MAGIC):
    with path.open("wb") as file:
        for value in (magic, _PROTOCOL, {}):
            pickle.dump(value, file, 2)
        Pickler(file, 2).dump(content)
        pickle.dump(list(STORAGES), file, 2)
        for storage in STORAGES.values():
            file.write(np.int64(storage.size).tobytes() + storage.tobytes())
    return path


def test_views_of_storages(torch_names, tmp_path):
    content = OrderedDict((name, Tensor(*arguments)) for name, arguments in TENSORS.items())
    state = read_state_dict(write(tmp_path / "state.pth", content))
    assert list(state) == list(TENSORS)
    np.testing.assert_array_equal(state["whole"], STORAGES["first"].reshape(3, 4))
    np.testing.assert_array_equal(state["transposed"], [[1, 5, 9], [2, 6, 10]])
    assert (state["scalar"].shape, state["scalar"].dtype, int(state["scalar"])) == ((), "i8", 7)


def test_a_tensor_that_leaves_its_storage_is_refused(torch_names, tmp_path):
    path = write(tmp_path / "state.pth", {"bad": Tensor("first", 1, (3, 4), (4, 1))})
    with pytest.raises(ValueError, match="leaves its storage"):
        read_state_dict(path)


def test_code_is_refused_and_not_run(tmp_path):
    class Hostile:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "made"),)

    with pytest.raises(pickle.UnpicklingError, match=r"may not name \w+\.mkdir"):
        read_state_dict(write(tmp_path / "state.pth", {"bad": Hostile()}))
    assert not (tmp_path / "made").exists()


def test_other_formats_and_cut_files_are_refused(torch_names, tmp_path):
    archive = tmp_path / "zip.pth"
    archive.write_bytes(b"PK\x03\x04")
    with pytest.raises(ValueError, match="zip format"):
        read_state_dict(archive)
    with pytest.raises(ValueError, match="no PyTorch file"):
        read_state_dict(write(tmp_path / "magic.pth", {}, magic=1))
    content = {"scalar": Tensor("second", 0, (), ()), "whole": Tensor(*TENSORS["whole"])}
    whole = write(tmp_path / "state.pth", content).read_bytes()
    (tmp_path / "cut.pth").write_bytes(whole[:-1])
    with pytest.raises(ValueError, match="cut short: 8 bytes wanted, 7 left"):
        read_state_dict(tmp_path / "cut.pth")
