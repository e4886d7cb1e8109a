"""Look at every activation of a model, to see that the network is numerically alive."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import helper

from benchmarks.zoo.recipe import Inputs


@dataclass(frozen=True)
class Activation:
    """One float tensor of a run: its standard deviation and largest magnitude."""

    name: str
    op_type: str
    std: float
    largest: float


def activations(path: Path, inputs: Inputs) -> list[Activation]:
    """Run a model in ONNX Runtime and describe the output of every node.

    Parameters
    ----------
    path : pathlib.Path
        The ONNX file.
    inputs : dict[str, numpy.ndarray]
        The model's inputs.

    Returns
    -------
    list[Activation]
        The float32 tensors of two elements or more, in the graph's order; `largest` is NaN when
        any element is not finite.
    """
    import onnxruntime

    model = onnx.load(path)
    graph = model.graph
    producers = {node.output[0]: node.op_type for node in graph.node if node.op_type != "Constant"}
    declared = {output.name for output in graph.output}
    graph.output.extend(
        helper.make_empty_tensor_value_info(name) for name in producers if name not in declared
    )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = list(producers)
    values = session.run(names, inputs)
    found = []
    for name, value in zip(names, values, strict=True):
        if value.dtype == np.float32 and value.size > 1:
            largest = float(np.abs(value).max()) if np.isfinite(value).all() else float("nan")
            found.append(
                Activation(name, producers[name], float(value.std(dtype=np.float64)), largest)
            )
    return found
