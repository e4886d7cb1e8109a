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


def load_model(
    x: Any,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    params: Mapping[str, np.ndarray] | None = None,
) -> tvm.IRModule:
    """Read a model into a Relax module with static shapes and its weights inside.

    Parameters
    ----------
    x : str, Path, onnx.ModelProto, torch.export.ExportedProgram or tvm.IRModule
        An ONNX file (external data next to it is read too), an ONNX model in memory, an exported
        PyTorch program (needs ``pip install 'tvm_ext[torch]'``), or a Relax module with a function
        ``main``.
    input_shapes : Mapping[str, Sequence[int]], optional
        Input name -> full shape. Needed for every input that has a dynamic dimension; for an ONNX
        input that is static already it replaces the shape (to change the batch size, say).
    params : Mapping[str, np.ndarray], optional
        Name -> value of inputs (or, for ONNX, initialisers) to bind as constants. A bound input is
        no longer a parameter of ``main``.

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
    if isinstance(x, str | Path | onnx.ModelProto):
        return load_onnx(x, input_shapes, params)
    if isinstance(x, tvm.IRModule):
        return load_relax(x, input_shapes, params)
    # Only a process that has imported torch can hold one of its programs: torch stays optional.
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(x, torch.export.ExportedProgram):
        from tvm_ext.frontend.torch import load_torch

        return load_torch(x, input_shapes, params)
    raise ModelError(
        f"can't load a {type(x).__module__}.{type(x).__qualname__}: expected the path of an ONNX "
        "file, an onnx.ModelProto, a torch.export.ExportedProgram or a Relax tvm.IRModule"
    )
