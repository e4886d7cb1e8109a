"""The ONNX graph as the importer wants it: local functions expanded, inputs with static shapes.

Weights aren't touched here. They stay where they are in the user's ModelProto, and the graph
refers to them by name, so preparing a graph copies its nodes only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
import onnx.inliner
from onnx import numpy_helper

from tvm_ext.errors import ModelError
from tvm_ext.frontend.input_shapes import check_shape, check_unknown, dynamic_error
from tvm_ext.frontend.onnx_registry import DEFAULT_DOMAINS, is_supported
from tvm_ext.frontend.onnx_sparse import sparse_initializers


@dataclass(frozen=True)
class Input:
    """One input of the graph; `shape` is static."""

    name: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Graph:
    """What the importer reads: live nodes in order, and where every other value comes from."""

    nodes: tuple[onnx.NodeProto, ...]
    inputs: tuple[Input, ...]
    outputs: tuple[str, ...]
    initializers: Mapping[str, onnx.TensorProto | np.ndarray]
    opsets: Mapping[str, int]


def prepare_graph(
    model: onnx.ModelProto,
    input_shapes: Mapping[str, Sequence[int]],
    params: Mapping[str, np.ndarray],
) -> Graph:
    """Bind input shapes and parameters, expand functions and drop dead nodes.

    Parameters
    ----------
    model : onnx.ModelProto
        The model; it isn't changed.
    input_shapes : Mapping[str, Sequence[int]]
        Input name -> shape; needed where the model has a dynamic dimension.
    params : Mapping[str, np.ndarray]
        Name of an input or initialiser -> value.

    Returns
    -------
    Graph

    Raises
    ------
    InputShapeError, ModelError
    """
    graph = model.graph
    initializers = graph_initializers(graph)
    names = [v.name for v in graph.input]
    unknown = sorted(set(params) - set(names) - set(initializers))
    if unknown:
        raise ModelError(f"params has unknown names {unknown}; the model's inputs are {names}")
    initializers.update({name: np.asarray(value) for name, value in params.items()})

    # Before version 4 of the format every initialiser is listed among the inputs too.
    free = [v for v in graph.input if v.name not in initializers]
    check_unknown(input_shapes, [v.name for v in free])
    inputs = tuple(_bind_input(v, input_shapes.get(v.name)) for v in free)

    expanded = _expand_functions(model, inputs, initializers)
    outputs = tuple(v.name for v in graph.output)
    nodes = _live_nodes(expanded.graph.node, outputs)
    opsets = {
        "" if o.domain in DEFAULT_DOMAINS else o.domain: o.version for o in expanded.opset_import
    }
    for node in nodes:
        if node.domain in DEFAULT_DOMAINS and "" not in opsets:
            raise ModelError(
                "the model doesn't say which version of the standard operators it uses"
            )
    return Graph(nodes, inputs, outputs, initializers, opsets)


def _bind_input(value: onnx.ValueInfoProto, shape: Sequence[int] | None) -> Input:
    if value.type.WhichOneof("value") != "tensor_type":
        raise ModelError(f"input {value.name!r} isn't a tensor")
    tensor = value.type.tensor_type
    try:
        dtype = str(onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type))
    except KeyError as err:
        raise ModelError(f"input {value.name!r} has no element type") from err
    if dtype == "object":
        raise ModelError(f"input {value.name!r} holds strings")
    known = tensor.HasField("shape")
    if shape is not None:
        return Input(
            value.name,
            check_shape(value.name, shape, len(tensor.shape.dim) if known else None),
            dtype,
        )
    if not known:
        raise dynamic_error(value.name, 0, "even the rank is unknown", (None,))
    dims = [d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim]
    for i, dim in enumerate(dims):
        if dim is None:
            raise dynamic_error(value.name, i, tensor.shape.dim[i].dim_param, dims)
    return Input(value.name, check_shape(value.name, dims, None), dtype)


def _expand_functions(
    model: onnx.ModelProto,
    inputs: Iterable[Input],
    initializers: Mapping[str, onnx.TensorProto | np.ndarray],
) -> onnx.ModelProto:
    """Inline the model's functions, and standard operators that are defined by others."""
    selected = _expandable(model)
    if not model.functions and not selected:
        return model
    # The inliner works on a serialised copy, which must not hold gigabytes of weights: they become
    # inputs of a graph without them.
    skeleton = onnx.ModelProto()
    skeleton.ir_version = model.ir_version
    skeleton.opset_import.extend(model.opset_import)
    skeleton.functions.extend(model.functions)
    skeleton.graph.name = model.graph.name
    skeleton.graph.node.extend(model.graph.node)
    skeleton.graph.output.extend(model.graph.output)
    skeleton.graph.input.extend(
        onnx.helper.make_tensor_value_info(
            i.name, onnx.helper.np_dtype_to_tensor_dtype(np.dtype(i.dtype)), i.shape
        )
        for i in inputs
    )
    for name, value in initializers.items():
        if isinstance(value, onnx.TensorProto):
            dtype, dims = value.data_type, value.dims
        else:
            dtype, dims = onnx.helper.np_dtype_to_tensor_dtype(value.dtype), value.shape
        skeleton.graph.input.append(onnx.helper.make_tensor_value_info(name, dtype, dims))
    if skeleton.functions:
        try:
            skeleton = onnx.inliner.inline_local_functions(skeleton)
        except (RuntimeError, ValueError) as err:
            raise ModelError(f"the model's functions can't be expanded: {err}") from err
    # An operator's definition may use others that have one.
    while selected := _expandable(skeleton):
        try:
            skeleton = onnx.inliner.inline_selected_functions(
                onnx.shape_inference.infer_shapes(skeleton), selected, inline_schema_functions=True
            )
        except RuntimeError:
            # The inliner can't expand some nodes that leave inputs out. They stay as they are, and
            # the check for unsupported operators names them.
            break
    return skeleton


