"""Enlarging images by whole factors: nearest neighbour and linear interpolation.

In the channel-blocked layout every element is a vector of channels; the model's own layout is
there for what has few channels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

import numpy as np
from tvm import tirx
from tvm.script.ir_builder import tirx as T

from tvm_ext.schedules import costs, emit
from tvm_ext.schedules.base import YES, Algorithm, Params, Support, register
from tvm_ext.schedules.layout import stored_shape
from tvm_ext.target import CpuTarget

_FLOPS = {"nearest": 0, "linear": 9}


@dataclass(frozen=True)
class ResizeWorkload:
    """(N, C, H, W) to (N, C, H * factors[0], W * factors[1]).

    `kind` is ``nearest`` (each element repeated) or ``linear``, whose positions and fractions
    along both axes are weights, as `linear_taps` makes them.
    """

    kind: str
    shape: tuple[int, ...]
    factors: tuple[int, int]

    @property
    def out_shape(self) -> tuple[int, ...]:
        n, c, height, width = self.shape
        return (n, c, height * self.factors[0], width * self.factors[1])

    @property
    def flops(self) -> int:
        return prod(self.out_shape) * _FLOPS[self.kind]

    @property
    def bytes(self) -> int:
        return 4 * (prod(self.shape) + prod(self.out_shape))


def linear_taps(size: int, factor: int, half_pixel: bool) -> tuple[np.ndarray, np.ndarray]:
    """The lower of the two neighbours of each output position, and how far it is from it.

    Parameters
    ----------
    size, factor : int
        Of the input, and of the enlargement.
    half_pixel : bool
        Whether pixels are areas (ONNX's half_pixel), or points whose first ones coincide
        (asymmetric).

    Returns
    -------
    tuple of ndarray
        int32 and float32, of size * factor elements.
    """
    x = np.arange(size * factor, dtype="float64")
    x = (x + 0.5) / factor - 0.5 if half_pixel else x / factor
    x = x.clip(0, size - 1)
    low = np.floor(x)
    return low.astype("int32"), (x - low).astype("float32")


@register
class Resize(Algorithm[ResizeWorkload]):
    """A task is a row of the input (nearest) or of the output (linear).

    Parameter of the plan: `parallel`, whether threads share the rows.
    """

    name: ClassVar[str] = "resize"
    workload_type: ClassVar[type] = ResizeWorkload

    def supports(self, workload: ResizeWorkload, target: CpuTarget) -> Support:
        return YES

    def layouts(self, workload: ResizeWorkload, target: CpuTarget) -> tuple[tuple[int, int], ...]:
        return ((target.lanes, target.lanes), (0, 0))

    def space(self, workload: ResizeWorkload, target: CpuTarget) -> dict[str, tuple[Any, ...]]:
        return {"parallel": (False, True)}

    def default(self, workload: ResizeWorkload, target: CpuTarget) -> dict[str, Any]:
        return {"parallel": costs.copies_in_parallel(workload.bytes, target)}

    def cost(self, workload: ResizeWorkload, params: Params, target: CpuTarget) -> float:
        return costs.copy_cost(workload.bytes, params["parallel"], target)

    def kernel(
        self, workload: ResizeWorkload, params: Params, target: CpuTarget, layout: tuple[int, int]
    ) -> tirx.PrimFunc:
        body = _emit_nearest if workload.kind == "nearest" else _emit_linear
        return emit.build(lambda: body(workload, params, layout[0]))


def _emit_nearest(w: ResizeWorkload, params: Params, block: int) -> None:
    """Read each element once, write it to its rectangle."""
    stored = stored_shape(w.shape, block)
    _, _, height, width = w.shape
    data = emit.argument("data", stored)
    out = emit.argument("out", stored_shape(w.out_shape, block))
    fy, fx = w.factors
    with (
        emit.tasks(params["parallel"], *stored[:2], height) as (n, plane, y),
        emit.nest((fy, width)) as (i, x),
        emit.loop(fx, "unroll") as j,
        emit.loop(block or 1, "vectorized") as lane,
    ):
        last = [lane] if block else []
        value = data[(n, plane, y, x, *last)]
        T.buffer_store(out, value, [n, plane, y * fy + i, x * fx + j, *last])


def _emit_linear(w: ResizeWorkload, params: Params, block: int) -> None:
    """Four neighbours for each element, weighted along both axes."""
    stored = stored_shape(w.shape, block)
    data = emit.argument("data", stored)
    taps = declare_taps(w)
    out = emit.argument("out", stored_shape(w.out_shape, block))
    with (
        emit.tasks(params["parallel"], *stored[:2], w.out_shape[2]) as (n, plane, y),
        emit.loop(w.out_shape[3]) as x,
        emit.loop(block or 1, "vectorized") as lane,
    ):
        last = [lane] if block else []
        value = interpolated(w, taps, data, (n, plane), y, x, last)
        T.buffer_store(out, value, [n, plane, y, x, *last])


def declare_taps(w: ResizeWorkload) -> list[Any]:
    """Declare the weights of a linear enlargement: places and fractions of rows and of columns."""
    return [
        emit.argument(name, (size,), dtype)
        for axis, size in zip(("row", "column"), w.out_shape[2:], strict=True)
        for name, dtype in ((f"{axis}s", "int32"), (f"{axis}_fractions", "float32"))
    ]


def interpolated(
    w: ResizeWorkload, taps: Sequence[Any], data: Any, lead: Sequence[Any], y: Any, x: Any,
    last: Sequence[Any],
) -> tirx.Expr:  # fmt: skip
    """An element of a linear enlargement; `lead` and `last` are the indices around y and x."""
    rows, row_fractions, columns, column_fractions = taps
    _, _, height, width = w.shape
    one, fy, fx = tirx.const(1.0, "float32"), row_fractions[y], column_fractions[x]

    def along_row(row: Any) -> tirx.Expr:
        left, right = columns[x], tirx.min(columns[x] + 1, width - 1)
        a, b = (data[(*lead, row, column, *last)] for column in (left, right))
        return a * (one - fx) + b * fx

    above, below = along_row(rows[y]), along_row(tirx.min(rows[y] + 1, height - 1))
    return above * (one - fy) + below * fy
