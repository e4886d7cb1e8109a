"""A model loaded and cut into layers: what `build` compiles, and tuning measures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tvm

from tvm_ext.codegen.accelerator import Accelerator
from tvm_ext.codegen.byoc.partition import partition
from tvm_ext.frontend import load_model
from tvm_ext.fusion_profile import CostProfile
from tvm_ext.layers import Layer, layers
from tvm_ext.passes import UniversalFusion
from tvm_ext.passes.fusion.decisions import Profile
from tvm_ext.pipeline import graph_pipeline
from tvm_ext.quantized import OutlineQuantized
from tvm_ext.target import CpuTarget

Model = Any
Params = Mapping[str, np.ndarray] | str | Path


@dataclass(frozen=True)
class GroupedModel:
    """A module cut into layers.

    Attributes
    ----------
    mod : IRModule
    layers : list of Layer
    output_names : list of str
    notes : list of str
        For the plan: what an accelerator doesn't take, and which quantised operators no kernel of
        integers computes; each with the reason.
    """

    mod: tvm.IRModule
    layers: list[Layer]
    output_names: list[str]
    notes: list[str]


def grouped(
    model: Model,
    cpu: CpuTarget,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    params: Params | None = None,
    *,
    profile: Profile | None = None,
    accelerator: Accelerator | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> GroupedModel:
    """Load a model and cut it; a plan for the layers of one call fits those of another like it.

    Parameters
    ----------
    model, input_shapes, params, accelerator
        As for `build`.
    cpu : CpuTarget
    profile : Profile, optional
        What answers fusion's open questions; the cost model without.
    progress : callable
        Told the name of each stage.
    """
    progress("load")
    mod = load_model(model, input_shapes=input_shapes, params=params)
    names = [str(n) for n in mod["main"].attrs["tvm_ext.output_names"]]
    notes: list[str] = []
    if accelerator is not None:
        progress("partition")
        parts = partition(mod, accelerator)
        mod, notes = parts.mod, [f"on the CPU: {refusal}" for refusal in parts.refusals]
    progress("graph passes")
    outline = OutlineQuantized()
    mod = graph_pipeline(UniversalFusion(profile or CostProfile(cpu)), outline)(mod)
    notes += [f"on real values: {refusal}" for refusal in outline.refusals]
    return GroupedModel(mod, layers(mod), names, notes)
