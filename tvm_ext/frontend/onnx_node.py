"""One ONNX node: its attributes, its name in messages, and what its converter makes of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import onnx
from onnx import numpy_helper
from tvm import relax
from tvm.relax.frontend.onnx.onnx_frontend import onnx_input

from tvm_ext.errors import ModelError
from tvm_ext.frontend.onnx_graph import node_label
from tvm_ext.frontend.onnx_registry import (
    DEFAULT_DOMAINS,
    TVM_WRONG,
    Inputs,
    Node,
    find_converter,
    find_tvm_converter,
)


def attributes(node: onnx.NodeProto) -> dict[str, Any]:
    """Return a node's attributes as plain Python and numpy values."""
    attrs: dict[str, Any] = {}
    for attribute in node.attribute:
        value = onnx.helper.get_attribute_value(attribute)
        if isinstance(value, bytes):
            value = value.decode()
        elif isinstance(value, onnx.TensorProto):
            value = numpy_helper.to_array(value)
        elif isinstance(value, Iterable) and not isinstance(value, str):
            value = tuple(v.decode() if isinstance(v, bytes) else v for v in value)
        attrs[attribute.name] = value
    return attrs


def describe(node: onnx.NodeProto) -> str:
    """Return how messages call a node: its name and its operator."""
    default = node.domain in DEFAULT_DOMAINS
    operator = node.op_type if default else f"{node.domain}::{node.op_type}"
    return f"node {node_label(node)!r} ({operator})"


def convert_node(
    bb: relax.BlockBuilder, node: onnx.NodeProto, inputs: Inputs, opsets: Mapping[str, int]
) -> relax.Expr | list[relax.Expr] | tuple[relax.Expr, ...]:
    """Call the converter of a node: a registered one if there is one, else TVM's.

    Parameters
    ----------
    bb : relax.BlockBuilder
        What the converter emits into.
    node : onnx.NodeProto
        The node.
    inputs : sequence of relax.Expr or None
        An expression an input, None for one that is left out.
    opsets : Mapping[str, int]
        Domain -> version of its operators.

    Returns
    -------
    relax.Expr or sequence of relax.Expr
        As the converter returns it.

    Raises
    ------
    ModelError
        There is no converter; and whatever the converter raises.
    """
    info = Node(
        node_label(node),
        node.op_type,
        node.domain,
        opsets.get("" if node.domain in DEFAULT_DOMAINS else node.domain, 1),
        tuple(node.output),
    )
    converter = find_converter(node.op_type, node.domain)
    if converter is not None:
        return converter(bb, inputs, attributes(node), info)
    return _convert_with_tvm(bb, node, inputs, info)


def _convert_with_tvm(
    bb: relax.BlockBuilder, node: onnx.NodeProto, inputs: Inputs, info: Node
) -> relax.Expr:
    converter = find_tvm_converter(info.op_type, info.domain)
    if converter is None:
        raise ModelError("the operator has no converter")
    attrs = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    attrs = {k: tuple(v) if isinstance(v, list) else v for k, v in attrs.items()}
    for (op_type, name), value in TVM_WRONG.items():
        if op_type == info.op_type and attrs.get(name) == value:
            raise ModelError(f"{name}={value.decode()} isn't supported")
    attrs["tvm_custom"] = {"name": info.name, "num_outputs": len(node.output)}
    version = 1 if info.domain == "com.microsoft" else info.opset
    function = converter.get_converter(version)
    # TVM's converters look values up in a table of nodes and one of parameters; ours are
    # constants already, so both stay empty.
    return function(bb, onnx_input(inputs), attrs, [{}, {}])
