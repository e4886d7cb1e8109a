"""Which parameters of a module can be pruned, seen as schemes see weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn.parameter import is_lazy

from tvm_ext.errors import PruningError
from tvm_ext.passes.pruning.finite import check_finite

_CONVS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
_MATRICES = (nn.Linear, nn.RNNBase, nn.RNNCellBase, nn.MultiheadAttention)


@dataclass(frozen=True, eq=False)
class Weight:
    """Weights of one layer.

    Attributes
    ----------
    name : str
        The parameter's name in the model, without ``.weight`` at its end: ``features.0``,
        ``lstm.weight_ih_l0``.
    kind : str
        ``"conv"``, ``"dense"``, or ``"matrix"`` (gates of recurrent layers, projections of
        attention).
    parameter : torch.nn.Parameter
        (filters, inputs of a filter, *kernel), of any floating-point dtype.
    """

    name: str
    kind: str
    parameter: nn.Parameter

    def array(self, values: torch.Tensor | None = None) -> np.ndarray:
        """The parameter, or other values in its place, as a scheme takes them.

        NumPy has no bfloat16, so that narrow types become float32, which changes no value.

        Raises
        ------
        PruningError
            A value is NaN or infinite.
        """
        tensor = (self.parameter if values is None else values).detach().cpu()
        wide = tensor if tensor.dtype == torch.float64 else tensor.float()
        array: np.ndarray = wide.numpy()
        check_finite(self.name, array)
        return array


def prunable_weights(model: nn.Module) -> list[Weight]:
    """The weights of a model that can be pruned, in the order in which its modules are registered.

    They are those of convolutions of one to three dimensions, dense layers, recurrent layers and
    cells, and attention. Weights that several layers share are one, named as the first.

    Parameters
    ----------
    model : torch.nn.Module

    Raises
    ------
    PruningError
        A layer has no weights yet, because it waits for its first input.
    """
    found: dict[int, Weight] = {}
    for prefix, module in model.named_modules():
        if not isinstance(module, _CONVS + _MATRICES):
            continue
        for own, parameter in module.named_parameters(prefix, recurse=False):
            name = own.removesuffix(".weight")
            if is_lazy(parameter):
                raise PruningError(f"layer {name} has no weights yet: run the model once before")
            if "weight" in own.rpartition(".")[2] and parameter.is_floating_point():
                found.setdefault(id(parameter), Weight(name, _kind(module), parameter))
    return list(found.values())


def _kind(module: nn.Module) -> str:
    if isinstance(module, _CONVS):
        return "conv"
    return "dense" if isinstance(module, nn.Linear) else "matrix"
