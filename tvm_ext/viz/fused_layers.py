"""Count the kernels that a model runs, and the bytes that they leave for each other."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import tvm
from tvm import relax

from tvm_ext.dtypes import itemsize
from tvm_ext.passes import dataflow as df
from tvm_ext.program import Program


@dataclass(frozen=True)
class FusedLayers:
    """What a model costs beyond its arithmetic.

    Attributes
    ----------
    kernels : int
        Kernels that run.
    nbytes : int
        Bytes that one kernel writes and another reads, however many read them. Inputs, weights and
        outputs of the model aren't among them.
    """

    kernels: int
    nbytes: int


@dataclass(eq=False)
class _Tensor:
    """A tensor in memory, which views share."""

    nbytes: int
    is_read: bool = False


def fused_layers(mod: tvm.IRModule) -> FusedLayers:
    """Count over `main`, where each call is one kernel.

    Reshapes of every kind are views, and no kernels where nothing else is in their group; nor is
    what can be computed from the weights alone.

    Parameters
    ----------
    mod : IRModule
        Calls of `main` are to functions of the module (fused groups), ``call_tir``, or operators
        that stand alone. All shapes are static.

    Returns
    -------
    FusedLayers
    """
    func = mod["main"]
    # A value is a tensor, a list for a tuple, or None when it follows from the weights.
    values: dict[Any, Any] = {p: _made(p.ty) for p in func.params}
    written: list[_Tensor] = []
    kernels = 0
    for var, expr in df.bindings(func):
        if not isinstance(expr, relax.Call):
            values[var] = _value(expr, values)
            continue
        read = [t for a in expr.args for t in _tensors(_value(a, values))]
        if not read:
            values[var] = _constant(var.ty)
        elif _is_view(mod, expr):
            values[var] = read[0]
        else:
            kernels += 1
            for tensor in read:
                tensor.is_read = True
            values[var] = _made(var.ty)
            written += _tensors(values[var])
    results = _tensors(_value(df.result(func), values))
    between = [t for t in written if t.is_read and t not in results]
    return FusedLayers(kernels, sum(t.nbytes for t in between))


def called_layers(program: Program) -> FusedLayers:
    """Count over a lowered model, where each call is one kernel, changes of layout included.

    What is written inside another buffer (a part of a concatenation) is counted where it's written.
    """
    outputs = {program.root(number)[0] for number in program.outputs.values()}
    nbytes = 0
    for step, call in enumerate(program.calls):
        for number in call.args[-call.outputs :]:
            if program.root(number)[0] not in outputs:
                later = (n for c in program.calls[step + 1 :] for n in c.args[: -c.outputs])
                is_read = any(_overlap(program, number, n) for n in later)
                nbytes += program.buffers[number].nbytes if is_read else 0
    return FusedLayers(len(program.calls), nbytes)


def _overlap(program: Program, first: int, second: int) -> bool:
    """Whether two buffers share memory because one is a part of the other."""
    (owner, begin), (other, start) = program.root(first), program.root(second)
    ends = begin + program.buffers[first].nbytes, start + program.buffers[second].nbytes
    return owner == other and max(begin, start) < min(ends)


def operators(mod: tvm.IRModule) -> int:
    """How many operators `main` has before it is cut into groups."""
    return sum(isinstance(expr, relax.Call) for _, expr in df.bindings(mod["main"]))


def _is_view(mod: tvm.IRModule, call: relax.Call) -> bool:
    if isinstance(call.op, tvm.ir.GlobalVar):
        calls = [e for _, e in df.bindings(mod[call.op]) if isinstance(e, relax.Call)]
        return all(_is_view(mod, inner) for inner in calls)
    if df.op_name(call) == "relax.call_tir":
        # What RewriteDataflowReshape asks, which makes TVM's views. A slice from the start has the
        # same pattern.
        is_reshape = relax.analysis.has_reshape_pattern(mod[call.args[0]])
        return bool(is_reshape) and _elements(call) == _elements(df.tensors(call)[0])
    return df.is_view(call)


def _elements(tensor: Any) -> int:
    return prod(df.shape_of(tensor))


def _value(expr: Any, values: dict[Any, Any]) -> Any:
    if isinstance(expr, relax.Tuple):
        return [_value(f, values) for f in expr.fields]
    if isinstance(expr, relax.TupleGetItem):
        fields = _value(expr.tuple_value, values)
        return None if fields is None else fields[expr.index]
    return values[expr] if isinstance(expr, relax.Var) else None


def _tensors(value: Any) -> list[_Tensor]:
    if isinstance(value, list):
        return [t for field in value for t in _tensors(field)]
    return [] if value is None else [value]


def _made(ty: Any) -> Any:
    if isinstance(ty, relax.TupleType):
        return [_made(f) for f in ty.fields]
    return _Tensor(prod(int(d) for d in ty.shape) * itemsize(str(ty.dtype)))


def _constant(ty: Any) -> Any:
    return [_constant(f) for f in ty.fields] if isinstance(ty, relax.TupleType) else None
