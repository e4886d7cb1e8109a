"""Static shapes for a program's inputs, and values for its dynamic dimensions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy
import torch
from torch.export import ExportedProgram

from tvm_ext.errors import InputShapeError, ModelError
from tvm_ext.frontend.input_shapes import check_shape, check_unknown, dynamic_error
from tvm_ext.frontend.torch_program import known_inputs, tensor_inputs

# What torch has for the value of a number in a program.
NUMBERS = (int, float, torch.SymInt, torch.SymFloat, torch.SymBool)


@dataclass(frozen=True)
class BoundInputs:
    """What the importer knows before the first operator.

    Attributes
    ----------
    shapes : dict of str to tuple of int
        Of the inputs that stay inputs, in order.
    known : dict of str to Any
        Placeholder name -> its value, for all others.
    symbols : dict of sympy.Symbol to int
        Values of the dynamic dimensions.
    """

    shapes: dict[str, tuple[int, ...]]
    known: dict[str, Any]
    symbols: dict[sympy.Symbol, int]

    def number(self, value: Any) -> Any:
        """A number of the program, symbolic or not, as a Python number; None if it isn't known."""
        if not isinstance(value, NUMBERS[2:]):
            return value
        result = value.node.expr.subs(self.symbols)
        if result.free_symbols:
            return None
        if isinstance(value, torch.SymBool):
            return bool(result)
        return int(result) if isinstance(value, torch.SymInt) else float(result)

    def shape(self, tensor: torch.Tensor) -> tuple[int | None, ...]:
        """The shape of one of the program's (fake) tensors; None where it depends on data."""
        return tuple(self.number(dim) for dim in tensor.shape)


def bind_inputs(
    program: ExportedProgram,
    input_shapes: Mapping[str, Sequence[int]],
    params: Mapping[str, np.ndarray],
) -> BoundInputs:
    """Give every dimension of every input a value.

    Parameters
    ----------
    program : ExportedProgram
        From `prepare_program`.
    input_shapes : Mapping[str, Sequence[int]]
        Input name -> shape; needed where the program has a dynamic dimension.
    params : Mapping[str, np.ndarray]
        Input name -> value to bind.

    Returns
    -------
    BoundInputs

    Raises
    ------
    InputShapeError, ModelError
    """
    tensors = {node.name: node.meta["val"] for node in tensor_inputs(program)}
    unknown = sorted(set(params) - set(tensors))
    if unknown:
        raise ModelError(f"params has unknown names {unknown}; the program's are {list(tensors)}")
    check_unknown(input_shapes, tensors)
    values = {name: torch.from_numpy(np.array(array)) for name, array in params.items()}
    given = {name: tuple(value.shape) for name, value in values.items()}
    for name, shape in input_shapes.items():
        given[name] = check_shape(name, shape, tensors[name].dim())
    symbols = _solve(tensors, given)
    _check_ranges(program, symbols)

    bound = BoundInputs({}, known_inputs(program), symbols)
    for name, tensor in tensors.items():
        dims = bound.shape(tensor)
        for axis, dim in enumerate(dims):
            if dim is None:
                raise dynamic_error(name, axis, str(tensor.shape[axis]), dims)
        if name in values:
            _check_value(name, values[name], dims, tensor.dtype)
            bound.known[name] = values[name]
        else:
            bound.shapes[name] = check_shape(name, dims, None)
    return bound


def _solve(
    tensors: Mapping[str, torch.Tensor], given: Mapping[str, tuple[int, ...]]
) -> dict[sympy.Symbol, int]:
    """The symbols' values that follow from the given shapes."""
    equations = [
        (name, axis, dim.node.expr if isinstance(dim, torch.SymInt) else sympy.Integer(dim), value)
        for name, shape in given.items()
        for axis, (dim, value) in enumerate(zip(tensors[name].shape, shape, strict=True))
    ]
    symbols: dict[sympy.Symbol, int] = {}
    # Plain symbols first: they may settle dimensions such as 2 * s, which are only checked then.
    for name, axis, expr, value in sorted(equations, key=lambda e: not e[2].is_Symbol):
        left = expr.subs(symbols)
        if left.is_Integer:
            if left != value:
                dim = int(left) if expr.is_Integer else f"{expr} = {left}"
                raise InputShapeError(
                    f"input {name!r}, dimension {axis}: the program fixes it at {dim}, "
                    f"not {value}; export it with dynamic_shapes to choose"
                )
            continue
        (symbol, *more) = left.free_symbols
        roots = [] if more else [r for r in sympy.solve(left - value, symbol) if r.is_Integer]
        if len(roots) != 1:
            raise InputShapeError(f"input {name!r}, dimension {axis}: {expr} can't be {value}")
        symbols[symbol] = int(roots[0])
    return symbols


def _check_ranges(program: ExportedProgram, symbols: Mapping[sympy.Symbol, int]) -> None:
    for symbol, limits in program.range_constraints.items():
        value = symbols.get(symbol)
        # From 2 on is what torch notes for any size: its examples aren't 1, but it takes 1 as well.
        lower = 1 if limits.lower == 2 else limits.lower
        if value is not None and not lower <= value <= limits.upper:
            raise InputShapeError(
                f"dimension {symbol} is {value}; the program was exported for "
                f"{lower} to {limits.upper}"
            )


def _check_value(
    name: str, value: torch.Tensor, dims: tuple[int | None, ...], dtype: torch.dtype
) -> None:
    if value.dtype != dtype or tuple(value.shape) != dims:
        raise ModelError(
            f"params gives {name!r} as {value.dtype} of shape {tuple(value.shape)}; "
            f"the program wants {dtype} of shape {dims}"
        )
