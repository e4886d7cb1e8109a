"""A model as tuning sees it: cut into layers as `build` cuts it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tvm

from tvm_ext.frontend import load_model
from tvm_ext.fusion_profile import CostProfile
from tvm_ext.layers import Layer, layers
from tvm_ext.passes import UniversalFusion
from tvm_ext.pipeline import graph_pipeline
from tvm_ext.target import CpuTarget

Model = Any


@dataclass(frozen=True)
class GroupedModel:
    """A module cut into layers.

    Attributes
    ----------
    mod : IRModule
    layers : list of Layer
    output_names : list of str
    """

    mod: tvm.IRModule
    layers: list[Layer]
    output_names: list[str]


def grouped(
    model: Model, cpu: CpuTarget, input_shapes: Mapping[str, Sequence[int]] | None = None
) -> GroupedModel:
    """Load a model and cut it, so that a plan for these layers fits `build` of the same model."""
    mod = load_model(model, input_shapes=input_shapes)
    names = [str(n) for n in mod["main"].attrs["tvm_ext.output_names"]]
    mod = graph_pipeline(UniversalFusion(CostProfile(cpu)))(mod)
    return GroupedModel(mod, layers(mod), names)
