"""Partitioning a model that is to be quantised: an error where nothing is for the accelerator."""

from __future__ import annotations

import tvm

from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.byoc import Partition, Refusal, partition
from tvm_ext.codegen.byoc.graph import has_integers
from tvm_ext.codegen.errors import LoweringError, QuantizationError

_MOST_REASONS = 3


def quantized_partition(mod: tvm.IRModule, accelerator: Accelerator) -> Partition:
    """Cut a quantised model for an accelerator; it has a subgraph at least.

    Parameters
    ----------
    mod : IRModule
        As `tvm_ext.load_model` gives it.
    accelerator : Accelerator

    Raises
    ------
    QuantizationError
        The model is float.
    LoweringError
        It is quantised, but the accelerator takes none of its operators.
    """
    if not has_integers(mod["main"]):
        raise QuantizationError(
            "the model is float: no operator reads int8 or uint8; allowed: quantised models, "
            "as tvm_ext.quantize(model, calibration_data) makes them"
        )
    found = partition(mod, accelerator)
    if not found.subgraphs:
        raise LoweringError(
            f"accelerator {accelerator.name} takes none of the model's operators: "
            f"{_reasons(found.refusals)}"
        )
    return found


def _reasons(refusals: tuple[Refusal, ...]) -> str:
    shown = [str(refusal) for refusal in refusals[:_MOST_REASONS]]
    if len(refusals) > _MOST_REASONS:
        shown.append(f"and {len(refusals) - _MOST_REASONS} more")
    return "; ".join(shown) or "it has none that computes"
