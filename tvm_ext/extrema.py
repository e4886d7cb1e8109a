"""Maxima and minima along axes, and where they are, as numpy has them.

TVM's own start from the largest finite number, drop NaN by the order in which they meet it, and
give the index -1, outside of the tensor, for a row that is all infinite.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tvm
from tvm import relax, te, tirx

from tvm_ext.schedules import scalar_math as sm

Element = Callable[..., tirx.Expr]


def _worst(dtype: str, largest: bool) -> tirx.Expr:
    """What every number beats or equals."""
    if dtype.startswith("float"):
        return tirx.const(float("-inf" if largest else "inf"), dtype)
    return tirx.min_value(dtype) if largest else tirx.max_value(dtype)


def _is_nan(x: tirx.Expr) -> tirx.Expr:
    floating = sm.dtype_of(x).startswith("float")
    return tirx.isnan(x) if floating else tirx.const(False, "bool")


def _extremum(largest: bool) -> Callable[[te.Tensor, Any, bool], te.Tensor]:
    """The reduction of a tensor to its largest or smallest numbers; NaN if one is NaN."""
    reducer = te.comm_reducer(
        sm.maximum if largest else sm.minimum, lambda dtype: _worst(dtype, largest)
    )

    def compute(x: te.Tensor, axes: Any, keepdims: bool) -> te.Tensor:
        shape, reduced, element = _reduction(x, axes, keepdims)
        return te.compute(shape, lambda *at: reducer(element(*at), axis=reduced), "extremum")

    return compute


def _position(largest: bool) -> Callable[[te.Tensor, Any, bool], te.Tensor]:
    """The first index of the largest or smallest number, or of NaN if there is one."""

    def better(a: Any, b: Any) -> tuple[tirx.Expr, tirx.Expr]:
        (i, x), (j, y) = a, b
        beats = x > y if largest else x < y
        beats = tirx.any(beats, tirx.all(_is_nan(x), tirx.Not(_is_nan(y))))
        same = tirx.any(tirx.EQ(x, y), tirx.all(_is_nan(x), _is_nan(y)))
        left = tirx.any(beats, tirx.all(same, i < j))
        return tirx.Select(left, i, j), tirx.Select(left, x, y)

    def identity(index: str, dtype: str) -> tuple[tirx.Expr, tirx.Expr]:
        # Past every index, so that it loses against whatever is as bad.
        return tirx.max_value(index), _worst(dtype, largest)

    reducer = te.comm_reducer(better, identity)

    def compute(x: te.Tensor, axis: Any, keepdims: bool) -> te.Tensor:
        axes = None if axis is None else [axis]
        shape, reduced, element = _reduction(x, axes, keepdims)

        def both(*at: tirx.Var) -> Any:
            number = tirx.const(0, "int64")
            for k in reduced:
                number = number * k.dom.extent.astype("int64") + k.var.astype("int64")
            return reducer((number, element(*at)), axis=reduced)

        pairs = te.compute(shape, both, "position_and_extremum")
        return te.compute(shape, lambda *at: pairs[0](*at), "position")

    return compute


def _reduction(
    x: te.Tensor, axes: Sequence[Any] | None, keepdims: bool
) -> tuple[list[Any], list[Any], Element]:
    """Shape of the result, the reduced axes, and the element that they and an index lead to."""
    rank = len(x.shape)
    chosen = sorted({int(a) % rank for a in (range(rank) if axes is None else axes)})
    reduced = [te.reduce_axis((0, x.shape[a]), f"k{a}") for a in chosen]
    kept = [a for a in range(rank) if a not in chosen]
    shape = [1 if a in chosen else x.shape[a] for a in (range(rank) if keepdims else kept)]

    def element(*at: tirx.Var) -> tirx.Expr:
        outer = dict(zip(range(rank) if keepdims else kept, at, strict=True))
        outer.update(zip(chosen, reduced, strict=True))
        return x(*(outer[a] for a in range(rank)))

    return shape, reduced, element


def _legalization(compute: Callable[..., te.Tensor], name: str) -> Callable[..., relax.Expr]:
    def legalize(builder: relax.BlockBuilder, call: tvm.ir.Call) -> relax.Expr:
        attrs = call.attrs
        return builder.call_te(
            compute, call.args[0], attrs.axis, attrs.keepdims, primfunc_name_hint=name
        )

    return legalize


LEGALIZATIONS = {
    "relax.max": _legalization(_extremum(largest=True), "max"),
    "relax.min": _legalization(_extremum(largest=False), "min"),
    "relax.argmax": _legalization(_position(largest=True), "argmax"),
    "relax.argmin": _legalization(_position(largest=False), "argmin"),
}
"""What ``relax.transform.LegalizeOps`` takes as its map of legalisations."""
