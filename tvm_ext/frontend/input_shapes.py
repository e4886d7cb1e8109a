"""Checks of the shapes that a user gives for a model's inputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral

from tvm_ext.errors import InputShapeError


def check_unknown(input_shapes: Mapping[str, object], allowed: Iterable[str]) -> None:
    """Raise InputShapeError if `input_shapes` names an input that the model doesn't have."""
    allowed = list(allowed)
    unknown = [name for name in input_shapes if name not in allowed]
    if unknown:
        raise InputShapeError(
            f"input_shapes names unknown inputs {unknown}; the model's inputs are {allowed}"
        )


def check_shape(name: str, shape: Sequence[int], rank: int | None) -> tuple[int, ...]:
    """Return `shape` as a tuple of ints, or raise InputShapeError naming input and dimension."""
    if isinstance(shape, str | int) or not isinstance(shape, Sequence):
        raise InputShapeError(f"input {name!r}: the shape must be a tuple of ints, not {shape!r}")
    for i, dim in enumerate(shape):
        if isinstance(dim, bool) or not isinstance(dim, Integral):
            raise InputShapeError(f"input {name!r}, dimension {i}: {dim!r} isn't an int")
        if dim <= 0:
            raise InputShapeError(f"input {name!r}, dimension {i}: {dim} must be at least 1")
    if rank is not None and len(shape) != rank:
        raise InputShapeError(
            f"input {name!r} has {rank} dimensions, input_shapes gives {len(shape)}: {tuple(shape)}"
        )
    return tuple(int(dim) for dim in shape)


def dynamic_error(name: str, axis: int, symbol: str, dims: Sequence[int | None]) -> InputShapeError:
    """Return the error for a dimension that isn't known, with the argument that would set it."""
    example = tuple(1 if dim is None else dim for dim in dims)
    return InputShapeError(
        f"input {name!r}, dimension {axis} is dynamic ({symbol or 'unnamed'}): "
        f"pass its shape, for example input_shapes={{{name!r}: {example}}}"
    )
