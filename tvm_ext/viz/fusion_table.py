"""What rewriting and fusion make of a graph, as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tvm
from rich.table import Table

from tvm_ext.frontend import load_model
from tvm_ext.fusion_profile import CostProfile
from tvm_ext.passes import UniversalFusion
from tvm_ext.pipeline import graph_pipeline
from tvm_ext.target import resolve
from tvm_ext.viz.fused_layers import fused_layers, operators


def fusion_table(
    model: Any,
    target: Any = "native",
    *,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
) -> Table:
    """Operators, kernels and bytes between kernels of a model, step by step.

    Parameters
    ----------
    model, target, input_shapes
        As for `tvm_ext.build`.

    Returns
    -------
    rich.table.Table
        A row for the graph as loaded, one after rewriting, one after fusion. Before fusion every
        operator counts as a kernel; reshapes never do. The bytes are those of values that one
        kernel writes and another reads; inputs, weights and results aren't among them.
    """
    mod = load_model(model, input_shapes=input_shapes)
    *before, fusion = graph_pipeline(UniversalFusion(CostProfile(resolve(target)))).passes
    rewritten = tvm.transform.Sequential(before)(mod)
    table = Table(title="fusion", title_justify="left")
    table.add_column("graph")
    for name in ("operators", "kernels", "MB between kernels"):
        table.add_column(name, justify="right")
    count = operators(rewritten)
    for name, stage, inside in (
        ("as loaded", mod, operators(mod)),
        ("rewritten", rewritten, count),
        ("fused", fusion(rewritten), count),
    ):
        layers = fused_layers(stage)
        table.add_row(name, str(inside), str(layers.kernels), f"{layers.nbytes / 1e6:.3f}")
    return table
