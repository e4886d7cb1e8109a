"""Which reader takes a model object."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import tvm

from tvm_ext.errors import ModelError
from tvm_ext.frontend.onnx import load_onnx
from tvm_ext.frontend.relax import load_relax
from tvm_ext.frontend.relax_json import is_relax_json, read_relax_json
from tvm_ext.frontend.relay.load import is_relay, load_relay
from tvm_ext.frontend.relay.params import read_relay_params

_TEXT_SUFFIXES = (".json", ".txt")


def load_model(
    x: Any,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    params: Mapping[str, np.ndarray] | str | Path | None = None,
) -> tvm.IRModule:
    """Read a model into a Relax module with static shapes and its weights inside.

    Parameters
    ----------
    x : str, Path, onnx.ModelProto, torch.export.ExportedProgram or tvm.IRModule
        An ONNX file (external data next to it is read too), a Relay module that TVM 0.8 to 0.19
        saved (``tvm.ir.save_json`` or ``astext``), a Relax module that this TVM saved (``.json``);
        an ONNX model in memory, an exported PyTorch program (needs ``pip install
        'tvm_ext[torch]'``), or a Relax module with a function ``main``.
    input_shapes : Mapping[str, Sequence[int]], optional
        Input name -> full shape. Needed for every input that has a dynamic dimension; for an ONNX
        input that is static already it replaces the shape (to change the batch size, say).
    params : Mapping[str, np.ndarray], str or Path, optional
        Name -> value, or a file of them (``relay.save_param_dict``'s or an .npz), of inputs (or,
        for ONNX, initialisers) to bind as constants. A bound input is no longer a parameter of
        ``main``.

    Returns
    -------
    tvm.IRModule
        The parameters of ``main`` carry the model's input names in the model's order, weights are
        Relax constants, and the function attribute ``tvm_ext.output_names`` lists the output names
        (``output0``, ``output1``, ... where the model has none).

    Raises
    ------
    ModelError
        The file is missing, truncated or invalid, the object is of an unknown kind, or a node
        can't be converted (the message names the node and its operator).
    UnsupportedOperatorsError
        Operators without a converter: the message lists all of them with all their nodes.
    InputShapeError
        An input dimension is unknown, zero or negative, or `input_shapes` names an unknown input.
    """
    values = None if params is None else read_relay_params(params)
    if isinstance(x, str | Path):
        return _load_file(Path(x), input_shapes, values)
    if isinstance(x, onnx.ModelProto):
        return load_onnx(x, input_shapes, values)
    if isinstance(x, tvm.IRModule):
        return load_relax(x, input_shapes, values)
    # Only a process that has imported torch can hold one of its programs: torch stays optional.
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(x, torch.export.ExportedProgram):
        from tvm_ext.frontend.torch import load_torch

        return load_torch(x, input_shapes, values)
    raise ModelError(
        f"can't load a {type(x).__module__}.{type(x).__qualname__}: expected the path of an ONNX "
        "file, an onnx.ModelProto, a torch.export.ExportedProgram, a Relax tvm.IRModule, or the "
        "path of a saved Relay or Relax module"
    )


def _load_file(
    path: Path,
    input_shapes: Mapping[str, Sequence[int]] | None,
    params: Mapping[str, np.ndarray] | None,
) -> tvm.IRModule:
    """Read a file; what it begins with tells which kind it is."""
    if is_relay(path):
        return load_relay(path, input_shapes, params)
    if is_relax_json(path):
        return load_relax(read_relax_json(path), input_shapes, params)
    if path.suffix in _TEXT_SUFFIXES and path.is_file():
        raise ModelError(
            f"{path}: begins neither as a Relay module (tvm.ir.save_json of TVM 0.8 to 0.19, or "
            "astext) nor as a Relax module (tvm.ir.save_json of this TVM)"
        )
    return load_onnx(path, input_shapes, params)
