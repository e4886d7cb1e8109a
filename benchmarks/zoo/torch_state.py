"""Read a PyTorch state dict saved before PyTorch 1.6, without PyTorch and without running its code.

Such a file is four pickles (a magic number, the protocol, the writer's type sizes, the object) with
tensors standing as references to storages, a fifth pickle with the list of storage keys, then for
each storage in that order its number of elements (int64) and its raw little-endian data.
"""

from __future__ import annotations

import pickle
from collections import OrderedDict
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

_MAGIC = 0x1950A86A20F9469CFC6C
_PROTOCOL = 1001
_STORAGE_DTYPES = {"FloatStorage": "<f4", "DoubleStorage": "<f8", "LongStorage": "<i8"}


def read_state_dict(path: Path) -> dict[str, np.ndarray]:
    """Read the tensors of a state dict.

    Parameters
    ----------
    path : pathlib.Path
        The ``.pth`` file, in the format before PyTorch 1.6.

    Returns
    -------
    dict[str, numpy.ndarray]
        Tensors by parameter name, in the file's order.

    Raises
    ------
    ValueError
        If the file is not in that format or is cut short.
    pickle.UnpicklingError
        If the file names anything but tensors: nothing in it is ever called.
    """
    with path.open("rb") as file:
        if file.read(2) == b"PK":
            raise ValueError(f"{path} is in PyTorch's zip format; only the older one is read")
        file.seek(0)
        storages: dict[str, np.ndarray] = {}
        magic, protocol, _ = (_Unpickler(file, storages).load() for _ in range(3))
        if magic != _MAGIC or protocol != _PROTOCOL:
            raise ValueError(f"{path} is no PyTorch file: magic {magic!r}, protocol {protocol!r}")
        tensors = _Unpickler(file, storages).load()
        for key in _Unpickler(file, storages).load():
            _fill(storages[key], file, path)
    return {name: np.array(tensor) for name, tensor in tensors.items()}


def _fill(storage: np.ndarray, file: BinaryIO, path: Path) -> None:
    count = int(np.frombuffer(_read(file, 8, path), "<i8")[0])
    if count != storage.size:
        raise ValueError(f"{path}: a storage of {storage.size} elements holds {count}")
    storage[:] = np.frombuffer(_read(file, storage.nbytes, path), storage.dtype)


def _read(file: BinaryIO, size: int, path: Path) -> bytes:
    data = file.read(size)
    if len(data) != size:
        raise ValueError(f"{path} is cut short: {size} bytes wanted, {len(data)} left")
    return data


def _rebuild_tensor(
    storage: np.ndarray, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], *_: Any
) -> np.ndarray:
    """Return a view of a storage; strides and offset count elements."""
    last = offset + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    if offset < 0 or min((0, *strides)) < 0 or last >= storage.size:
        raise ValueError(f"a tensor {shape} with strides {strides} leaves its storage")
    size = storage.itemsize
    return np.lib.stride_tricks.as_strided(
        storage[offset:], shape, [s * size for s in strides], writeable=False
    )


class _Unpickler(pickle.Unpickler):
    """Knows the names a state dict needs and refuses every other."""

    def __init__(self, file: BinaryIO, storages: dict[str, np.ndarray]) -> None:
        super().__init__(file)
        self._storages = storages

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _rebuild_tensor
        if module == "torch" and name in _STORAGE_DTYPES:
            return np.dtype(_STORAGE_DTYPES[name])
        raise pickle.UnpicklingError(f"a state dict may not name {module}.{name}")

    def persistent_load(self, reference: Any) -> np.ndarray:
        kind, dtype, key, _, count, view = reference
        if kind != "storage" or view is not None:
            raise pickle.UnpicklingError(f"not a plain storage: {reference!r}")
        # The data comes later in the file: tensors are views that are filled then.
        return self._storages.setdefault(key, np.empty(count, dtype))
