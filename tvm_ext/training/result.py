"""What a training run ends with."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from tvm_ext.passes.pruning.scheme import Scheme
from tvm_ext.training.history import Epoch


@dataclass(frozen=True, eq=False)
class TrainingResult:
    """A trained model whose pruned weights are zero.

    Attributes
    ----------
    model : torch.nn.Module
        In evaluation mode.
    masks : dict of str to ndarray of bool
        Layer name -> what is kept of its weights, (filters, inputs of a filter, *kernel).
    schemes : dict of str to Scheme
        Layer name -> the scheme that its last mask is from, with what it found from the weights
        (such as a pattern set) fixed: of the trained weights, it chooses the same mask again. Empty
        for lottery tickets.
    skipped : dict of str to str
        Layers that were to be pruned, but that their scheme refuses, with the reason.
    history : tuple of Epoch
    dense_validation : float or None
        What `validate` returned of the dense model.
    """

    model: nn.Module
    masks: dict[str, np.ndarray]
    schemes: dict[str, Scheme]
    skipped: dict[str, str]
    history: tuple[Epoch, ...]
    dense_validation: float | None

    @property
    def densities(self) -> dict[str, float]:
        """Layer name -> share of its weights that is kept."""
        return {name: float(mask.mean()) for name, mask in self.masks.items()}

    def export(self, *inputs: Any, **options: Any) -> torch.export.ExportedProgram:
        """The model as `tvm_ext.build` takes it.

        Parameters
        ----------
        *inputs
            Examples of the arguments of the model's ``forward``.
        **options
            For `torch.export.export`, such as ``dynamic_shapes``.
        """
        # On a copy: exporting notes things in the modules that it traces.
        return torch.export.export(deepcopy(self.model), inputs, **options)
