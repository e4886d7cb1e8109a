"""The value of an ONNX node whose inputs are all known at import.

Exporters write shapes as arithmetic (Shape, Gather, Concat, Reshape). Once every input has a static
shape, each of those nodes has one value, and ONNX's own reference evaluator computes it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import helper
from onnx.reference import ReferenceEvaluator

from tvm_ext.errors import ModelError
from tvm_ext.frontend.onnx_graph import captured_names, node_label
from tvm_ext.frontend.onnx_registry import DEFAULT_DOMAINS
from tvm_ext.frontend.onnx_sparse import dense_value

# A new value at every run: the import must not freeze one.
_RANDOM = frozenset(
    {
        "Bernoulli",
        "Multinomial",
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
    }
)
# What is quantised shows in the graph: an integer kernel reads the integers.
_QUANTIZATION = frozenset({"QuantizeLinear", "DequantizeLinear"})


def can_fold(node: onnx.NodeProto) -> bool:
    """Tell whether a node's value follows from its inputs' values alone."""
    return (
        node.domain in DEFAULT_DOMAINS
        and node.op_type not in _RANDOM | _QUANTIZATION
        and onnx.defs.has(node.op_type)
    )


def fold_inputs(node: onnx.NodeProto) -> list[str]:
    """Return every name that a node reads, in its subgraphs too."""
    return [name for name in dict.fromkeys([*node.input, *sorted(captured_names(node))]) if name]


def fold(
    node: onnx.NodeProto, values: Mapping[str, np.ndarray], opset: int
) -> dict[str, np.ndarray]:
    """Evaluate a node of the standard domain.

    Parameters
    ----------
    node : onnx.NodeProto
        A node for which `can_fold` holds.
    values : Mapping[str, np.ndarray]
        The value of each name in ``fold_inputs(node)``.
    opset : int
        Version of the standard operator set.

    Returns
    -------
    dict[str, np.ndarray]
        Output name -> value.

    Raises
    ------
    ModelError
        The node can't be evaluated.
    """
    outputs = [name for name in node.output if name]
    if node.op_type == "ConstantOfShape":
        # Files with their weights left out make large tensors this way: one pass, no copies.
        fill = np.zeros(1, "float32")
        for attribute in node.attribute:
            fill = onnx.numpy_helper.to_array(attribute.t)
        shape = tuple(int(d) for d in values[node.input[0]])
        return {outputs[0]: np.full(shape, fill.reshape(()), fill.dtype)}
    for attribute in node.attribute:
        if node.op_type == "Constant" and attribute.name == "sparse_value":
            what = f"the sparse value of node {node_label(node)!r}"
            return {outputs[0]: dense_value(attribute.sparse_tensor, what)}
    graph = helper.make_graph(
        [node],
        "fold",
        [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape
            )
            for name, value in values.items()
        ],
        [onnx.ValueInfoProto(name=name) for name in outputs],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    try:
        results = ReferenceEvaluator(model).run(None, dict(values))
    # The evaluator runs arbitrary operators and lets whatever their numpy code raises through.
    except Exception as err:
        raise ModelError(
            f"node {node_label(node)!r} ({node.op_type}) can't be evaluated: {err}"
        ) from err
    return {name: np.asarray(value) for name, value in zip(outputs, results, strict=True)}
