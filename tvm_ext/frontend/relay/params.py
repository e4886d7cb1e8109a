"""Parameters of a Relay module: files of ``relay.save_param_dict``, .npz files, dicts.

A parameter file has a magic number and a reserved word (uint64 each), the names (a uint64 count,
then each with a uint64 length) and as many arrays (a uint64 count, then each as `ndarray` has it).
"""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tvm_ext.files import replacing
from tvm_ext.frontend.relay.errors import RelayError
from tvm_ext.frontend.relay.ndarray import read_ndarray, write_ndarray

MAGIC = 0xF7E58D4F05049CB7


def read_relay_params(
    source: str | Path | bytes | Mapping[str, Any],
) -> dict[str, np.ndarray]:
    """Read parameters by name.

    Parameters
    ----------
    source : str, Path, bytes or mapping of str to array
        The path of a file of ``relay.save_param_dict`` or of an .npz (its first bytes tell which),
        the bytes of such a file, or the arrays themselves.

    Returns
    -------
    dict of str to ndarray
        In the file's order.

    Raises
    ------
    RelayError
        The file is missing, truncated, of another kind, or has a name twice.
    """
    if isinstance(source, Mapping):
        # TVM's own arrays have a method for it; others are taken as NumPy takes them.
        return {
            name: np.asarray(value.numpy() if hasattr(value, "numpy") else value)
            for name, value in source.items()
        }
    if isinstance(source, bytes):
        return _from_bytes(source, "parameters")
    if not isinstance(source, str | Path):
        raise RelayError(
            f"parameters are a {type(source).__name__}: allowed are a path, bytes and a mapping "
            "of names to arrays"
        )
    try:
        data = Path(source).read_bytes()
    except OSError as error:
        raise RelayError(f"can't be read: {error.strerror or error}", str(source)) from error
    if data.startswith(b"PK"):
        return _from_npz(Path(source))
    return _from_bytes(data, str(source))


def write_relay_params(path: str | Path, params: Mapping[str, np.ndarray]) -> None:
    """Write parameters as ``relay.save_param_dict`` does.

    Raises
    ------
    RelayError
        An array has a dtype that the form doesn't know.
    ArtifactError
        The file can't be written.
    """
    names = [name.encode() for name in params]
    arrays = [write_ndarray(np.asarray(value)) for value in params.values()]
    count = struct.pack("<Q", len(names))
    with replacing(Path(path)) as stream:
        stream.write(struct.pack("<QQ", MAGIC, 0) + count)
        for name in names:
            stream.write(struct.pack("<Q", len(name)) + name)
        stream.write(count)
        stream.writelines(arrays)


def _from_npz(path: Path) -> dict[str, np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise RelayError(f"the .npz file can't be read: {error}", str(path)) from error


def _from_bytes(data: bytes, source: str) -> dict[str, np.ndarray]:
    view = memoryview(data)
    at = 0

    def word(what: str) -> int:
        nonlocal at
        if at + 8 > len(view):
            raise RelayError(
                f"the file ends in the middle of {what}, at byte {len(view)}", source, f"byte {at}"
            )
        (value,) = struct.unpack_from("<Q", view, at)
        at += 8
        return int(value)

    magic = word("the magic number")
    if magic != MAGIC:
        raise RelayError(
            f"is no parameter file: it begins with {magic:#x}, one of relay.save_param_dict with "
            f"{MAGIC:#x}, an .npz with 'PK'",
            source,
        )
    word("the reserved word")
    names: list[str] = []
    for index in range(word("the number of names")):
        length = word(f"the length of name {index}")
        if at + length > len(view):
            raise RelayError(
                f"name {index} has {length} bytes, the file {len(view) - at} more",
                source,
                f"byte {at}",
            )
        try:
            names.append(bytes(view[at : at + length]).decode())
        except UnicodeDecodeError as error:
            raise RelayError(f"name {index} isn't UTF-8: {error}", source, f"byte {at}") from error
        at += length
    count = word("the number of arrays")
    if count != len(names):
        raise RelayError(f"has {len(names)} names and {count} arrays", source)
    if len(set(names)) != len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise RelayError(f"has names twice: {twice}", source)
    params = {}
    for name in names:
        params[name], at = read_ndarray(view, at, f"{source}: parameter {name!r}")
    if at != len(view):
        raise RelayError(f"{len(view) - at} bytes are left behind the last array", source)
    return params
