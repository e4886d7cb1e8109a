"""Reading and rebuilding the straight-line Relax functions that every pass here works on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import tvm
from tvm import relax
from tvm.ir import GenericConst as Constant

from tvm_ext.errors import ModelError

Env = dict[Any, Any]

# Operators whose result has the elements of their first argument in the same order.
VIEWS = frozenset({"relax.reshape", "relax.flatten", "relax.squeeze", "relax.expand_dims"})


def bindings(func: relax.Function) -> list[tuple[relax.Var, Any]]:
    """The (variable, expression) pairs of a function, in order.

    Raises
    ------
    ModelError
        The function has control flow, which has to be gone (folded or unrolled) by now.
    """
    pairs = []
    for block in func.body.blocks:
        for binding in block.bindings:
            if not isinstance(binding, relax.VarBinding) or isinstance(binding.value, relax.If):
                raise ModelError(f"control flow at {binding.var.name} is not supported")
            pairs.append((binding.var, binding.value))
    return pairs


def result(func: relax.Function) -> Any:
    """The expression that the function returns."""
    return func.body.body


def substitute(expr: Any, env: Env) -> Any:
    """`expr` with the variables of `env` replaced; nested tuples and calls included."""
    if isinstance(expr, relax.Var):
        return env.get(expr, expr)
    if isinstance(expr, relax.Call):
        args = [substitute(a, env) for a in expr.args]
        return relax.Call(expr.op, args, expr.attrs, expr.ty_args, expr.span)
    if isinstance(expr, relax.Tuple):
        return relax.Tuple([substitute(f, env) for f in expr.fields])
    if isinstance(expr, relax.TupleGetItem):
        return _get_item(substitute(expr.tuple_value, env), expr.index)
    return expr


def _get_item(value: Any, index: int) -> Any:
    return (
        value.fields[index] if isinstance(value, relax.Tuple) else relax.TupleGetItem(value, index)
    )


def rebuild(
    mod: tvm.IRModule,
    rewrite: Callable[[relax.BlockBuilder, relax.Var, Any], Any],
    name: str = "main",
) -> tvm.IRModule:
    """Rewrite one function binding by binding.

    Parameters
    ----------
    rewrite : callable
        Gets the builder, the old variable and its expression, with earlier results already
        substituted. Returns the expression to bind; a constant, variable or tuple is not bound but
        put in place of the variable. It may emit further bindings through the builder.
    """
    func = mod[name]
    builder = relax.BlockBuilder(
        tvm.IRModule({gv: f for gv, f in mod.functions.items() if gv.name_hint != name})
    )
    env: Env = {}
    with builder.function(name, list(func.params), attrs=dict(func.attrs or {})):
        with builder.dataflow():
            for var, value in bindings(func):
                new = rewrite(builder, var, substitute(value, env))
                if isinstance(new, (Constant, relax.Var, relax.Tuple)):
                    env[var] = new
                else:
                    env[var] = builder.emit(new, var.name)
            output = builder.emit_output(substitute(result(func), env))
        builder.emit_func_output(output)
    return builder.get()


def uses(func: relax.Function) -> dict[Any, list[Any]]:
    """For every variable, the variables whose expressions read it; the result reads as None."""
    readers: dict[Any, list[Any]] = {}
    for var, value in bindings(func):
        for operand in free_vars(value):
            readers.setdefault(operand, []).append(var)
    for operand in free_vars(result(func)):
        readers.setdefault(operand, []).append(None)
    return readers


def free_vars(expr: Any) -> Iterator[relax.Var]:
    """The variables in an expression, in order, repeated as they occur."""
    if isinstance(expr, relax.Var):
        yield expr
    elif isinstance(expr, relax.Call):
        yield from _each(expr.args)
    elif isinstance(expr, relax.Tuple):
        yield from _each(expr.fields)
    elif isinstance(expr, relax.TupleGetItem):
        yield from free_vars(expr.tuple_value)


def _each(exprs: Iterable[Any]) -> Iterator[relax.Var]:
    for expr in exprs:
        yield from free_vars(expr)


def tensors(call: relax.Call) -> list[Any]:
    """The tensor arguments of a call, fields of tuples in order."""
    fields = (f for a in call.args for f in (a.fields if isinstance(a, relax.Tuple) else [a]))
    return [f for f in fields if isinstance(f.ty, relax.TensorType)]


def op_name(expr: Any) -> str:
    """The operator's name of a call (``relax.nn.conv2d``), else an empty string."""
    if isinstance(expr, relax.Call) and isinstance(expr.op, tvm.ir.Op):
        return str(expr.op.name)
    return ""


def is_view(expr: Any) -> bool:
    """Whether an expression has the elements of its first argument under another shape."""
    return op_name(expr) in VIEWS


def shape_of(expr: Any) -> tuple[int, ...]:
    """The static shape of a tensor expression.

    Raises
    ------
    ModelError
        A dimension is symbolic.
    """
    shape = expr.ty.shape
    if shape is None:
        raise ModelError(f"the shape of {expr} is unknown")
    dims = []
    # Iterating over the shape itself takes twice as long, and this is asked very often.
    for dim in getattr(shape, "values", shape):
        if not isinstance(dim, (int, tvm.tirx.IntImm)):
            raise ModelError(f"dimension {dim} is not static; bind it with input_shapes")
        dims.append(int(dim))
    return tuple(dims)


def dtype_of(expr: Any) -> str:
    """The element type of a tensor expression, as numpy names it."""
    return str(expr.ty.dtype)


def value_of(expr: Any) -> np.ndarray | None:
    """The array of a constant, else None."""
    return expr.value.numpy() if isinstance(expr, Constant) else None


def view_of(expr: Any) -> np.ndarray | None:
    """The array of a constant as it is in memory, read-only, else None.

    Uses of one constant give the same memory: the weights of a recurrent cell occur in each step.
    """
    if not isinstance(expr, Constant):
        return None
    view = np.from_dlpack(expr.value)
    view.flags.writeable = False
    return view


def constant(array: np.ndarray) -> Constant:
    """A Relax constant holding `array`."""
    # Unlike `ascontiguousarray`, this keeps an array without dimensions as it is.
    return relax.const(np.asarray(array, order="C"), str(array.dtype))
