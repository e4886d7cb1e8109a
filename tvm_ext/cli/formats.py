"""The files that a loaded model can be written to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import tvm

from tvm_ext.cli.errors import UserError
from tvm_ext.frontend.onnx_export import to_onnx

FORMATS = {
    ".onnx": "ONNX, opset 18",
    ".json": "Relax as TVM saves it, weights inside",
    ".py": "Relax as TVMScript, without weights, to read",
}


def checked_suffix(output: str, formats: Mapping[str, str]) -> str:
    """The suffix of a file to write.

    Raises
    ------
    UserError
        It is none of `formats`.
    """
    suffix = Path(output).suffix
    if suffix not in formats:
        allowed = ", ".join(f"{name} ({what})" for name, what in formats.items())
        raise UserError(f"{output}: the suffix {suffix!r} names no format; allowed: {allowed}")
    return suffix


def serialized(mod: tvm.IRModule, suffix: str) -> bytes:
    """A module in one of the `FORMATS`.

    Raises
    ------
    UnsupportedOperatorsError
        ONNX lacks an operator of the module's.
    """
    if suffix == ".onnx":
        return bytes(to_onnx(mod).SerializeToString())
    text = tvm.ir.save_json(mod) if suffix == ".json" else mod.script()
    return str(text).encode()
