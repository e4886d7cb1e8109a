"""A ``torch.export`` program as a Relax module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import tvm
from tvm.relax.frontend.torch import from_exported_program

from tvm_ext.errors import ModelError
from tvm_ext.frontend.relax import load_relax

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
        What ``torch.export.export`` returned. Dynamic dimensions need `input_shapes`.
    input_shapes : Mapping[str, Sequence[int]], optional
        Input name -> shape.
    params : Mapping[str, np.ndarray], optional
        Input name -> value to bind as a constant.

    Returns
    -------
    tvm.IRModule

    Raises
    ------
    ModelError
        TVM's importer doesn't know an operation of the program.
    """
    try:
        # Weights stay out of the parameters, and one output needs no tuple around it.
        mod = from_exported_program(
            program, keep_params_as_input=False, unwrap_unit_return_tuple=True
        )
    except (AssertionError, NotImplementedError, ValueError, tvm.error.TVMError) as err:
        raise ModelError(f"the torch program can't be converted: {err}") from err
    return load_relax(mod, input_shapes, params)
