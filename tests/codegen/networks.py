"""Networks of one layer, and what they compute."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvm_ext.codegen.network import Network
from tvm_ext.codegen.network_layers import Layer, TensorSpec
from tvm_ext.codegen.network_reference import run_reference


def spec(name: str, shape: tuple[int, ...], scale: Any = 1.0, zero_point: Any = 0) -> TensorSpec:
    return TensorSpec(name, shape, "int8", float(scale), int(zero_point))


def network_of(
    layer: Layer, specs: list[TensorSpec], constants: dict[str, np.ndarray] | None = None
) -> Network:
    """A network of one layer; `specs` are its inputs, then its output."""
    return Network(
        "one", layer.inputs, (layer.output,), {s.name: s for s in specs}, (layer,), constants or {}
    )


def computed(network: Network, *inputs: np.ndarray) -> np.ndarray:
    feeds = dict(zip(network.inputs, inputs, strict=True))
    return run_reference(network, feeds)[network.outputs[0]]
