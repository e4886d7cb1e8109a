"""Operators that read the same value, each with the elementwise ones that only it feeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tvm_ffi
from tvm import relax

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.elementwise import scalar_name
from tvm_ext.passes.rewriting.cost import Cost

Emit = Callable[[Any], Any]

# Operators in a branch: as many as a layer fuses.
_MOST = 16


@dataclass(frozen=True)
class Branch:
    """A call with constant weights, and the elementwise operators after it.

    Attributes
    ----------
    calls : tuple of (Var, Call)
        In order. All but the first read earlier ones, each of the last one's shape, and constants.
    exits : tuple of bool
        For each call, whether no earlier one is read by anything after it.
    readers : tuple of tuple of Expr
        For each call, what reads it; None for the function's result.
    source : Expr
        What the first call's first argument is bound to; None for a parameter.
    siblings : int
        How many read that argument, this branch included.
    """

    calls: tuple[tuple[Any, Any], ...]
    exits: tuple[bool, ...]
    readers: tuple[tuple[Any, ...], ...]
    source: Any
    siblings: int

    @property
    def anchor(self) -> relax.Call:
        """The first call."""
        return self.calls[0][1]

    def fused_after(self, count: int) -> bool:
        """Whether an elementwise operator that would be fused follows the first `count` calls."""
        return any(scalar_name(reader) for reader in self.readers[count - 1])

    def inner(self, count: int) -> dict[Any, Any]:
        """The first `count` calls but the last."""
        return dict(self.calls[: count - 1])


@dataclass(frozen=True)
class Merger:
    """How branches become one.

    Attributes
    ----------
    shared : Expr
        What all branches read: a variable, or a tuple of what it is made of.
    roots : tuple of Var
        What is replaced, in the order of the branches.
    build : callable
        ``build(shared, emit)``: the expressions for them, given what `shared` has become.
    before, after : Cost
    """

    shared: Any
    roots: tuple[Any, ...]
    build: Callable[[Any, Emit], list[Any]]
    before: Cost
    after: Cost


def grow(var: relax.Var, values: Mapping[Any, Any], users: Mapping[Any, list[Any]]) -> Branch:
    """The longest branch that starts at a variable.

    Parameters
    ----------
    values, users : dict
        The function's bindings, and for each variable those that read it, in order.
    """
    calls = {var: values[var]}
    waiting = list(users.get(var, ()))
    shape = df.shape_of(var)
    while waiting and len(calls) < _MOST:
        reader = waiting.pop(0)
        if reader is None or reader in calls or not _joins(values[reader], calls, shape):
            continue
        calls[reader] = values[reader]
        waiting += users.get(reader, ())
    order = list(calls)
    exits = tuple(_exits(order[: i + 1], users) for i in range(len(order)))
    readers = tuple(
        tuple(None if u is None else values[u] for u in users.get(v, ())) for v in order
    )
    shared = values[var].args[0]
    return Branch(
        tuple(calls.items()), exits, readers, values.get(shared), len(users.get(shared, ()))
    )


def _joins(call: Any, calls: Mapping[Any, Any], shape: tuple[int, ...]) -> bool:
    return (
        bool(scalar_name(call))
        and df.shape_of(call) == shape
        and all(v in calls for v in df.free_vars(call))
    )


def _exits(inside: Sequence[Any], users: Mapping[Any, list[Any]]) -> bool:
    members = set(inside)
    return all(user in members for var in inside[:-1] for user in users.get(var, ()))


def common_length(branches: Sequence[Branch], axis: int) -> int:
    """How many calls of each branch, the first included, can be made for all at once."""
    longest = min(len(b.calls) for b in branches)
    same = 1
    while same < longest and _alike(branches, same, axis):
        same += 1
    return max(n for n in range(1, same + 1) if n == 1 or all(b.exits[n - 1] for b in branches))


def _alike(branches: Sequence[Branch], index: int, axis: int) -> bool:
    """Whether all branches do the same in one place, up to constants along `axis`."""
    first = branches[0].calls[index][1]
    return all(_matches(first, branches[0], b.calls[index][1], b, axis) for b in branches)


def _matches(a: relax.Call, of_a: Branch, b: relax.Call, of_b: Branch, axis: int) -> bool:
    if a.op != b.op or len(a.args) != len(b.args) or df.dtype_of(a) != df.dtype_of(b):
        return False
    if a.attrs is not None and not tvm_ffi.structural_equal(a.attrs, b.attrs):
        return False
    return all(
        _operand(x, of_a, axis) == _operand(y, of_b, axis)
        for x, y in zip(a.args, b.args, strict=True)
    )


def _operand(expr: Any, branch: Branch, axis: int) -> Any:
    """What has to agree of an argument: the place of a call, a number, a constant's rank."""
    if isinstance(expr, relax.Var):
        return [v for v, _ in branch.calls].index(expr)
    value = df.value_of(expr)
    if value is None:
        return str(expr)
    if value.size == 1:
        return float(value.reshape(())), value.shape
    # One number for each channel: its place is counted from the end, as broadcasting does.
    back = axis - len(df.shape_of(branch.anchor))
    along = [i - value.ndim for i, d in enumerate(value.shape) if d != 1]
    return value.ndim if along == [back] else branch


def merge_calls(
    branches: Sequence[Branch], count: int, anchor: relax.Call, axis: int, emit: Emit
) -> Any:
    """The first `count` calls of all branches at once, after an anchor for all along `axis`."""

    def joined(index: int, number: int) -> Any:
        return _joined([branch.calls[index][1] for branch in branches], number, axis)

    return remake(branches[0], count, anchor, emit, joined)


def remake(
    branch: Branch,
    count: int,
    anchor: relax.Call,
    emit: Emit,
    constant: Callable[[int, int], Any],
) -> Any:
    """The first `count` calls of a branch after another anchor.

    ``constant(i, j)`` stands in place of argument j of call i, where that isn't an earlier call.
    """
    made = {branch.calls[0][0]: emit(anchor)}
    for index, (var, call) in enumerate(branch.calls[1:count], 1):
        args = [
            made[arg] if isinstance(arg, relax.Var) else constant(index, number)
            for number, arg in enumerate(call.args)
        ]
        made[var] = emit(relax.Call(call.op, args, call.attrs, call.ty_args))
    return made[branch.calls[count - 1][0]]


def _joined(calls: Sequence[relax.Call], number: int, axis: int) -> Any:
    """An argument of all calls: the constants one after the other along the channels."""
    values = [df.value_of(call.args[number]) for call in calls]
    first = values[0]
    if first is None or first.size == 1:
        return calls[0].args[number]
    back = axis - len(df.shape_of(calls[0]))
    return df.constant(np.concatenate([v for v in values if v is not None], back))
