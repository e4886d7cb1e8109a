"""From group functions to layers: the workload, the constants and the data that flows between."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import tvm
import tvm_ffi
from tvm import relax

from tvm_ext.anchors import ANCHORS
from tvm_ext.anchors.anchor import Anchor
from tvm_ext.anchors.fused import behind, fuse_around
from tvm_ext.codegen.byoc.subgraph import Summary
from tvm_ext.dtypes import itemsize
from tvm_ext.offload import offloaded
from tvm_ext.passes import dataflow as df
from tvm_ext.passes.elementwise import scalar_name
from tvm_ext.passes.fusion.kernel_form import kernel_form
from tvm_ext.passes.fusion.kernel_parts import KernelForm, NoKernel
from tvm_ext.quantized import conversion, quantized_function
from tvm_ext.read_through import read_through_views
from tvm_ext.schedules.conv_workload import ConvWorkload
from tvm_ext.schedules.epilogue import Operand
from tvm_ext.schedules.matmul_workload import MatmulWorkload
from tvm_ext.schedules.workload import ElementwiseWorkload, GenericWorkload, kernel_operands
from tvm_ext.sparsity import Sparsity, summarize


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
        What the epilogues read, one for each of the workload's `kernel_operands`.
    output : Var
        The value of `main` that it produces (a tensor, or a tuple of tensors).
    function : Function
        The group function itself, which TVM's own operators can always compute.
    arguments : tuple of Var
        What `main` passes to it.
    fallback : str
        Why a specialised kernel doesn't apply, when TVM's own operator is used.
    offloaded : Summary or None
        Of the subgraph, where an accelerator computes the layer.
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
    offloaded: Summary | None = None


def layers(mod: tvm.IRModule) -> list[Layer]:
    """The layers of a module that `UniversalFusion` has cut, in execution order."""
    found, counts = [], _Counts()
    for var, expr in df.bindings(mod["main"]):
        if isinstance(expr, relax.Call) and isinstance(expr.op, tvm.ir.GlobalVar):
            found.append(_layer(mod, var, expr, counts))
    return read_through_views(found)


class _Counts:
    """The zeros of weights, counted once for all layers that have the same ones."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, tuple[int, ...]], Sparsity | None] = {}

    def added(self, anchor: Anchor) -> Any:
        """The workload with the counts of its weights."""
        base = anchor.base
        if isinstance(base, ConvWorkload):
            filters = anchor.weights[0]
        elif isinstance(base, MatmulWorkload) and base.packed:
            filters = anchor.weights[0].T
        else:
            return base
        key = (filters.ctypes.data, filters.shape)
        if key not in self._known:
            self._known[key] = summarize(filters)
        return replace(base, sparsity=self._known[key])


def _layer(mod: tvm.IRModule, var: Any, call: relax.Call, counts: _Counts) -> Layer:
    function = mod[call.op]
    pairs = df.bindings(function)
    outer = dict(zip(function.params, call.args, strict=True))
    ops = tuple(df.op_name(e).removeprefix("relax.") for _, e in pairs if df.op_name(e))
    common: dict[str, Any] = {
        "name": str(var.name), "ops": ops, "output": var,
        "function": function, "arguments": tuple(call.args),
    }  # fmt: skip
    if (subgraph := offloaded(pairs)) is not None:
        common |= {"name": subgraph.name, "ops": subgraph.operators}
        return Layer(
            workload=_generic(function, subgraph.operators, var),
            inputs=(), weights=(), operands=(), offloaded=subgraph, **common,
        )  # fmt: skip
    if (integers := quantized_function(function) or conversion(pairs)) is not None:
        given = tuple(outer[x] for x in function.params)
        return Layer(
            workload=integers.workload, inputs=() if integers.pointwise else given,
            weights=integers.weights, operands=given if integers.pointwise else (), **common,
        )  # fmt: skip
    read = _read(pairs)
    if isinstance(read, str):
        return Layer(
            workload=_generic(function, ops, var),
            inputs=(), weights=(), operands=(), fallback=read, **common,
        )  # fmt: skip
    anchor, form = read
    operands = form.chain_operands if form is not None else ()
    reads = zip(operands, kernel_operands(anchor.base), strict=True)
    return Layer(
        workload=counts.added(anchor),
        inputs=tuple(outer[x] for x in anchor.inputs),
        weights=anchor.weights,
        operands=tuple(outer[x] if x in outer else _array(x, operand) for x, operand in reads),
        **common,
    )


def _read(pairs: list[tuple[Any, Any]]) -> tuple[Anchor, KernelForm | None] | str:
    """What a group's kernel computes, and its form; or why no kernel of ours takes it."""
    form = None
    if len(pairs) > 1 or scalar_name(pairs[0][1]):
        try:
            form = kernel_form(pairs)
        except NoKernel as reason:
            return str(reason)
        if form.anchor is None:
            dtype = df.dtype_of(pairs[-1][0])
            return Anchor(ElementwiseWorkload(form.out_shape, dtype, form.epilogue), ()), form
    anchor = _anchor(form, pairs[0])
    return anchor if isinstance(anchor, str) else (anchor, form)


def _anchor(form: KernelForm | None, alone: tuple[Any, Any]) -> Anchor | str:
    """What a kernel computes: a form, or one operator alone; or why no kernel of ours does."""
    var, call = form.anchor if form is not None and form.anchor is not None else alone
    parse = ANCHORS.get(df.op_name(call))
    if parse is None:
        return f"no kernel for {df.op_name(call).removeprefix('relax.')}"
    anchor = parse(call, df.shape_of(var))
    if isinstance(anchor, str):
        return anchor
    if any(df.value_of(x) is not None for x in anchor.inputs):
        return "the data is constant"
    if form is None:
        return anchor
    anchor = fuse_around(anchor, form)
    if form.producer is None:
        return anchor
    before = _anchor(form.producer, alone)
    return before if isinstance(before, str) else behind(before, anchor)


def _array(constant: Any, operand: Operand) -> np.ndarray:
    """A constant operand in the shape that the kernel reads."""
    array = np.asarray(df.value_of(constant))
    return array.reshape(-1) if operand.view is not None else array.reshape(operand.shape)


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
