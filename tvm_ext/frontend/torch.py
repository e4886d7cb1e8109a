"""A ``torch.export`` program as a Relax module: decompose, bind shapes, check, convert."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import tvm

from tvm_ext.frontend.torch_importer import import_program
from tvm_ext.frontend.torch_inputs import bind_inputs
from tvm_ext.frontend.torch_program import prepare_program
from tvm_ext.frontend.torch_scan import check_operators, running_nodes

if TYPE_CHECKING:
    import torch


def load_torch(
    program: torch.export.ExportedProgram,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    params: Mapping[str, np.ndarray] | None = None,
) -> tvm.IRModule:
    """Convert an exported PyTorch program; see `tvm_ext.frontend.load_model` for the result.

    Parameters
    ----------
    program : torch.export.ExportedProgram
        What ``torch.export.export`` returned, for a module in evaluation mode. It isn't changed.
    input_shapes : Mapping[str, Sequence[int]], optional
        Input name -> shape; needed for inputs that were exported with dynamic dimensions.
    params : Mapping[str, np.ndarray], optional
        Input name -> value to bind as a constant.

    Returns
    -------
    tvm.IRModule
        Inputs are named as in the program (the arguments of ``forward``; ``d_u`` for entry ``u`` of
        a dictionary ``d``). Outputs that ``forward`` returns in a dictionary have its keys as
        names, others are ``output0``, ``output1``, ...

    Raises
    ------
    ModelError
        The program changes its buffers or inputs, or a node can't be converted.
    UnsupportedOperatorsError
        Operators without a converter: the message lists all of them with all their nodes.
    InputShapeError
        A dynamic dimension isn't given, or a shape contradicts the program.
    """
    prepared = prepare_program(program)
    inputs = bind_inputs(prepared, input_shapes or {}, params or {})
    running = running_nodes(prepared, inputs)
    check_operators(running)
    return import_program(prepared, inputs, running)
