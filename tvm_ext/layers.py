"""From group functions to layers: the workload, the constants and the data that flows between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm
import tvm_ffi
from tvm import relax

from tvm_ext.anchors import ANCHORS
from tvm_ext.anchors.anchor import Anchor
from tvm_ext.dtypes import itemsize
from tvm_ext.passes import dataflow as df
from tvm_ext.passes.elementwise import aligned_shape, scalar_name, tensor_args, to_step
from tvm_ext.schedules.epilogue import Epilogue, Operand, Ref, Step
from tvm_ext.schedules.workload import ElementwiseWorkload, GenericWorkload


@dataclass(frozen=True)
class Layer:
    """One group of `main`, ready to be planned.

    Attributes
    ----------
    name : str
    ops : tuple of str
        Operators without the ``relax.`` prefix, in order.
    workload : object
        One of `tvm_ext.schedules.workload` or `tvm_ext.schedules.conv_workload`.
    inputs : tuple of Var
        Values of `main` that the kernel takes as data.
    weights : tuple of ndarray
        Constant data, as the model has it.
    operands : tuple of Var or ndarray
        What the epilogue reads, one for each of its operands.
    output : Var
        The value of `main` that it produces (a tensor, or a tuple of tensors).
    function : Function
        The group function itself, which TVM's own operators can always compute.
    arguments : tuple of Var
        What `main` passes to it.
    fallback : str
        Why a specialised kernel doesn't apply, when TVM's own operator is used.
    """

    name: str
    ops: tuple[str, ...]
    workload: Any
    inputs: tuple[Any, ...]
    weights: tuple[np.ndarray, ...]
    operands: tuple[Any, ...]
    output: Any
    function: Any
    arguments: tuple[Any, ...]
    fallback: str = ""


def layers(mod: tvm.IRModule) -> list[Layer]:
    """The layers of a module that `FuseGroups` has cut, in execution order."""
    found = []
    for var, expr in df.bindings(mod["main"]):
        if isinstance(expr, relax.Call) and isinstance(expr.op, tvm.ir.GlobalVar):
            found.append(_layer(mod, var, expr))
    return found


def _layer(mod: tvm.IRModule, var: Any, call: relax.Call) -> Layer:
    function = mod[call.op]
    # `emit_output` binds the result to itself under another name.
    pairs = [(v, e) for v, e in df.bindings(function) if not isinstance(e, relax.Var)]
    outer = dict(zip(function.params, call.args, strict=True))
    ops = tuple(df.op_name(e).removeprefix("relax.") for _, e in pairs if df.op_name(e))
    common: dict[str, Any] = {
        "name": str(var.name), "ops": ops, "output": var,
        "function": function, "arguments": tuple(call.args),
    }  # fmt: skip
    anchor_var, anchor_expr = pairs[0]
    reason = ""
    if scalar_name(anchor_expr):
        chain = _chain(pairs, {}, outer, df.shape_of(var), results=0)
        workload = ElementwiseWorkload(df.shape_of(var), df.dtype_of(var), chain[0])
        return Layer(workload=workload, inputs=(), weights=(), operands=tuple(chain[1]), **common)
    parse = ANCHORS.get(df.op_name(anchor_expr))
    if parse is not None:
        anchor = parse(anchor_expr, df.shape_of(anchor_var))
        if isinstance(anchor, Anchor) and any(df.value_of(x) is not None for x in anchor.inputs):
            anchor = "the data is constant"
        if isinstance(anchor, Anchor):
            epilogue, operands = _chain(
                pairs[1:], {anchor_var: ("value", 0)}, outer, df.shape_of(var), results=1
            )
            return Layer(
                workload=anchor.workload(epilogue),
                inputs=tuple(outer[x] for x in anchor.inputs),
                weights=anchor.weights,
                operands=tuple(operands),
                **common,
            )
        reason = anchor
    return Layer(
        workload=_generic(function, ops, var),
        inputs=(), weights=(), operands=(),
        fallback=reason or f"no kernel for {', '.join(ops)}", **common,
    )  # fmt: skip


def _chain(
    pairs: list[tuple[Any, Any]],
    refs: dict[Any, Ref],
    outer: dict[Any, Any],
    shape: tuple[int, ...],
    results: int,
) -> tuple[Epilogue, list[Any]]:
    """The elementwise bindings as an epilogue, and what its operands are in `main`."""
    steps: list[Step] = []
    operands: list[Operand] = []
    values: list[Any] = []
    known: dict[Any, Ref] = dict(refs)

    def reference(expr: relax.Call, position: int) -> Ref:
        arg = tensor_args(expr)[position]
        if arg in known:
            return known[arg]
        array = df.value_of(arg)
        if array is not None and array.size == 1:
            return ("const", array.reshape(()).item())
        aligned = aligned_shape(expr, position, len(shape))
        for j, (value, operand) in enumerate(zip(values, operands, strict=True)):
            if array is None and value is outer.get(arg) and operand.shape == aligned:
                return ("operand", j)
        operands.append(Operand(aligned, df.dtype_of(arg)))
        values.append(outer[arg] if array is None else array.reshape(aligned))
        return ("operand", len(operands) - 1)

    for var, expr in pairs:
        args = [reference(expr, i) for i in range(len(tensor_args(expr)))]
        known[var] = ("value", results + len(steps))
        steps.append(to_step(expr, args))
    return Epilogue(tuple(steps), tuple(operands), results), values


def _generic(function: relax.Function, ops: tuple[str, ...], var: Any) -> GenericWorkload:
    outputs = var.ty.fields if isinstance(var.ty, relax.TupleType) else [var.ty]
    shapes = tuple(tuple(int(d) for d in t.shape) for t in outputs)
    in_bytes = sum(_bytes(p.ty) for p in function.params)
    return GenericWorkload(
        key=int(tvm_ffi.structural_hash(function)), ops=ops, out_shapes=shapes,
        in_bytes=in_bytes, out_bytes=sum(_bytes(t) for t in outputs),
    )  # fmt: skip


def _bytes(ty: Any) -> int:
    if isinstance(ty, relax.TupleType):
        return sum(_bytes(f) for f in ty.fields)
    if not isinstance(ty, relax.TensorType) or ty.shape is None:
        return 0
    return int(np.prod([int(d) for d in ty.shape], dtype=np.int64)) * itemsize(str(ty.dtype))
