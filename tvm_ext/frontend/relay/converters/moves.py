"""Reshapes and transposes that are done at import where the value is known; layouts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod

import numpy as np
from tvm import relax

from tvm_ext.errors import ModelError
from tvm_ext.frontend.onnx_converters.values import const, constant, reshaped, shape_of

# One axis of a layout: its letter, and the extent of a block ("16c") or 0 for the axis itself.
_Axis = tuple[str, int]


def reshape(bb: relax.BlockBuilder, expr: relax.Expr, shape: Sequence[int]) -> relax.Expr:
    """Reshape; as it is if the shape is its own."""
    if shape_of(expr) == tuple(shape):
        return expr
    return bb.normalize(reshaped(expr, shape)) if constant(expr) is not None else bb.emit(
        relax.op.reshape(expr, tuple(shape))
    )  # fmt: skip


def permute(bb: relax.BlockBuilder, expr: relax.Expr, axes: Sequence[int]) -> relax.Expr:
    """Transpose; as it is if the order stays."""
    if list(axes) == list(range(len(axes))):
        return expr
    value = constant(expr)
    if value is not None:
        return const(value.transpose(axes))
    return bb.emit(relax.op.permute_dims(expr, list(axes)))


def relayout(bb: relax.BlockBuilder, expr: relax.Expr, source: str, target: str) -> relax.Expr:
    """Bring a tensor from one of Relay's layouts into another.

    Parameters
    ----------
    bb : relax.BlockBuilder
    expr : relax.Expr
    source, target : str
        Layouts of the same axes: "NCHW", "NHWC", "NCHW16c", "OIHW4i16o4i", ...

    Raises
    ------
    ModelError
        A layout can't be read, the axes differ, or an extent isn't a multiple of its block.
    """
    if source == target:
        return expr
    before, after = parse_layout(source), parse_layout(target)
    letters = [letter for letter, block in before if not block]
    wanted = [letter for letter, block in after if not block]
    shape = shape_of(expr)
    if sorted(letters) != sorted(wanted):
        raise ModelError(f"the layouts {source} and {target} have different axes")
    if len(shape) != len(before):
        raise ModelError(f"a tensor of {len(shape)} dimensions can't have the layout {source}")
    # Blocks join their axes: (N, C, H, W, 16c) -> (N, C, 16c, H, W) -> (N, C * 16, H, W).
    order = [i for letter in letters for i, axis in enumerate(before) if axis[0] == letter]
    expr = permute(bb, expr, order)
    extents = {x: prod(shape[i] for i, a in enumerate(before) if a[0] == x) for x in letters}
    expr = reshape(bb, expr, [extents[letter] for letter in letters])
    expr = permute(bb, expr, [letters.index(letter) for letter in wanted])
    if len(after) == len(wanted):
        return expr
    # And are split off the other way.
    split: list[_Axis] = []
    sizes: list[int] = []
    for letter in wanted:
        blocks = [block for x, block in after if x == letter and block]
        if extents[letter] % prod(blocks):
            raise ModelError(
                f"axis {letter} has the extent {extents[letter]}, which {target} can't divide"
            )
        split += [(letter, 0), *((letter, block) for block in blocks)]
        sizes += [extents[letter] // prod(blocks), *blocks]
    expr = reshape(bb, expr, sizes)
    # Two blocks of one axis keep their order, so that the first unused one is the right one.
    order, free = [], list(range(len(split)))
    for axis in after:
        order.append(next(i for i in free if split[i] == axis))
        free.remove(order[-1])
    return permute(bb, expr, order)


def parse_layout(layout: str) -> list[_Axis]:
    """Take a layout apart: "NCHW16c" -> [("N", 0), ("C", 0), ("H", 0), ("W", 0), ("C", 16)]."""
    parts = re.findall(r"([A-Z])|(\d+)([a-z])", layout)
    if "".join("".join(part) for part in parts) != layout or not parts:
        raise ModelError(f"{layout!r} is no layout; one looks like NCHW or NCHW16c")
    axes = [(upper, 0) if upper else (lower.upper(), int(n)) for upper, n, lower in parts]
    plain = [letter for letter, block in axes if not block]
    if len(set(plain)) < len(plain) or any(block and x not in plain for x, block in axes):
        raise ModelError(f"{layout!r} is no layout: an axis is there twice, or only as a block")
    return axes


def along_axis(bb: relax.BlockBuilder, vector: relax.Expr, axis: int, rank: int) -> relax.Expr:
    """Return a vector in the shape that broadcasts along one axis of a tensor.

    The last axis needs no reshape.
    """
    axis %= rank
    size = int(np.prod(shape_of(vector), dtype="int64"))
    if axis == rank - 1:
        return reshape(bb, vector, (size,))
    return reshape(bb, vector, [size if i == axis else 1 for i in range(rank)])
