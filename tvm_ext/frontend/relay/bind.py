"""The parameters of a Relay module's ``main``: inputs with static shapes, weights as constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from tvm import relax

from tvm_ext.errors import InputShapeError, ModelError
from tvm_ext.frontend.input_shapes import check_shape, check_unknown, dynamic_error
from tvm_ext.frontend.onnx_converters.values import const
from tvm_ext.frontend.relay.ast import Dim, Function, TensorType, Var


def bind_parameters(
    main: Function,
    params: Mapping[str, np.ndarray],
    input_shapes: Mapping[str, Sequence[int]],
) -> dict[Var, relax.Expr]:
    """Return what each parameter of ``main`` is in Relax.

    Parameters
    ----------
    main : Function
    params : mapping of str to np.ndarray
        Values by name, of the dtypes and shapes that ``main`` declares; the others are inputs.
    input_shapes : mapping of str to sequence of int
        Shapes of inputs with open dimensions.

    Returns
    -------
    dict of Var to relax.Expr
        In order; a ``relax.Var`` is an input, a constant a parameter that was given.

    Raises
    ------
    ModelError
        `params` has an unknown name or another dtype or shape; a parameter has no tensor type.
    InputShapeError
        `input_shapes` has an unknown name, contradicts the module or itself, or lacks a dimension.
    """
    names = unique_names([var.name for var in main.params])
    unknown = sorted(set(params) - set(names))
    if unknown:
        raise ModelError(f"params has unknown names {unknown}; @main has {names}")
    check_unknown(input_shapes, [name for name in names if name not in params])
    symbols: dict[str, int] = {}
    bound: dict[Var, relax.Expr] = {}
    for name, var in zip(names, main.params, strict=True):
        if not isinstance(var.type, TensorType):
            raise ModelError(f"parameter {name!r} of @main is no tensor but {var.type}")
        if name in params:
            bound[var] = _weight(name, var.type, params[name], symbols)
        else:
            shape = _static(name, var.type.shape, input_shapes.get(name), symbols)
            bound[var] = relax.Var(name, relax.TensorType(shape, var.type.dtype))
    return bound


def unique_names(names: Sequence[str]) -> list[str]:
    """Names of which no two are the same, as Relay's text form makes them.

    A name that was there before gets a number, counted from 1 for each name.

    >>> unique_names(["data", "weight", "data", "data"])
    ['data', 'weight', 'data1', 'data2']
    """
    numbers: dict[str, int] = {}
    unique = []
    for name in names:
        chosen = name
        while chosen in numbers:
            numbers[name] += 1
            chosen = f"{name}{numbers[name]}"
        numbers[chosen] = 0
        unique.append(chosen)
    return unique


def _weight(
    name: str, declared: TensorType, value: np.ndarray, symbols: dict[str, int]
) -> relax.Expr:
    value = np.asarray(value)
    if str(value.dtype) != declared.dtype:
        raise ModelError(
            f"params: {name!r} is {value.dtype}; the module declares it as {declared.dtype}"
        )
    if value.ndim != len(declared.shape) or not all(
        isinstance(dim, str) or dim == n for dim, n in zip(declared.shape, value.shape, strict=True)
    ):
        raise ModelError(
            f"params: {name!r} has the shape {value.shape}; the module declares it as "
            f"{declared.shape}"
        )
    _static(name, declared.shape, value.shape, symbols)
    return const(value)


def _static(
    name: str,
    dims: Sequence[Dim],
    given: Sequence[int] | None,
    symbols: dict[str, int],
) -> tuple[int, ...]:
    """The shape with open dimensions filled in; a name other than "?" has one value everywhere."""
    shape = None if given is None else check_shape(name, given, len(dims))
    known = [None if isinstance(dim, str) else int(dim) for dim in dims]
    for i, dim in enumerate(dims):
        if isinstance(dim, str):
            found = symbols.get(dim) if shape is None else shape[i]
            if found is None:
                raise dynamic_error(name, i, dim, known)
            if dim != "?" and symbols.setdefault(dim, found) != found:
                raise InputShapeError(
                    f"input {name!r}, dimension {i}: {dim} is {found} here and {symbols[dim]} in "
                    "another place"
                )
            known[i] = found
        elif shape is not None and shape[i] != dim:
            raise InputShapeError(
                f"input {name!r}, dimension {i}: the module fixes it at {dim}, input_shapes says "
                f"{shape[i]}"
            )
    return tuple(n for n in known if n is not None)
