"""What each operator of Relax's is in ONNX; importing this file registers it."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper
from tvm import relax

from tvm_ext.frontend.onnx_converters.values import constant, dtype_of, shape_of
from tvm_ext.frontend.onnx_writer import GraphWriter, writes
from tvm_ext.passes import dataflow as df

_SAME = {
    "abs": "Abs",
    "acos": "Acos",
    "acosh": "Acosh",
    "add": "Add",
    "asin": "Asin",
    "asinh": "Asinh",
    "atan": "Atan",
    "atanh": "Atanh",
    "ceil": "Ceil",
    "cos": "Cos",
    "cosh": "Cosh",
    "divide": "Div",
    "equal": "Equal",
    "erf": "Erf",
    "exp": "Exp",
    "floor": "Floor",
    "greater": "Greater",
    "greater_equal": "GreaterOrEqual",
    "isinf": "IsInf",
    "isnan": "IsNaN",
    "less": "Less",
    "less_equal": "LessOrEqual",
    "log": "Log",
    "logical_and": "And",
    "logical_not": "Not",
    "logical_or": "Or",
    "logical_xor": "Xor",
    "matmul": "MatMul",
    "maximum": "Max",
    "minimum": "Min",
    "multiply": "Mul",
    "negative": "Neg",
    "nn.relu": "Relu",
    "power": "Pow",
    "round": "Round",
    "sigmoid": "Sigmoid",
    "sign": "Sign",
    "sin": "Sin",
    "sinh": "Sinh",
    "sqrt": "Sqrt",
    "subtract": "Sub",
    "tan": "Tan",
    "tanh": "Tanh",
    "where": "Where",
}
_REDUCTIONS = {
    "max": "ReduceMax",
    "mean": "ReduceMean",
    "min": "ReduceMin",
    "prod": "ReduceProd",
    "sum": "ReduceSum",
}


@writes(*_SAME)
def write_same(graph: GraphWriter, call: relax.Call, _: Any) -> tuple[str, ...]:
    """Write an operator that only has another name."""
    inputs = [name for arg in call.args for name in graph.values(arg)]
    return graph.node(_SAME[df.op_name(call).removeprefix("relax.")], inputs)


@writes("reshape", "squeeze", "expand_dims", "flatten", "nn.batch_flatten")
def write_reshape(graph: GraphWriter, call: relax.Call, ty: Any) -> tuple[str, ...]:
    """Write what keeps the elements in their order."""
    return graph.node("Reshape", [*graph.values(call.args[0]), graph.ints(ty.shape)])


@writes(*_REDUCTIONS)
def write_reduction(graph: GraphWriter, call: relax.Call, _: Any) -> tuple[str, ...]:
    """Write a reduction, of all axes where none are named."""
    inputs = graph.values(call.args[0])
    if call.attrs.axis is not None:
        inputs.append(graph.ints(call.attrs.axis))
    op = _REDUCTIONS[df.op_name(call).removeprefix("relax.")]
    return graph.node(op, inputs, keepdims=int(call.attrs.keepdims))


@writes(*(f"nn.conv{n}d{suffix}" for n in (1, 2, 3) for suffix in ("", "_transpose")))
def write_conv(graph: GraphWriter, call: relax.Call, _: Any) -> tuple[str, ...] | None:
    """Write a convolution, transposed or not, of floats with channels first."""
    attrs = call.attrs
    transposed = "_transpose" in df.op_name(call)
    kernel = str(attrs.kernel_layout)
    expected = "IO" if transposed else "OI"
    floats = all(dtype_of(arg).startswith("float") for arg in call.args)
    if not str(attrs.data_layout).startswith("NC") or kernel[:2] != expected or not floats:
        return None
    extra: dict[str, Any] = {"output_padding": ints_of(attrs.output_padding)} if transposed else {}
    return graph.node(
        "ConvTranspose" if transposed else "Conv",
        [*graph.values(call.args[0]), *graph.values(call.args[1])],
        kernel_shape=list(shape_of(call.args[1])[2:]),
        strides=ints_of(attrs.strides),
        pads=ints_of(attrs.padding),
        dilations=ints_of(attrs.dilation),
        group=int(attrs.groups),
        **extra,
    )


@writes("nn.softmax", "nn.log_softmax")
def write_softmax(graph: GraphWriter, call: relax.Call, _: Any) -> tuple[str, ...]:
    """Write along one axis."""
    op = "LogSoftmax" if "log" in df.op_name(call) else "Softmax"
    return graph.node(op, graph.values(call.args[0]), axis=int(call.attrs.axis))


@writes("nn.pad")
def write_pad(graph: GraphWriter, call: relax.Call, _: Any) -> tuple[str, ...] | None:
    """Write a pad with a constant."""
    if str(call.attrs.pad_mode) != "constant":
        return None
    widths = ints_of(call.attrs.pad_width)
    value = graph.array(np.asarray(float(call.attrs.pad_value), dtype_of(call.args[0])))
    pads = graph.ints([*widths[::2], *widths[1::2]])
    return graph.node("Pad", [*graph.values(call.args[0]), pads, value])


@writes("nn.prelu")
def write_prelu(graph: GraphWriter, call: relax.Call, _: Any) -> tuple[str, ...]:
    """Write a slope for each element of one axis."""
    rank = len(shape_of(call.args[0]))
    axis = int(call.attrs.axis) % rank
    shape = graph.ints([-1 if i == axis else 1 for i in range(rank)])
    slope = graph.node("Reshape", [*graph.values(call.args[1]), shape])
    return graph.node("PRelu", [*graph.values(call.args[0]), *slope])


@writes("split")
def write_split(graph: GraphWriter, call: relax.Call, ty: Any) -> tuple[str, ...]:
    """Write the parts of a tensor."""
    axis = int(call.attrs.axis)
    sizes = [int(part.shape[axis]) for part in ty.fields]
    inputs = [*graph.values(call.args[0]), graph.ints(sizes)]
    return graph.node("Split", inputs, len(sizes), axis=axis)


@writes("strided_slice")
def write_slice(graph: GraphWriter, call: relax.Call, _: Any) -> tuple[str, ...]:
    """Write a slice."""
    data, axes, begins, ends, *steps = call.args
    parts = [begins.fields, ends.fields, axes.fields, *(s.fields for s in steps)]
    return graph.node("Slice", [*graph.values(data), *(graph.ints(p) for p in parts)])


@writes("take")
def write_take(graph: GraphWriter, call: relax.Call, _: Any) -> tuple[str, ...] | None:
    """Write a gather by indices that are known and in range."""
    indices = constant(call.args[1])
    size = shape_of(call.args[0])[int(call.attrs.axis or 0)]
    # What ONNX does with an index out of range isn't what the operator here does.
    if call.attrs.axis is None or indices is None or indices.min() < 0 or indices.max() >= size:
        return None
    return graph.node("Gather", [x for arg in call.args for x in graph.values(arg)],
                      axis=int(call.attrs.axis))  # fmt: skip


@writes("clip")
def write_clip(graph: GraphWriter, call: relax.Call, _: Any) -> tuple[str, ...]:
    """Write the restriction to an interval."""
    dtype = dtype_of(call.args[0])
    bounds = [graph.array(np.asarray(bound.value, dtype)) for bound in call.args[1:]]
    return graph.node("Clip", [*graph.values(call.args[0]), *bounds])


@writes("astype")
def write_cast(graph: GraphWriter, call: relax.Call, ty: Any) -> tuple[str, ...]:
    """Write another dtype."""
    to = helper.np_dtype_to_tensor_dtype(np.dtype(str(ty.dtype.dtype)))
    return graph.node("Cast", graph.values(call.args[0]), to=to)


@writes("argmax", "argmin")
def write_position(graph: GraphWriter, call: relax.Call, _: Any) -> tuple[str, ...] | None:
    """Write the position along one axis."""
    if call.attrs.axis is None:
        return None
    return graph.node(
        "ArgMax" if df.op_name(call) == "relax.argmax" else "ArgMin",
        graph.values(call.args[0]),
        axis=int(call.attrs.axis),
        keepdims=int(call.attrs.keepdims),
    )


@writes("broadcast_to")
def write_broadcast(graph: GraphWriter, call: relax.Call, ty: Any) -> tuple[str, ...]:
    """Write a larger shape."""
    return graph.node("Expand", [*graph.values(call.args[0]), graph.ints(ty.shape)])


@writes("concat")
def write_concat(graph: GraphWriter, call: relax.Call, _: Any) -> tuple[str, ...]:
    """Write tensors joined along an axis."""
    return graph.node("Concat", graph.values(call.args[0]), axis=int(call.attrs.axis))


@writes("nn.leakyrelu")
def write_leaky_relu(graph: GraphWriter, call: relax.Call, _: Any) -> tuple[str, ...]:
    """Write a leaky relu."""
    return graph.node("LeakyRelu", graph.values(call.args[0]), alpha=float(call.attrs.alpha))


@writes("permute_dims")
def write_transpose(graph: GraphWriter, call: relax.Call, ty: Any) -> tuple[str, ...]:
    """Write a transpose."""
    axes = call.attrs.axes
    order = list(range(len(ty.shape)))[::-1] if axes is None else ints_of(axes)
    return graph.node("Transpose", graph.values(call.args[0]), perm=order)


@writes("tile")
def write_tile(graph: GraphWriter, call: relax.Call, _: Any) -> tuple[str, ...]:
    """Write repetitions."""
    return graph.node("Tile", [*graph.values(call.args[0]), graph.ints(call.attrs.repeats)])


def ints_of(values: Any) -> list[int]:
    """TVM's whole numbers as Python's."""
    return [int(n) for n in values]