def _expandable(model: onnx.ModelProto) -> list[tuple[str, str]]:
    """Return the operators without a converter whose definition in the standard is a graph."""
    return sorted(
        {
            (node.domain, node.op_type)
            for node in model.graph.node
            if node.domain in DEFAULT_DOMAINS
            and not is_supported(node.op_type, node.domain)
            and _has_function_body(node.op_type, model)
        }
    )


def _has_function_body(op_type: str, model: onnx.ModelProto) -> bool:
    version = next((o.version for o in model.opset_import if o.domain in DEFAULT_DOMAINS), 1)
    try:
        schema = onnx.defs.get_schema(op_type, version, "")
    except onnx.defs.SchemaError:
        return False
    return bool(schema.has_function or schema.has_context_dependent_function)


def _live_nodes(
    nodes: Sequence[onnx.NodeProto], outputs: Iterable[str]
) -> tuple[onnx.NodeProto, ...]:
    """Return the nodes that the outputs depend on, in order."""
    needed = set(outputs)
    live = []
    for node in reversed(nodes):
        if needed.intersection(node.output):
            live.append(node)
            needed.update(node.input)
            needed.update(captured_names(node))
    return tuple(reversed(live))


def graph_initializers(graph: onnx.GraphProto) -> dict[str, onnx.TensorProto | np.ndarray]:
    """Return a graph's initialisers by name, the sparse ones as dense arrays."""
    return {**{t.name: t for t in graph.initializer}, **sparse_initializers(graph)}


def subgraphs(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    """Return the graphs among a node's attributes (branches, loop bodies)."""
    graphs = [a.g for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]
    return graphs + [g for a in node.attribute for g in a.graphs]


def captured_names(node: onnx.NodeProto) -> set[str]:
    """Return the names that a node's subgraphs read from the scope around them."""
    captured: set[str] = set()
    for graph in subgraphs(node):
        known = {v.name for v in graph.input} | {t.name for t in graph.initializer}
        known |= {t.values.name for t in graph.sparse_initializer}
        used = {v.name for v in graph.output}
        for inner in graph.node:
            used.update(inner.input)
            used.update(captured_names(inner))
            known.update(inner.output)
        captured |= used - known - {""}
    return captured


def node_label(node: onnx.NodeProto) -> str:
    """Return a node's name, or that of its first output if it has none."""
    return node.name or next((name for name in node.output if name), "")


def tensor_array(name: str, tensor: onnx.TensorProto | np.ndarray) -> np.ndarray:
    """Return an initialiser's value; a view of the protobuf's bytes where possible."""
    if isinstance(tensor, np.ndarray):
        return tensor
    try:
        return numpy_helper.to_array(tensor)
    except (TypeError, ValueError) as err:
        raise ModelError(f"the initialiser {name!r} is damaged: {err}") from err
