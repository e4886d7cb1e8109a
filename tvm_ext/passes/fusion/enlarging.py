"""Enlargements of images that only repeat elements."""

from __future__ import annotations

from tvm import relax

from tvm_ext.passes import dataflow as df

# Coordinates and rounding under which nearest neighbour by whole factors repeats each element.
_REPEATING = (("asymmetric", "floor"), ("half_pixel", "round_prefer_floor"))


def whole_factors(call: relax.Call) -> tuple[int, int] | None:
    """How much larger an ``image.resize2d`` makes both axes of N C H W; None of fractions."""
    before, after = df.shape_of(call.args[0])[2:], df.shape_of(call)[2:]
    factors = (after[0] // before[0], after[1] // before[1])
    whole = after == (before[0] * factors[0], before[1] * factors[1])
    return factors if whole else None


def takes_nearest(call: relax.Call) -> bool:
    """Whether each position takes the element whose part of the result it is in."""
    mode, rounding = call.attrs.coordinate_transformation_mode, call.attrs.rounding_method
    return str(call.attrs.method) == "nearest_neighbor" and (str(mode), str(rounding)) in _REPEATING


def takes_linear(call: relax.Call) -> bool:
    """Whether each position is weighted between its neighbours, at coordinates that we know."""
    mode = str(call.attrs.coordinate_transformation_mode)
    return str(call.attrs.method) == "linear" and mode in ("half_pixel", "asymmetric")


def repetition(call: relax.Call) -> tuple[int, int] | None:
    """The factors of an ``image.resize2d`` that only repeats elements."""
    if str(call.attrs.layout) != "NCHW" or not takes_nearest(call):
        return None
    return whole_factors(call)
