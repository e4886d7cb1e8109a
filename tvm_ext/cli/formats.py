"""The files that a loaded model can be written to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import onnx
import tvm
from google.protobuf.message import EncodeError

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
    UserError
        An ONNX file can't hold the weights.
    """
    if suffix == ".onnx":
        return onnx_bytes(to_onnx(mod))
    text = tvm.ir.save_json(mod) if suffix == ".json" else mod.script()
    return str(text).encode()


def onnx_bytes(model: onnx.ModelProto) -> bytes:
    """The content of an ONNX file that has its weights inside.

    Raises
    ------
    UserError
        It would be larger than a protobuf message can be.
    """
    try:
        return bytes(model.SerializeToString())
    except EncodeError as error:
        size = sum(len(initializer.raw_data) for initializer in model.graph.initializer)
        raise UserError(
            f"an ONNX file holds less than 2 GiB, the weights are {size / 2**30:.1f} GiB: "
            "write the model as .json"
        ) from error
