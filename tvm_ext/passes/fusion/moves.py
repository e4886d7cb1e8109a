"""Operators that only move elements, as operations on strided views.

A move is what `StridedView` has a method for, by name and arguments: ``("reshape", shape)``,
``("permute", axes)``, ``("slice", axis, begin, count, step)``, ``("broadcast", shape)`` or
``("repeat", factors)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import mul
from typing import Any

from tvm import relax

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.axes import permutation, slice_ranges
from tvm_ext.passes.fusion.enlarging import repetition
from tvm_ext.schedules.strided_view import StridedView

Move = tuple[Any, ...]
Shape = tuple[int, ...]


def moves_of(expr: Any) -> tuple[Move, ...] | None:
    """What a call does to its first argument, if it does nothing but move elements.

    None for any other expression, and where the places depend on computed values.
    """
    name = df.op_name(expr)
    if df.is_view(expr):
        return (("reshape", df.shape_of(expr)),)
    if name == "relax.broadcast_to":
        return (("broadcast", df.shape_of(expr)),)
    if name == "relax.permute_dims":
        return (("permute", permutation(expr)),)
    if name == "relax.flip":
        shape = df.shape_of(expr)
        axis = int(expr.attrs.axis) % len(shape)
        return (("slice", axis, shape[axis] - 1, shape[axis], -1),)
    if name == "relax.strided_slice":
        return slices_of(expr)
    if name == "relax.image.resize2d" and (factors := repetition(expr)) is not None:
        return (("repeat", (1, 1, *factors)),)
    return None


def repeats(expr: Any) -> bool:
    """Whether a call has each element of its argument several times."""
    return any(move[0] == "repeat" for move in moves_of(expr) or ())


def slices_of(call: relax.Call) -> tuple[Move, ...] | None:
    """The cuts of a slice, whole axes left out; None where its bounds are computed."""
    ranges, shape = slice_ranges(call), df.shape_of(call.args[0])
    if ranges is None:
        return None
    return tuple(
        ("slice", axis, kept.start, len(kept), kept.step)
        for axis, kept in ranges
        if kept != range(shape[axis])
    )


def follow(view: StridedView, moves: Sequence[Move]) -> StridedView | None:
    """The view after some moves; None where one of them would need a copy."""
    at: StridedView | None = view
    for method, *args in _shortened(moves, view.shape):
        if at is None:
            return None
        at = getattr(at, method)(*args)
    return at


def repeated(shape: Shape, moves: Sequence[Move]) -> tuple[Shape, Shape] | None:
    """The shape of a tensor of `shape`, and how often its elements come, after some moves.

    The shape has leading ones where moves add dimensions. None of moves that change the order.
    """
    factors = (1,) * len(shape)
    for method, *args in _shortened(moves, shape):
        if method == "repeat":
            factors = tuple(map(mul, factors, args[0]))
        elif method == "broadcast":
            ones = (1,) * (len(args[0]) - len(shape))
            shape, factors = ones + shape, ones + factors
        else:
            return None
    return shape, tuple(1 if n == 1 else f for n, f in zip(shape, factors, strict=True))


def inverse(moves: Sequence[Move], before: Shape) -> tuple[Move, ...] | None:
    """The moves that undo some others, which started from shape `before`.

    None where one of them drops elements, or repeats them.
    """
    shape, undone = before, []
    for move in moves:
        if move[0] == "reshape":
            undone.append(("reshape", shape))
            shape = move[1]
        elif move[0] == "permute":
            axes = move[1]
            undone.append(("permute", tuple(axes.index(a) for a in range(len(axes)))))
            shape = tuple(shape[a] for a in axes)
        else:
            return None
    return tuple(reversed(undone))


def _shortened(moves: Sequence[Move], shape: Shape) -> list[Move]:
    """The same as some moves from `shape` on, without neighbours that undo each other.

    A reshape may need a copy and the next one make up for it.
    """
    kept: list[tuple[Move, Shape]] = []
    for move in moves:
        before = shape
        if move[0] == "reshape":
            shape = move[1]
            if kept and kept[-1][0][0] == "reshape":
                before = kept.pop()[1]
            if shape != before:
                kept.append((move, before))
        elif move[0] == "permute":
            axes = move[1]
            shape = tuple(shape[a] for a in axes)
            if kept and kept[-1][0][0] == "permute":
                (_, first), before = kept.pop()
                axes = tuple(first[a] for a in axes)
            if axes != tuple(range(len(axes))):
                kept.append((("permute", axes), before))
        else:
            kept.append((move, before))
            shape = _shape_after(move, shape)
    return [move for move, _ in kept]


def _shape_after(move: Move, shape: Shape) -> Shape:
    if move[0] == "broadcast":
        return tuple(move[1])
    if move[0] == "repeat":
        return tuple(map(mul, shape, move[1]))
    _, axis, _, count, _ = move
    return (*shape[:axis], count, *shape[axis + 1 :])
