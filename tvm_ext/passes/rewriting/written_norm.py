"""What rules want of a normalisation that was written out, before one operator stands for it."""

from __future__ import annotations

from tvm_ext.passes import dataflow as df
from tvm_ext.passes.axes import reduced_axes
from tvm_ext.passes.rewriting.pattern import Match, Op, Value

_X = Value("x")
CENTRED = Op("subtract", _X, Op("mean", _X, name="mean"), name="centred")
"""``x`` without its ``mean``: the inner part of a layer norm."""
# For which TVM has such operators.
_DTYPES = ("float16", "float32")


def refuses_norm(match: Match, weights: tuple[str, ...]) -> str:
    """Why no normalisation of ``x`` by its ``mean`` is one operator; an empty string if it is.

    Parameters
    ----------
    match : Match
    weights : tuple of str
        Names of what multiplies the normalised values, or is added to them.
    """
    shape, mean = df.shape_of(match["x"]), match["mean"]
    axes = reduced_axes(mean)
    if not mean.attrs.keepdims:
        return "the mean doesn't keep its axes"
    if axes != tuple(range(axes[0], len(shape))):
        return f"axes {axes} aren't the last ones"
    for name in weights:
        if df.shape_of(match[name]) != shape[axes[0] :]:
            return f"{name} has the shape {df.shape_of(match[name])}"
    dtype = df.dtype_of(match["x"])
    return "" if dtype in _DTYPES else f"x is {dtype}; allowed: {', '.join(_DTYPES)}"
