"""The epilogue inside a kernel: its operands' arguments, and its expression at a position."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from tvm import tirx

from tvm_ext.schedules import emit
from tvm_ext.schedules.emit import Index
from tvm_ext.schedules.epilogue import Epilogue, Operand
from tvm_ext.schedules.layout import operand_shape
from tvm_ext.schedules.window import unflatten
from tvm_ext.schedules.workload import Shape


def declare_operands(epilogue: Epilogue, block: int, prefix: str = "x") -> list[Any]:
    """Declare one argument for each operand of the epilogue, in the output's layout.

    An operand with a view is a flat tensor. The names start with `prefix`.
    """
    return [
        emit.argument(
            f"{prefix}{i}",
            (o.size,) if o.view is not None else operand_shape(o.shape, block),
            o.dtype,
        )
        for i, o in enumerate(epilogue.operands)
    ]


def lifted_epilogue(
    epilogue: Epilogue, operands: Sequence[Any], out: Shape, block: int
) -> tuple[Epilogue, list[Any]]:
    """The epilogue and its operands, viewed under the spatial dimensions `out` of the kernel.

    The kernel has more dimensions than the model, or one row of all positions.
    """
    lifted = tuple(_lifted(operand, out) for operand in epilogue.operands)
    views = [
        _RepeatedRow(x, own)
        if own.repeat and not seen.repeat
        else emit.view(x, operand_shape(seen.shape, block), own.dtype)
        for x, own, seen in zip(operands, epilogue.operands, lifted, strict=True)
    ]
    return replace(epilogue, operands=lifted), views


def _lifted(operand: Operand, out: Shape) -> Operand:
    n, c, *spatial = operand.shape
    if len(out) > len(spatial):
        ones = (1,) * (len(out) - len(spatial))
        repeat = operand.factors[:2] + ones + operand.factors[2:] if operand.repeat else ()
        return replace(operand, shape=(n, c, *ones, *spatial), repeat=repeat)
    positions = prod(operand.seen[2:])
    if out[0] == 1 and len(out) == 2 and positions in (1, out[1]):
        return replace(operand, shape=(n, c, 1, positions), repeat=())
    return operand


def whole_operands(
    epilogue: Epilogue, operands: Sequence[Any], out_shape: Sequence[int]
) -> list[Any]:
    """The operands that have an element for each of the output's, where the output has it."""
    return [
        x
        for x, o in zip(operands, epilogue.operands, strict=True)
        if o.shape == tuple(out_shape) and not o.repeat and o.view is None
    ]


class _RepeatedRow:
    """An operand with repeated elements, read at positions that are numbered in one row."""

    def __init__(self, buffer: Any, operand: Operand) -> None:
        self._buffer, self._operand = buffer, operand

    def __getitem__(self, index: tuple[Index, ...]) -> tirx.Expr:
        n, c, _, position, *lane = index
        place = self._operand.place([n, c, *unflatten(position, self._operand.seen[2:])])
        return self._buffer[(*place, *lane)]


def apply_epilogue(
    epilogue: Epilogue,
    operands: Sequence[Any],
    block: int,
    index: Sequence[Index],
    results: Sequence[tirx.Expr],
) -> tirx.Expr:
    """The epilogue's expression at `index`, which is in the stored (blocked or plain) output."""

    def load(j: int) -> tirx.Expr:
        operand = epilogue.operands[j]
        if block == 0:
            return operands[j][tuple(operand.place(index))]
        *outer, lane = index
        at = operand.place(outer)
        return operands[j][tuple(at if operand.shape[1] == 1 else [*at, lane])]

    return epilogue.evaluate(results, load)


def rowwise_epilogue(
    epilogue: Epilogue, operands: Sequence[Any], out_shape: Sequence[int]
) -> Callable[[Index, Index, tirx.Expr], tirx.Expr]:
    """The epilogue of a kernel that sees its output as rows x the last dimension.

    Returns a function of (row, column, result). Operands are broadcast against `out_shape`; one
    that is constant over all rows, or has every row, costs no index arithmetic.
    """
    leading, last = tuple(out_shape[:-1]), out_shape[-1]
    rows = 1
    for extent in leading:
        rows *= extent

    def loader(shape: tuple[int, ...], buffer: Any, dtype: str) -> Callable[..., tirx.Expr]:
        lead = (1,) * (len(leading) + 1 - len(shape)) + tuple(shape[:-1])
        width = shape[-1] if shape else 1
        given = 1
        for extent in lead:
            given *= extent
        flat = emit.view(buffer, (given, width), dtype)

        def load(row: Index, column: Index) -> tirx.Expr:
            at: Index = 0
            if given == rows:
                at = row
            elif given > 1:
                below = rows
                for extent, own in zip(leading, lead, strict=True):
                    below //= extent
                    at = at * own + (row // below % extent if own > 1 else 0)
            return flat[at, column if width == last and width > 1 else 0]

        return load

    loads = [loader(o.shape, x, o.dtype) for o, x in zip(epilogue.operands, operands, strict=True)]
    return lambda row, column, result: epilogue.evaluate([result], lambda j: loads[j](row, column))
